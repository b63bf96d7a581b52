"""Function calls: plain ones, those that SQL writes with words instead of commas, and windows.

Every form becomes a plain FunctionCall of the function PostgreSQL uses for it, with its arguments
in that function's order, so nothing later need know the special spellings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from evertide.sql.lexer import NUMBER, QUOTED, STRING
from evertide.sql.parser import expression, precedence, query
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import identifier, is_name, is_word, take_word
from evertide.sql.syntax.expression import (
    Expression,
    FrameBound,
    FunctionCall,
    Name,
    NumberLiteral,
    StringLiteral,
    Window,
    WindowFrame,
)
from evertide.vocab.errors import SqlSyntaxError


def call(cursor: Cursor, name: Name) -> FunctionCall:
    """A call whose name has been read; the cursor is at its parenthesis."""
    cursor.enter(1)
    special = _SPECIAL.get(name.parts[0]) if len(name.parts) == 1 else None
    if special is not None and cursor.keys[cursor.index - 1] != QUOTED:
        cursor.expect("(")
        function, args = special(cursor, name.parts[0])
        cursor.expect(")")
        result = FunctionCall(Name((function,), at=name.at), args, at=name.at)
    else:
        result = _plain_call(cursor, name)
    cursor.depth -= 1
    return result


def _plain_call(cursor: Cursor, name: Name) -> FunctionCall:
    cursor.expect("(")
    star = distinct = False
    args: tuple[Expression, ...] = ()
    if cursor.key == "*" and cursor.peek() == ")":
        cursor.advance()
        star = True
    elif cursor.key != ")":
        distinct = cursor.accept("DISTINCT")
        if not distinct:
            cursor.accept("ALL")
        args = expression.expressions(cursor)
    order_by = query.order_by(cursor)
    cursor.expect(")")
    filter_ = None
    if cursor.key == "FILTER" and cursor.peek() == "(":
        cursor.expect("FILTER", "(", "WHERE")
        filter_ = expression.expression(cursor)
        cursor.expect(")")
    ignore_nulls = _ignores_nulls(cursor)
    over = _over(cursor) if cursor.key == "OVER" else None
    return FunctionCall(
        name, args, star, distinct, order_by, filter_, over, ignore_nulls, at=name.at
    )


def _ignores_nulls(cursor: Cursor) -> bool:
    """What a window function does with NULLs; RESPECT NULLS is what it does anyway."""
    if cursor.peek(2) != "OVER":  # then the word is a column's name
        return False
    cursor.accept_words("RESPECT", "NULLS")
    return cursor.accept_words("IGNORE", "NULLS")


def niladic(cursor: Cursor) -> FunctionCall:
    """CURRENT_DATE and its kin, which stand without parentheses but may have them."""
    at = cursor.at
    name = Name((take_word(cursor),), at=at)
    if cursor.key != "(":
        return FunctionCall(name, at=at)
    cursor.expect("(")
    args: tuple[Expression, ...] = ()
    if cursor.key != ")":
        args = expression.expressions(cursor)
    cursor.expect(")")
    return FunctionCall(name, args, at=at)


def _over(cursor: Cursor) -> Window | None:
    if cursor.peek() != "(" and not is_name(cursor.peek()):
        return None
    cursor.expect("OVER")
    at = cursor.at
    if cursor.key != "(":
        return Window(base=identifier(cursor), bare=True, at=at)
    return window(cursor)


def window(cursor: Cursor) -> Window:
    """A window definition in parentheses."""
    at = cursor.at
    cursor.expect("(")
    base = None
    if is_name(cursor.key) and cursor.key not in ("PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"):
        base = identifier(cursor)
    partition_by: tuple[Expression, ...] = ()
    if cursor.accept("PARTITION"):
        cursor.expect("BY")
        partition_by = expression.expressions(cursor)
    order_by = query.order_by(cursor)
    frame = _frame(cursor) if cursor.key in ("ROWS", "RANGE", "GROUPS") else None
    cursor.expect(")")
    return Window(base, partition_by, order_by, frame, at=at)


def _frame(cursor: Cursor) -> WindowFrame:
    at = cursor.at
    unit = _UNITS[cursor.key]
    cursor.advance()
    if cursor.accept("BETWEEN"):
        start = _bound(cursor, unit)
        cursor.expect("AND")
        return WindowFrame(unit, start, _bound(cursor, unit), at=at)
    return WindowFrame(unit, _bound(cursor, unit), None, at=at)


def _bound(cursor: Cursor, unit: str) -> FrameBound:
    at = cursor.at
    if cursor.accept_words("CURRENT", "ROW"):
        return FrameBound("CURRENT ROW", at=at)
    offset = None
    if not cursor.accept("UNBOUNDED"):
        offset = expression.expression(cursor) if unit == "RANGE" else _rows_away(cursor)
    if cursor.accept("PRECEDING"):
        return FrameBound("PRECEDING", offset, at=at)
    cursor.expect("FOLLOWING")
    return FrameBound("FOLLOWING", offset, at=at)


def _rows_away(cursor: Cursor) -> NumberLiteral:
    """Frames are part of a plan's shape, so their offsets are known before any row is."""
    at = cursor.at
    if cursor.key != NUMBER:
        cursor.fail("literal unsigned integer")
    digits = cursor.advance()
    if not digits.isdecimal():
        raise SqlSyntaxError(
            f"Could not parse '{digits}' as u64: invalid digit found in string", position=at + 1
        )
    return NumberLiteral(digits, at=at)


