"""Statements about roles and about what they may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from evertide.sql.syntax.expression import UNPLACED, Name
from evertide.sql.syntax.password import PasswordClause


class GrantKind(StrEnum):
    """Types of objects that privileges are on; the value is the SQL word for one of them."""

    TABLE = "TABLE"
    TYPE = "TYPE"
    SECRET = "SECRET"
    CONNECTION = "CONNECTION"
    CLUSTER = "CLUSTER"
    DATABASE = "DATABASE"
    SCHEMA = "SCHEMA"

    @property
    def plural(self) -> str:
        return f"{self}S"


@dataclass(frozen=True, slots=True)
class AlterRoleStatement:
    """`ALTER ROLE name [WITH] attributes`; attributes as in CreateRoleStatement."""

    name: str
    attributes: tuple[str, ...] = ()
    password: PasswordClause | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterRoleSetStatement:
    """`ALTER ROLE name SET variable TO values`; None: RESET, or SET ... TO DEFAULT.

    The variable None: RESET ALL.
    """

    name: str
    variable: str | None
    values: tuple[str, ...] | None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class MembershipStatement:
    """`GRANT roles TO members`, or with `revoke` `REVOKE roles FROM members`."""

    roles: tuple[str, ...]
    members: tuple[str, ...]
    revoke: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class OnSystem:
    """`ON SYSTEM`: the environment as a whole."""


@dataclass(frozen=True, slots=True)
class OnObjects:
    """`ON kind names`."""

    kind: GrantKind
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class OnAll:
    """`ON ALL kinds [IN SCHEMA schemas | IN DATABASE databases]`; at most one of these."""

    kind: GrantKind
    schemas: tuple[Name, ...] = ()
    databases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrivilegesStatement:
    """GRANT or REVOKE of privileges, in capitals; None: ALL."""

    privileges: tuple[str, ...] | None
    target: OnSystem | OnObjects | OnAll
    roles: tuple[str, ...]
    revoke: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DefaultPrivilegesStatement:
    """ALTER DEFAULT PRIVILEGES. `creators` None: FOR ALL ROLES; empty: whoever asks."""

    creators: tuple[str, ...] | None
    target: OnAll
    privileges: tuple[str, ...] | None
    roles: tuple[str, ...]
    revoke: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReassignOwnedStatement:
    old_roles: tuple[str, ...]
    new_role: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DropOwnedStatement:
    roles: tuple[str, ...]
    cascade: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


RoleStatement: TypeAlias = (
    AlterRoleStatement
    | AlterRoleSetStatement
    | MembershipStatement
    | PrivilegesStatement
    | DefaultPrivilegesStatement
    | ReassignOwnedStatement
    | DropOwnedStatement
)
