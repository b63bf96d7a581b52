"""What a statement takes to be allowed, as data: checked on the snapshot that executes it."""

from dataclasses import dataclass

from evertide.catalog.objects import ObjectKey
from evertide.vocab.ids import RoleId


@dataclass(frozen=True, slots=True)
class Privilege:
    """Letters on an object; None: on the environment as a whole."""

    target: ObjectKey | None
    letters: str
    # Whose privilege it must be; None: whoever runs the statement. A view's owner reads for others.
    role_id: RoleId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """All of it is needed, unless whoever runs the statement is a superuser."""

    # What only superusers do, in words that end "permission denied to"; None: anyone may.
    superuser: str | None = None
    member_of: tuple[RoleId, ...] = ()
    owner_of: tuple[ObjectKey, ...] = ()
    privileges: tuple[Privilege, ...] = ()


NOTHING = Needs()


def on_system(letters: str) -> Privilege:
    """A privilege on the environment as a whole."""
    return Privilege(None, letters)