Special = tuple[str, tuple[Expression, ...]]


def _rest(cursor: Cursor, first: Expression) -> tuple[Expression, ...]:
    """The plain form after all: more arguments behind commas."""
    return (first, *expression.expressions(cursor)) if cursor.accept(",") else (first,)


def _extract(cursor: Cursor, name: str) -> Special:
    """`extract(field FROM x)`: the field is a word, but the function takes it as text."""
    if cursor.peek() != "FROM":
        return name, expression.expressions(cursor)
    at = cursor.at
    if cursor.key not in (STRING, QUOTED) and not is_word(cursor.key):
        cursor.fail("a date or time field")
    field = StringLiteral(take_word(cursor), at=at)
    cursor.expect("FROM")
    return name, (field, expression.expression(cursor))


def _position(cursor: Cursor, name: str) -> Special:
    """`position(part IN whole)`."""
    first = expression.expression(cursor, precedence.MATCH + 1)
    if cursor.accept("IN"):
        return name, (expression.expression(cursor, precedence.MATCH + 1), first)
    return name, _rest(cursor, first)


def _substring(cursor: Cursor, name: str) -> Special:
    """`substring(x FROM start FOR length)`; either clause may be absent or come first."""
    first = expression.expression(cursor)
    start = length = None
    if cursor.key not in ("FROM", "FOR"):
        return name, _rest(cursor, first)
    if cursor.accept("FROM"):
        start = expression.expression(cursor)
        length = expression.expression(cursor) if cursor.accept("FOR") else None
    elif cursor.accept("FOR"):
        length = expression.expression(cursor)
        start = expression.expression(cursor) if cursor.accept("FROM") else None
    if start is None:
        start = NumberLiteral("1")
    return name, (first, start) if length is None else (first, start, length)


def _trim(cursor: Cursor, _: str) -> Special:
    """`trim([side] [characters] FROM x)`, where nearly every part may be absent."""
    function = _TRIM_SIDES.get(cursor.key, "btrim")
    if cursor.key in _TRIM_SIDES:
        cursor.advance()
    if cursor.accept("FROM"):
        return function, expression.expressions(cursor)
    first = expression.expression(cursor)
    if cursor.accept("FROM"):
        return function, (*expression.expressions(cursor), first)
    return function, _rest(cursor, first)


def _overlay(cursor: Cursor, name: str) -> Special:
    """`overlay(x PLACING y FROM start FOR length)`."""
    first = expression.expression(cursor)
    if not cursor.accept("PLACING"):
        return name, _rest(cursor, first)
    args = [first, expression.expression(cursor)]
    cursor.expect("FROM")
    args.append(expression.expression(cursor))
    if cursor.accept("FOR"):
        args.append(expression.expression(cursor))
    return name, tuple(args)


_SPECIAL: Final[dict[str, Callable[[Cursor, str], Special]]] = {
    "extract": _extract,
    "position": _position,
    "substring": _substring,
    "trim": _trim,
    "overlay": _overlay,
}
_TRIM_SIDES: Final = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_UNITS: Final[dict[str, Literal["ROWS", "RANGE", "GROUPS"]]] = {
    "ROWS": "ROWS",
    "RANGE": "RANGE",
    "GROUPS": "GROUPS",
}
