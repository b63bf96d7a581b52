"""Roles, who belongs to whom, and what is granted where no single object is named."""

from typing import ClassVar, Final

import msgspec

from evertide.catalog.kinds.kind import ObjectKind
from evertide.vocab.ids import DatabaseId, RoleId, SchemaId

# Everyone. Stands where a role's id does; it is no role, so it owns nothing and has no members.
PUBLIC_ROLE_ID: Final = RoleId("p")


class Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A user or a group of users."""

    KIND: ClassVar[ObjectKind] = ObjectKind.ROLE
    KEY: ClassVar[tuple[str, ...]] = ("role_id",)

    role_id: RoleId
    oid: int
    name: str
    superuser: bool = False
    login: bool | None = None  # None: not said; whoever is let in may then use it
    # Session variables and the values that its sessions start with, by name.
    variables: tuple[tuple[str, str], ...] = ()


class RoleMembership(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """`member_id` may do what `role_id` may."""

    KIND: ClassVar[ObjectKind] = ObjectKind.ROLE_MEMBERSHIP
    KEY: ClassVar[tuple[str, ...]] = ("role_id", "member_id")

    role_id: RoleId
    member_id: RoleId
    grantor: RoleId


class DefaultPrivilege(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """What a grantee may do with objects that a role creates from now on.

    `privileges` are the letters of PostgreSQL's access lists, such as `r` for SELECT.
    """

    KIND: ClassVar[ObjectKind] = ObjectKind.DEFAULT_PRIVILEGE
    KEY: ClassVar[tuple[str, ...]] = (
        "role_id",
        "database_id",
        "schema_id",
        "object_type",
        "grantee",
    )

    role_id: RoleId  # PUBLIC_ROLE_ID: whoever creates it
    database_id: DatabaseId | None  # None: in any database
    schema_id: SchemaId | None  # None: in any schema
    object_type: str  # table, schema, cluster, ...
    grantee: RoleId
    privileges: str


class SystemPrivilege(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """What a grantee may do with the environment as a whole: create roles, databases, clusters."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SYSTEM_PRIVILEGE
    KEY: ClassVar[tuple[str, ...]] = ("grantee", "grantor")

    grantee: RoleId
    grantor: RoleId
    privileges: str  # letters, such as R for creating roles
