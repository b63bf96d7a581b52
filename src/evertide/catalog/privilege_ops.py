"""Changes of roles and of what they may do with single objects; part of ops.py's unions."""

from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.catalog.objects import ObjectKey
from evertide.vocab.ids import RoleId


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPrivilegesOp:
    """Letters that the grantee gets on an object, from its owner; it may have some already."""

    target: ObjectKey
    grantee: RoleId
    letters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokePrivilegesOp:
    """Letters that the grantee loses on an object; it may have none of them."""

    target: ObjectKey
    grantee: RoleId
    letters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRoleOp:
    """A role's attributes as they shall be; None leaves one as it is."""

    role_id: RoleId
    superuser: bool | None = None
    login: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRoleVariableOp:
    """The value that a variable has when a session of the role starts; None: as for others."""

    role_id: RoleId
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class NewPassword:
    """What is kept of a new password, and what decoys are made from if nothing is kept yet."""

    verifier: str = field(repr=False)
    decoy: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPasswordOp:
    """None: the role has no password any more, so nobody can come in as this role by one."""

    role_id: RoleId
    password: NewPassword | None


PrivilegeOp: TypeAlias = (
    GrantPrivilegesOp | RevokePrivilegesOp | AlterRoleOp | SetRoleVariableOp | SetPasswordOp
)
