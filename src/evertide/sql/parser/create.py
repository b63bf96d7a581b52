"""CREATE of everything but clusters."""

from evertide.sql.parser import cluster, named, option, query, replacement, role, sink, source
from evertide.sql.parser.constraint import column_key, table_key
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.expression import expression
from evertide.sql.parser.names import (
    identifier,
    if_not_exists,
    optional_columns,
    parenthesized,
    qualified_name,
)
from evertide.sql.parser.objects import optional_cluster
from evertide.sql.parser.type_name import data_type
from evertide.sql.syntax.definition import (
    ColumnDefinition,
    CreateDatabaseStatement,
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateSchemaStatement,
    CreateTableStatement,
    CreateViewStatement,
    DefinitionStatement,
    OnCommit,
    TableKey,
)
from evertide.sql.syntax.expression import Expression


def create(cursor: Cursor) -> DefinitionStatement:
    """Any CREATE statement."""
    at = cursor.at
    cursor.expect("CREATE")
    if cursor.accept_words("OR", "REPLACE"):
        return _create_or_replace(cursor, at)
    temporary = cursor.accept("TEMP") or cursor.accept("TEMPORARY")
    if cursor.accept("TABLE"):
        return _table(cursor, temporary, at)
    if cursor.accept("VIEW"):
        return _view(cursor, or_replace=False, temporary=temporary, at=at)
    if temporary:
        cursor.fail("one of TABLE or VIEW")
    return _create_durable(cursor, at)


def _create_or_replace(cursor: Cursor, at: int) -> DefinitionStatement:
    temporary = cursor.accept("TEMP") or cursor.accept("TEMPORARY")
    if cursor.accept("VIEW"):
        return _view(cursor, or_replace=True, temporary=temporary, at=at)
    if not temporary and cursor.accept_words("MATERIALIZED", "VIEW"):
        return _materialized_view(cursor, or_replace=True, at=at)
    cursor.fail("VIEW" if temporary else "one of VIEW or MATERIALIZED VIEW")


def _create_durable(cursor: Cursor, at: int) -> DefinitionStatement:
    if cursor.accept("REPLACEMENT"):
        cursor.expect("MATERIALIZED", "VIEW")
        return _materialized_view(cursor, or_replace=False, is_replacement=True, at=at)
    if cursor.accept("MATERIALIZED"):
        if cursor.accept("SOURCE"):
            return source.create_source(cursor, materialized=True, at=at)
        if not cursor.accept("VIEW"):
            cursor.fail("one of VIEW or SOURCE")
        return _materialized_view(cursor, or_replace=False, at=at)
    if cursor.accept("SOURCE"):
        return source.create_source(cursor, materialized=False, at=at)
    if cursor.accept("SUBSOURCE"):
        return source.create_subsource(cursor, at)
    if cursor.accept("SINK"):
        return sink.create_sink(cursor, at)
    if cursor.accept("DEFAULT"):
        cursor.expect("INDEX")
        return _index(cursor, default=True, at=at)
    if cursor.accept("INDEX"):
        return _index(cursor, default=False, at=at)
    if cursor.accept_words("CLUSTER", "REPLICA"):
        return cluster.create_replica(cursor, at)
    if cursor.accept_words("CLUSTER", "PROFILE"):
        return cluster.create_profile(cursor, at)
    if cursor.accept("CLUSTER"):
        return cluster.create_cluster(cursor, at)
    if cursor.accept("SCHEMA"):
        exists_ok = if_not_exists(cursor)
        return CreateSchemaStatement(qualified_name(cursor), exists_ok, at=at)
    if cursor.accept("DATABASE"):
        exists_ok = if_not_exists(cursor)
        return CreateDatabaseStatement(identifier(cursor), exists_ok, at=at)
    if cursor.key in ("ROLE", "USER"):
        return role.create_role(cursor, at)
    return _create_named(cursor, at)


def _create_named(cursor: Cursor, at: int) -> DefinitionStatement:
    if cursor.accept("TYPE"):
        return named.create_type(cursor, at)
    if cursor.accept("SECRET"):
        return named.create_secret(cursor, at)
    if cursor.key == "CONNECTION":
        named.refuse_connection(at)
    if cursor.accept_words("NETWORK", "POLICY"):
        named.refuse_network_policy(at)
    cursor.fail(
        "one of TABLE or VIEW or MATERIALIZED VIEW or INDEX or SOURCE or SINK or TYPE or SECRET or "
        "CLUSTER or SCHEMA or DATABASE or ROLE after CREATE"
    )


