"""SHOW PRIVILEGES, SHOW DEFAULT PRIVILEGES and SHOW ROLE MEMBERSHIP: what each lists."""

from typing import Final, NamedTuple

from evertide.catalog.acl import roles_above
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.roles.names import PUBLIC, resolve_role
from evertide.sql.pretty import quote_literal
from evertide.sql.syntax.command import ShowKind, ShowObjectsStatement

# What a type of object covers, in the words of the relations.
_TYPES: Final = {
    "TABLES": ("table", "view", "materialized-view", "source"),
    "TYPES": ("type",),
    "SECRETS": ("secret",),
    "CONNECTIONS": ("connection",),
    "CLUSTERS": ("cluster",),
    "DATABASES": ("database",),
    "SCHEMAS": ("schema",),
    "SYSTEM": ("system",),
}


class Listed(NamedTuple):
    """A query, its columns that are shown, those that order its rows, and what LIKE looks at."""

    sql: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    like: str


_PRIVILEGES: Final[tuple[str, ...]] = (
    "grantor", "grantee", "database", "schema", "name", "object_type", "privilege_type",
)  # fmt: skip
_DEFAULTS: Final[tuple[str, ...]] = (
    "object_owner", "database", "schema", "object_type", "grantee", "privilege_type",
)  # fmt: skip
_MEMBERS: Final[tuple[str, ...]] = ("role", "member", "grantor")


def role_listing(statement: ShowObjectsStatement, query: QueryContext) -> Listed:
    """FOR a role: what it has, itself, through its groups, or because everyone has it."""
    match statement.kind:
        case ShowKind.PRIVILEGES:
            relation, columns, whom, like = "mz_show_all_privileges", _PRIVILEGES, "grantee", "name"
        case ShowKind.DEFAULT_PRIVILEGES:
            relation, columns, whom = "mz_show_default_privileges", _DEFAULTS, "grantee"
            like = "object_owner"
        case _:
            relation, columns, whom, like = "mz_show_role_members", _MEMBERS, "member", "role"
    conditions = []
    if statement.on is not None:
        conditions.append(f"object_type IN ({_texts(_TYPES[statement.on.parts[0]])})")
    if statement.for_ is not None:
        conditions.append(f"{whom} IN ({_texts(_acting(statement.for_, query))})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Listed(f"SELECT * FROM mz_internal.{relation}{where}", columns, columns, like)


def _acting(name: str, query: QueryContext) -> tuple[str, ...]:
    if name == PUBLIC:
        return ("PUBLIC",)
    snapshot = query.plan.snapshot
    role = resolve_role(name, snapshot)
    above = sorted(snapshot.roles[one].name for one in roles_above(snapshot, role.role_id))
    return (*above, "PUBLIC")


def _texts(values: tuple[str, ...]) -> str:
    return ", ".join(quote_literal(value) for value in values)
