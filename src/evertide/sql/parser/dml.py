"""INSERT, UPDATE, DELETE, and SELECT as a statement."""

from evertide.sql.parser import query
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.expression import expression
from evertide.sql.parser.from_clause import optional_alias, table_expressions
from evertide.sql.parser.names import (
    comma_separated,
    identifier,
    parenthesized,
    qualified_name,
)
from evertide.sql.syntax.command import (
    AsOf,
    Assignment,
    DeleteStatement,
    InsertStatement,
    SelectStatement,
    UpdateStatement,
)
from evertide.sql.syntax.query import SelectItem


def select_statement(cursor: Cursor) -> SelectStatement:
    at = cursor.at
    return SelectStatement(query.query(cursor), as_of(cursor), at=at)


def as_of(cursor: Cursor) -> AsOf | None:
    """`AS OF [AT LEAST] t` if it is there."""
    at = cursor.at
    if not cursor.accept_words("AS", "OF"):
        return None
    at_least = cursor.accept_words("AT", "LEAST")
    return AsOf(expression(cursor), at_least, at=at)


def insert(cursor: Cursor) -> InsertStatement:
    at = cursor.at
    cursor.expect("INSERT", "INTO")
    table = qualified_name(cursor)
    columns: tuple[str, ...] = ()
    if cursor.key == "(" and not query.starts_query(cursor):
        columns = parenthesized(cursor, identifier)
    source = None if cursor.accept_words("DEFAULT", "VALUES") else query.query(cursor)
    return InsertStatement(table, columns, source, _returning(cursor), at=at)


def _returning(cursor: Cursor) -> tuple[SelectItem, ...]:
    return comma_separated(cursor, query.select_item) if cursor.accept("RETURNING") else ()


def update(cursor: Cursor) -> UpdateStatement:
    at = cursor.at
    cursor.expect("UPDATE")
    table = qualified_name(cursor)
    alias = optional_alias(cursor)
    cursor.expect("SET")
    assignments = comma_separated(cursor, _assignment)
    from_ = table_expressions(cursor) if cursor.accept("FROM") else ()
    where = query.where(cursor)
    return UpdateStatement(table, assignments, alias, from_, where, _returning(cursor), at=at)


def _assignment(cursor: Cursor) -> Assignment:
    at = cursor.at
    column = identifier(cursor)
    cursor.expect("=")
    return Assignment(column, query.cell(cursor), at=at)


def delete(cursor: Cursor) -> DeleteStatement:
    at = cursor.at
    cursor.expect("DELETE", "FROM")
    table = qualified_name(cursor)
    alias = optional_alias(cursor)
    using = table_expressions(cursor) if cursor.accept("USING") else ()
    where = query.where(cursor)
    return DeleteStatement(table, alias, using, where, _returning(cursor), at=at)
