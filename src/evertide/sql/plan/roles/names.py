"""Roles by name: those that may be given something, and those that may be changed."""

from evertide.catalog.create import RESERVED_ROLES
from evertide.catalog.objects import PUBLIC_ROLE_ID, Role
from evertide.catalog.snapshot import Snapshot
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import UNPLACED
from evertide.vocab.errors import InvalidName, UndefinedObject
from evertide.vocab.ids import RoleId

PUBLIC = "public"


def resolve_role(name: str, snapshot: Snapshot, *, at: int = UNPLACED) -> Role:
    """The role of this name; everyone is no role."""
    if name == PUBLIC:
        raise InvalidName(f'role name "{name}" is reserved', detail=RESERVED_ROLES)
    found = snapshot.role_named(name)
    if found is None:
        raise UndefinedObject(f"unknown role '{name}'", position=position_of(at))
    return found


def users_role(name: str, snapshot: Snapshot, *, at: int = UNPLACED) -> Role:
    """A role that is not one of the system's."""
    found = resolve_role(name, snapshot, at=at)
    if found.role_id.startswith("s"):
        raise InvalidName(
            f'role name "{name}" is reserved',
            detail='The role prefixes "mz_" and "pg_" are reserved for system roles.',
        )
    return found


def grantee(name: str, snapshot: Snapshot, *, at: int = UNPLACED) -> RoleId:
    """Whom something is granted to: a user's role, or everyone."""
    if name == PUBLIC:
        return PUBLIC_ROLE_ID
    return users_role(name, snapshot, at=at).role_id
