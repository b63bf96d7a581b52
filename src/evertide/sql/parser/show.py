"""SHOW: lists of objects, their definitions, and variables."""

from typing import Final

from evertide.sql.parser import expression
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import one_of, qualified_name, string_literal, variable_name
from evertide.sql.parser.objects import object_kind, object_name, optional_cluster
from evertide.sql.parser.role import PLURALS, role_name
from evertide.sql.syntax.command import (
    LikeFilter,
    ShowCreateStatement,
    ShowKind,
    ShowObjectsStatement,
    ShowStatement,
    ShowVariableStatement,
    WhereFilter,
)
from evertide.sql.syntax.expression import Name

# Kinds whose objects live in a schema, or for SCHEMAS in a database.
_WITH_FROM: Final = frozenset(
    {
        ShowKind.TABLES,
        ShowKind.VIEWS,
        ShowKind.MATERIALIZED_VIEWS,
        ShowKind.INDEXES,
        ShowKind.SOURCES,
        ShowKind.SINKS,
        ShowKind.TYPES,
        ShowKind.SECRETS,
        ShowKind.CONNECTIONS,
        ShowKind.OBJECTS,
        ShowKind.SCHEMAS,
    }
)
_WITH_CLUSTER: Final = frozenset(
    {ShowKind.MATERIALIZED_VIEWS, ShowKind.INDEXES, ShowKind.SOURCES, ShowKind.SINKS}
)
_OF_ROLES: Final = (ShowKind.PRIVILEGES, ShowKind.DEFAULT_PRIVILEGES, ShowKind.ROLE_MEMBERSHIP)
_KINDS: Final = {**{str(kind): kind for kind in ShowKind}}
_KINDS.update(dict.fromkeys(("INDEX", "KEYS"), ShowKind.INDEXES))


def show(cursor: Cursor) -> ShowStatement:
    """Any SHOW statement; a word that names no list is a variable."""
    at = cursor.at
    cursor.expect("SHOW")
    redacted = cursor.key == "REDACTED" and cursor.peek() == "CREATE"
    if redacted:
        cursor.advance()
    if cursor.accept("CREATE"):
        kind = object_kind(cursor, "SHOW CREATE")
        return ShowCreateStatement(kind, object_name(cursor, kind), redacted, at=at)
    for words, listed in _KINDS.items():
        if cursor.accept_words(*words.split()):
            return _objects(cursor, listed, at)
    if cursor.accept("ALL"):
        return ShowVariableStatement(None, at=at)
    if cursor.accept_words("TIME", "ZONE"):
        return ShowVariableStatement("timezone", at=at)
    if cursor.accept_words("TRANSACTION", "ISOLATION", "LEVEL"):
        return ShowVariableStatement("transaction_isolation", at=at)
    return ShowVariableStatement(variable_name(cursor), at=at)


def _objects(cursor: Cursor, kind: ShowKind, at: int) -> ShowObjectsStatement:
    if kind in _OF_ROLES:
        return _of_roles(cursor, kind, at)
    from_ = on = None
    if kind is ShowKind.COLUMNS:
        if cursor.key not in ("FROM", "IN"):
            cursor.fail("one of FROM or IN")
        cursor.advance()
        from_ = qualified_name(cursor)
    elif kind in _WITH_FROM and (cursor.key == "FROM" or _in_schema(cursor)):
        cursor.advance()
        from_ = qualified_name(cursor)
    if kind is ShowKind.INDEXES and cursor.accept("ON"):
        on = qualified_name(cursor)
    cluster = optional_cluster(cursor) if kind in _WITH_CLUSTER else None
    return ShowObjectsStatement(kind, from_, on, cluster, _filter(cursor), at=at)


def _of_roles(cursor: Cursor, kind: ShowKind, at: int) -> ShowObjectsStatement:
    on = role = None
    if kind is not ShowKind.ROLE_MEMBERSHIP and cursor.accept("ON"):
        on = Name((one_of(cursor, *PLURALS, "SYSTEM"),), at=cursor.at)
    if cursor.accept("FOR"):
        role = role_name(cursor)
    return ShowObjectsStatement(kind, None, on, None, _filter(cursor), role, at=at)


def _in_schema(cursor: Cursor) -> bool:
    """IN may also begin IN CLUSTER; a schema of that name must be quoted or come after FROM."""
    return cursor.key == "IN" and cursor.peek() != "CLUSTER"


def _filter(cursor: Cursor) -> LikeFilter | WhereFilter | None:
    at = cursor.at
    if cursor.accept("LIKE"):
        return LikeFilter(string_literal(cursor).value, at=at)
    if cursor.accept("WHERE") or cursor.accept("EXPR"):
        return WhereFilter(expression.expression(cursor), at=at)
    return None