def _table(cursor: Cursor, temporary: bool, at: int) -> CreateTableStatement:
    exists_ok = if_not_exists(cursor)
    name = qualified_name(cursor)
    cursor.expect("(")
    columns: list[ColumnDefinition] = []
    keys: list[TableKey] = []
    while cursor.key != ")":
        key = table_key(cursor)
        if key is None:
            columns.append(_column(cursor, keys))
        else:
            keys.append(key)
        if not cursor.accept(","):
            break
        if cursor.key == ")":
            cursor.fail("column name or constraint definition")
    cursor.expect(")")
    # How full PostgreSQL keeps its pages. There are none here, so it says nothing.
    given = option.with_options(cursor, option.TABLE)
    options = tuple(each for each in given if each.name != "FILLFACTOR")
    ending = _on_commit(cursor) if temporary else None
    return CreateTableStatement(
        name, tuple(columns), exists_ok, temporary, options, tuple(keys), ending, at=at
    )


def _on_commit(cursor: Cursor) -> OnCommit | None:
    if not cursor.accept_words("ON", "COMMIT"):
        return None
    for ending in OnCommit:
        if cursor.accept_words(*ending.split()):
            return ending
    cursor.fail("one of PRESERVE ROWS or DELETE ROWS or DROP")


def _column(cursor: Cursor, keys: list[TableKey]) -> ColumnDefinition:
    """A column; the keys that it is on its own are added to the table's."""
    at = cursor.at
    name = identifier(cursor, "column name or constraint definition")
    type_ = data_type(cursor)
    collation = qualified_name(cursor) if cursor.accept("COLLATE") else None
    not_null, default = False, None
    while True:
        if cursor.accept_words("NOT", "NULL"):
            not_null = True
        elif cursor.accept("NULL"):
            not_null = False
        elif default is None and cursor.accept("DEFAULT"):
            default = expression(cursor)
        else:
            key = column_key(cursor, name)
            if key is None:
                break
            keys.append(key)
    return ColumnDefinition(name, type_, not_null, default, collation, at=at)


def _view(cursor: Cursor, *, or_replace: bool, temporary: bool, at: int) -> CreateViewStatement:
    exists_ok = not or_replace and if_not_exists(cursor)
    name = qualified_name(cursor)
    columns = optional_columns(cursor)
    cursor.expect("AS")
    body = query.query(cursor)
    return CreateViewStatement(name, body, columns, or_replace, exists_ok, temporary, at=at)


def _materialized_view(
    cursor: Cursor, *, or_replace: bool, at: int, is_replacement: bool = False
) -> CreateMaterializedViewStatement:
    exists_ok = not or_replace and if_not_exists(cursor)
    name = qualified_name(cursor)
    columns = optional_columns(cursor)
    replacing = None
    if not or_replace:
        replacing = replacement.optional_target(cursor, replacement=is_replacement)
    in_cluster = optional_cluster(cursor)
    options = option.with_options(cursor, option.MATERIALIZED_VIEW)
    cursor.expect("AS")
    body = query.query(cursor)
    return CreateMaterializedViewStatement(
        name, body, columns, in_cluster, options, or_replace, exists_ok, replacing, at=at
    )


def _index(cursor: Cursor, *, default: bool, at: int) -> CreateIndexStatement:
    exists_ok = if_not_exists(cursor)
    name = None if cursor.key in ("IN", "ON") else identifier(cursor)
    in_cluster = optional_cluster(cursor)
    cursor.expect("ON")
    on = qualified_name(cursor)
    method = identifier(cursor) if cursor.accept("USING") else None
    keys = () if default else parenthesized(cursor, _key)
    options = option.with_options(cursor, option.RETAINED)
    return CreateIndexStatement(
        name, on, keys, in_cluster, method, default, exists_ok, options, at=at
    )


def _key(cursor: Cursor) -> Expression:
    """A direction means nothing to an index that is not sorted, but schemas carry it about."""
    key = expression(cursor)
    if cursor.key in ("ASC", "DESC"):
        cursor.advance()
    return key
