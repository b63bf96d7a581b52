"""Cursors and prepared statements."""

from evertide.sql.lexer import NUMBER
from evertide.sql.parser import dml, option, stream
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.expression import expressions
from evertide.sql.parser.names import identifier, integer, parenthesized
from evertide.sql.parser.type_name import data_type
from evertide.sql.syntax.command import (
    CloseStatement,
    DeallocateStatement,
    DeclareStatement,
    ExecuteStatement,
    FetchStatement,
    Preparable,
    PrepareStatement,
)
from evertide.sql.syntax.expression import Expression


def declare(cursor: Cursor) -> DeclareStatement:
    at = cursor.at
    cursor.expect("DECLARE")
    name = identifier(cursor)
    cursor.accept("INSENSITIVE")  # every cursor is: it reads at one timestamp
    cursor.accept_words("NO", "SCROLL")
    cursor.expect("CURSOR")
    hold = cursor.accept_words("WITH", "HOLD")
    if not hold:
        cursor.accept_words("WITHOUT", "HOLD")
    cursor.expect("FOR")
    subscribing = cursor.key in stream.SUBSCRIBING
    statement = stream.subscribe(cursor) if subscribing else dml.select_statement(cursor)
    return DeclareStatement(name, statement, hold, at=at)


def fetch(cursor: Cursor) -> FetchStatement:
    at = cursor.at
    cursor.expect("FETCH")
    count: int | None = 1
    if cursor.key == "FORWARD" and cursor.peek() not in (";", ""):
        cursor.advance()
    if cursor.key == NUMBER:
        count = integer(cursor)
    elif cursor.accept("ALL"):
        count = None
    elif cursor.key == "NEXT" and cursor.peek() not in (";", ""):
        cursor.advance()
    if not cursor.accept("FROM"):
        cursor.accept("IN")
    name = identifier(cursor)
    return FetchStatement(name, count, option.with_options(cursor, option.FETCH), at=at)


def close(cursor: Cursor) -> CloseStatement:
    at = cursor.at
    cursor.expect("CLOSE")
    return CloseStatement(None if cursor.accept("ALL") else identifier(cursor), at=at)


def prepare(cursor: Cursor) -> PrepareStatement:
    at = cursor.at
    cursor.expect("PREPARE")
    name = identifier(cursor)
    types = parenthesized(cursor, data_type) if cursor.key == "(" else ()
    cursor.expect("AS")
    return PrepareStatement(name, _preparable(cursor), types, at=at)


def _preparable(cursor: Cursor) -> Preparable:
    match cursor.key:
        case "INSERT":
            return dml.insert(cursor)
        case "UPDATE":
            return dml.update(cursor)
        case "DELETE":
            return dml.delete(cursor)
        case "SUBSCRIBE" | "TAIL":
            return stream.subscribe(cursor)
        case _:
            return dml.select_statement(cursor)


def execute(cursor: Cursor) -> ExecuteStatement:
    at = cursor.at
    cursor.expect("EXECUTE")
    name = identifier(cursor)
    args: tuple[Expression, ...] = ()
    if cursor.accept("("):
        args = () if cursor.key == ")" else expressions(cursor)
        cursor.expect(")")
    return ExecuteStatement(name, args, at=at)


def deallocate(cursor: Cursor) -> DeallocateStatement:
    at = cursor.at
    cursor.expect("DEALLOCATE")
    if cursor.key == "PREPARE" and cursor.peek() not in (";", ""):
        cursor.advance()
    return DeallocateStatement(None if cursor.accept("ALL") else identifier(cursor), at=at)
