"""What is kept of roles' passwords. A kind of its own, so that a role can be shown as a whole."""

from typing import ClassVar

import msgspec

from evertide.catalog.kinds.kind import ObjectKind
from evertide.vocab.ids import RoleId


class RolePassword(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """By what a role's password is checked; never the password.

    That of PUBLIC_ROLE_ID is nobody's: it makes the decoys that users without a password are
    shown, the same ones by every process and after every restart.
    """

    KIND: ClassVar[ObjectKind] = ObjectKind.ROLE_PASSWORD
    KEY: ClassVar[tuple[str, ...]] = ("role_id",)

    role_id: RoleId
    verifier: str  # the text of vocab/scram.py's Verifier

    def __repr__(self) -> str:
        """Nothing of the verifier: a record may end in a log."""
        return f"RolePassword(role_id={self.role_id!r})"
