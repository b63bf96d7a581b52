"""WITH MUTUALLY RECURSIVE: its limit, and queries whose columns have types."""

from collections.abc import Callable
from typing import Literal

from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import comma_separated, identifier, integer, parenthesized
from evertide.sql.parser.type_name import data_type
from evertide.sql.syntax.expression import DataType
from evertide.sql.syntax.query import CommonTable, Query, RecursionLimit, With
from evertide.vocab.errors import SqlSyntaxError


def mutually_recursive(cursor: Cursor, query: Callable[[Cursor], Query], at: int) -> With:
    """What follows WITH; `query` reads a whole query."""
    cursor.expect("MUTUALLY")
    cursor.expect("RECURSIVE")
    limit = _limit(cursor) if cursor.key == "(" else None
    tables = comma_separated(cursor, lambda place: _table(place, query))
    return With(tables, mutually=True, limit=limit, at=at)


def _limit(cursor: Cursor) -> RecursionLimit:
    """`([RETURN AT | ERROR AT] RECURSION LIMIT n)`; without a word for it, it is an error."""
    at = cursor.at
    cursor.expect("(")
    action: Literal["ERROR", "RETURN"] = "ERROR"
    if cursor.key in ("RETURN", "ERROR"):
        action = "RETURN" if cursor.key == "RETURN" else "ERROR"
        cursor.advance()
        cursor.expect("AT")
    cursor.expect("RECURSION")
    cursor.expect("LIMIT")
    cursor.accept("=")
    number_at = cursor.at
    iterations = integer(cursor)
    if not iterations:
        raise SqlSyntaxError("recursion limit must be greater than 0", position=number_at + 1)
    cursor.expect(")")
    return RecursionLimit(iterations, action, at=at)


def _table(cursor: Cursor, query: Callable[[Cursor], Query]) -> CommonTable:
    at = cursor.at
    name = identifier(cursor)
    columns = parenthesized(cursor, _column)
    cursor.expect("AS")
    cursor.expect("(")
    body = query(cursor)
    cursor.expect(")")
    names, types = zip(*columns, strict=True)
    return CommonTable(name, names, body, types, at=at)


def _column(cursor: Cursor) -> tuple[str, DataType]:
    return identifier(cursor), data_type(cursor)
