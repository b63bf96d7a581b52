"""By what a user's password is checked, whether or not there is such a user."""

import secrets
from typing import Final

from evertide.adapter.client import Credentials
from evertide.catalog.objects import PUBLIC_ROLE_ID
from evertide.catalog.passwords import password_of
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import InvalidPassword
from evertide.vocab.scram import decoy_verifier, read_verifier

# As long as no role has a password there is nothing to tell a decoy from.
_NO_SECRET: Final = secrets.token_bytes(32)


def credentials_of(user: str, snapshot: Snapshot) -> Credentials:
    """The user's own verifier, or a decoy that looks like one and is met by no password.

    Decoys do not change from try to try, nor from process to process: a salt that did would tell
    that there is no such user.
    """
    role = snapshot.role_named(user)
    kept = None if role is None else password_of(snapshot, role.role_id)
    secret = password_of(snapshot, PUBLIC_ROLE_ID)
    key = _NO_SECRET if secret is None else secret.verifier.encode()
    decoy = decoy_verifier(key, user)
    verifier = None if kept is None else read_verifier(kept.verifier)
    if role is None or verifier is None:
        return Credentials(decoy, genuine=False)
    return Credentials(verifier, genuine=True, role_id=role.role_id)


def check_still_proved(user: str, proved: Credentials, snapshot: Snapshot) -> None:
    """Refuse a user whose role or password has changed since the exchange began.

    What was proved is the password of one role. A user that no role is named after any more must
    not act as the default role, nor as one that was made under the same name meanwhile.
    """
    if not proved.genuine or credentials_of(user, snapshot) != proved:
        raise InvalidPassword(f'password authentication failed for user "{user}"')
