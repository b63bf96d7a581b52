"""DROP and ALTER."""

from evertide.sql.parser import cluster, option, replacement, role, session
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.expression import expression
from evertide.sql.parser.names import cluster_name, comma_separated, identifier, if_exists
from evertide.sql.parser.objects import object_kind, object_name
from evertide.sql.syntax.definition import (
    AlterHistoryStatement,
    AlterOwnerStatement,
    AlterSetClusterStatement,
    AlterSetSchemaStatement,
    DropStatement,
    ObjectKind,
    RenameStatement,
    SwapStatement,
)
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.named import AlterSecretStatement
from evertide.sql.syntax.role import DropOwnedStatement
from evertide.sql.syntax.statement import Statement

_MOVABLE = frozenset(
    {ObjectKind.MATERIALIZED_VIEW, ObjectKind.INDEX, ObjectKind.SOURCE, ObjectKind.SINK}
)
# What lives in a schema.
_PLACED = frozenset(
    {
        *_MOVABLE,
        ObjectKind.TABLE,
        ObjectKind.VIEW,
        ObjectKind.TYPE,
        ObjectKind.SECRET,
        ObjectKind.CONNECTION,
    }
)
# What may follow a cluster's name: SET, the options themselves, or nothing.
_AFTER_CLUSTER = frozenset({"SET", "(", ";", ""} | {name.split()[0] for name in option.CLUSTER})
_RETAINING = frozenset({ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW, ObjectKind.INDEX})
_SWAPPABLE = frozenset({ObjectKind.CLUSTER, ObjectKind.SCHEMA})


def drop(cursor: Cursor) -> DropStatement | DropOwnedStatement:
    at = cursor.at
    cursor.expect("DROP")
    if cursor.accept("OWNED"):
        return role.drop_owned(cursor, at)
    kind = ObjectKind.ROLE if cursor.accept("USER") else object_kind(cursor, "DROP")
    missing_ok = if_exists(cursor)
    names = comma_separated(cursor, lambda inner: object_name(inner, kind))
    cascade = cursor.accept("CASCADE")
    if not cascade:
        cursor.accept("RESTRICT")
    return DropStatement(kind, names, missing_ok, cascade, at=at)


def alter(cursor: Cursor) -> Statement:
    """Any ALTER statement."""
    at = cursor.at
    cursor.expect("ALTER")
    if cursor.accept("SYSTEM"):
        return session.alter_system(cursor, at)
    if cursor.accept_words("DEFAULT", "PRIVILEGES"):
        return role.alter_default_privileges(cursor, at)
    if cursor.accept("ROLE") or cursor.accept("USER"):
        return role.alter_role(cursor, at)
    kind = object_kind(cursor, "ALTER")
    missing_ok = if_exists(cursor)
    name = object_name(cursor, kind)
    if cursor.accept("RENAME"):
        cursor.expect("TO")
        return RenameStatement(kind, name, identifier(cursor), missing_ok, at=at)
    if cursor.accept("OWNER"):
        cursor.expect("TO")
        return AlterOwnerStatement(kind, name, identifier(cursor), missing_ok, at=at)
    if kind in _SWAPPABLE and not missing_ok and cursor.accept("SWAP"):
        cursor.expect("WITH")
        return SwapStatement(kind, name, cluster_name(cursor), at=at)
    if kind in _MOVABLE and cursor.accept_words("SET", "CLUSTER"):
        return AlterSetClusterStatement(kind, name, cluster_name(cursor), missing_ok, at=at)
    if kind in _PLACED and cursor.accept_words("SET", "SCHEMA"):
        return AlterSetSchemaStatement(kind, name, identifier(cursor), missing_ok, at=at)
    if kind is ObjectKind.SECRET and cursor.accept("AS"):
        return AlterSecretStatement(name, expression(cursor), missing_ok, at=at)
    if kind in _RETAINING and cursor.key in ("SET", "RESET"):
        return _history(cursor, kind, name, missing_ok, at)
    if kind is ObjectKind.MATERIALIZED_VIEW:
        found = replacement.alter(cursor, name, missing_ok, at)
        if found is not None:
            return found
    if kind is ObjectKind.CLUSTER:
        if cursor.accept("RESET"):
            return cluster.reset_options(cursor, name.parts[0], missing_ok, at)
        if cursor.key not in _AFTER_CLUSTER:
            cursor.fail("one of OWNER or RENAME or RESET or SET or SWAP")
        return cluster.alter_options(cursor, name.parts[0], missing_ok, at)
    if kind is ObjectKind.CLUSTER_REPLICA:
        return cluster.move_replica(cursor, name, missing_ok, at)
    if kind is ObjectKind.CLUSTER_PROFILE:
        return cluster.alter_profile(cursor, name, missing_ok, at)
    cursor.fail("one of " + " or ".join(_actions(kind)))


def _history(
    cursor: Cursor, kind: ObjectKind, name: Name, missing_ok: bool, at: int
) -> AlterHistoryStatement:
    if cursor.accept("SET"):
        (*_, last) = option.parenthesized_options(cursor, option.RETAINED)
        return AlterHistoryStatement(kind, name, last.value, missing_ok, at=at)
    cursor.expect("RESET")
    cursor.expect("(")
    option.option_name(cursor, option.RETAINED)
    cursor.expect(")")
    return AlterHistoryStatement(kind, name, None, missing_ok, at=at)


def _actions(kind: ObjectKind) -> list[str]:
    actions = ["RENAME", "OWNER"]
    if kind in _SWAPPABLE:
        actions.append("SWAP")
    if kind in _MOVABLE:
        actions.append("SET CLUSTER")
    if kind in _PLACED:
        actions.append("SET SCHEMA")
    if kind in _RETAINING:
        actions += ["SET", "RESET"]
    if kind is ObjectKind.SECRET:
        actions.append("AS")
    if kind is ObjectKind.MATERIALIZED_VIEW:
        actions += ["APPLY", "RESTORE"]
    return actions
