"""WITH MUTUALLY RECURSIVE: its limit, and queries whose columns have types."""

from collections.abc import Callable
from typing import Final, Literal

from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import comma_separated, identifier, integer, parenthesized
from evertide.sql.parser.type_name import data_type
from evertide.sql.syntax.expression import DataType
from evertide.sql.syntax.query import CommonTable, Query, RecursionLimit, With
from evertide.vocab.errors import SqlSyntaxError

_INVALID: Final = "Invalid WITH MUTUALLY RECURSIVE recursion limit."


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
    options = parenthesized(cursor, _option)
    words = [word for word, _ in options]
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise SqlSyntaxError(f"{twice} specified more than once", position=at + 1)
    if len(options) > 1:
        raise SqlSyntaxError(
            f"{_INVALID} More than one recursion limit given. Please give at most one of"
            " RECURSION LIMIT, ERROR AT RECURSION LIMIT, RETURN AT RECURSION LIMIT.",
            position=at + 1,
        )
    ((word, iterations),) = options
    if not iterations:
        raise SqlSyntaxError(
            f"{_INVALID} Recursion limit has to be greater than 0.", position=at + 1
        )
    action: Literal["ERROR", "RETURN"] = "RETURN" if word.startswith("RETURN") else "ERROR"
    return RecursionLimit(iterations, action, at=at)


def _option(cursor: Cursor) -> tuple[str, int]:
    """A limit by its words, and its number."""
    if cursor.key not in ("RECURSION", "RETURN", "ERROR"):
        cursor.fail("one of RECURSION or RETURN or ERROR")
    words = [cursor.key]
    cursor.advance()
    if words != ["RECURSION"]:
        cursor.expect("AT", "RECURSION")
        words += ["AT", "RECURSION"]
    cursor.expect("LIMIT")
    cursor.accept("=")
    return " ".join([*words, "LIMIT"]), integer(cursor)


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
