"""A password as it was given, to what is kept of it."""

import secrets
from typing import Final

from evertide.catalog.privilege_ops import NewPassword
from evertide.sql.syntax.password import PasswordClause
from evertide.vocab.errors import FeatureNotSupported, InvalidParameterValue, Notice
from evertide.vocab.scram import MECHANISM, decoy_verifier, make_verifier, read_verifier

_MOST_CHARS: Final = 1_024
_MD5_CHARS: Final = 35
_EMPTY: Final = Notice("NOTICE", "00000", "empty string is not a valid password, clearing password")


def plan_password(clause: PasswordClause) -> tuple[NewPassword | None, tuple[Notice, ...]]:
    """What to keep (None: nothing), and what to tell. No message says anything of the password."""
    if clause.text is None:
        return None, ()
    if not clause.text:
        return None, (_EMPTY,)
    if len(clause.text) > _MOST_CHARS:
        raise InvalidParameterValue(f"password is longer than {_MOST_CHARS} characters")
    return NewPassword(_verifier_text(clause.text), _decoy_text()), ()


def _verifier_text(given: str) -> str:
    """A verifier that was made elsewhere is kept as it is."""
    if given.startswith(f"{MECHANISM}$"):
        found = read_verifier(given)
        if found is None:
            raise InvalidParameterValue(
                f"password begins like a {MECHANISM} verifier, but is none",
                detail="A verifier has at least 4096 iterations, a salt, and two keys of 32 bytes.",
            )
        return found.text
    if len(given) == _MD5_CHARS and given.startswith("md5"):
        raise FeatureNotSupported(
            "passwords that were hashed with MD5 are not supported",
            hint=f"Give the password itself, or its {MECHANISM} verifier.",
        )
    return make_verifier(given).text


def _decoy_text() -> str:
    """A verifier of no password at all."""
    return decoy_verifier(secrets.token_bytes(32), "").text
