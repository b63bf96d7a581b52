"""What a snapshot holds of roles' passwords."""

from evertide.catalog.objects import RolePassword
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import RoleId
from evertide.vocab.scram import MECHANISM


def password_of(snapshot: Snapshot, role_id: RoleId) -> RolePassword | None:
    """What is kept of a role's password; None: it has none."""
    found = snapshot.find((RolePassword.KIND.value, role_id))
    return found if isinstance(found, RolePassword) else None


def mask_of(snapshot: Snapshot, role_id: RoleId) -> str | None:
    """What stands for a password; None: there is none.

    It begins as a verifier does and is none, so a dump that holds it gives nobody this password.
    """
    return None if password_of(snapshot, role_id) is None else f"{MECHANISM}$********"
