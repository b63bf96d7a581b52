"""What stands in FROM: relations, subqueries, functions and joins of them."""

from __future__ import annotations

from typing import Final, Literal

from evertide.sql.lexer import QUOTED
from evertide.sql.parser import call, expression, query, show
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.keywords import NILADIC, NOT_BARE_ALIASES, QUERY_START
from evertide.sql.parser.names import (
    comma_separated,
    function_name_allowed,
    identifier,
    is_name,
    is_word,
    label,
    optional_columns,
    parenthesized,
    take_word,
)
from evertide.sql.syntax.expression import FunctionCall, Name
from evertide.sql.syntax.query import (
    FunctionTable,
    Join,
    JoinConstraint,
    JoinNatural,
    JoinOn,
    JoinUsing,
    ShowTable,
    Subquery,
    TableAlias,
    TableExpression,
    TableRef,
)

JoinKind = Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]


def table_expressions(cursor: Cursor) -> tuple[TableExpression, ...]:
    return comma_separated(cursor, table_expression)


def table_expression(cursor: Cursor) -> TableExpression:
    """One item of FROM with the joins that follow it, from the left."""
    outer_height, cursor.height = cursor.height, 0
    left = _operand(cursor)
    while (found := _join_kind(cursor)) is not None:
        kind, natural, at = found
        right = _operand(cursor)
        left = Join(kind, left, right, _constraint(cursor, kind, natural), at=at)
        cursor.raise_height()
    cursor.height = max(outer_height, cursor.height)
    return left


def _join_kind(cursor: Cursor) -> tuple[JoinKind, bool, int] | None:
    """Steps over the words of a join, if one begins here: its kind, whether NATURAL, its offset."""
    at = cursor.at
    if cursor.key == "CROSS":
        cursor.expect("CROSS", "JOIN")
        return "CROSS", False, at
    natural = cursor.accept("NATURAL")
    kind = _KINDS.get(cursor.key)
    if kind is None:
        if natural or cursor.key == "JOIN":
            cursor.expect("JOIN")
            return "INNER", natural, at
        return None
    cursor.advance()
    if kind != "INNER":
        cursor.accept("OUTER")
    cursor.expect("JOIN")
    return kind, natural, at


def _constraint(cursor: Cursor, kind: JoinKind, natural: bool) -> JoinConstraint | None:
    at = cursor.at
    if kind == "CROSS":
        return None
    if natural:
        return JoinNatural(at=at)
    if cursor.accept("ON"):
        return JoinOn(expression.expression(cursor), at=at)
    if cursor.accept("USING"):
        columns = parenthesized(cursor, identifier)
        alias = identifier(cursor) if cursor.accept("AS") else None
        return JoinUsing(columns, alias, at=at)
    cursor.fail("one of ON or USING")


def _operand(cursor: Cursor) -> TableExpression:
    at = cursor.at
    lateral = cursor.accept("LATERAL")
    if cursor.key == "(" and cursor.peek() == "SHOW" and not lateral:
        cursor.expect("(")
        shown = show.show(cursor)
        cursor.expect(")")
        return ShowTable(shown, _alias(cursor), at=at)
    if cursor.key == "(":
        return _parenthesized(cursor, lateral, at)
    if cursor.key == "ROWS" and cursor.peek() == "FROM":
        cursor.expect("ROWS", "FROM")
        return _function_table(cursor, parenthesized(cursor, _function), lateral, at)
    if not function_name_allowed(cursor.key) and cursor.key not in NILADIC:
        cursor.fail("identifier")
    if lateral or cursor.key in NILADIC:
        return _function_table(cursor, (_function(cursor),), lateral, at)
    named = is_name(cursor.key)
    if not named and cursor.peek() != "(":
        cursor.fail("identifier")
    name = _name(cursor)
    if cursor.key == "(":
        return _function_table(cursor, (call.call(cursor, name),), lateral, at)
    return TableRef(name, _alias(cursor), at=at)


def _name(cursor: Cursor) -> Name:
    at = cursor.at
    parts = [take_word(cursor)]
    while cursor.accept("."):
        parts.append(label(cursor))
    return Name(tuple(parts), at=at)


def _function(cursor: Cursor) -> FunctionCall:
    if cursor.key in NILADIC:
        return call.niladic(cursor)
    if not function_name_allowed(cursor.key):
        cursor.fail("a function call")
    name = _name(cursor)
    if cursor.key != "(":
        cursor.fail("left parenthesis")
    return call.call(cursor, name)


def _function_table(
    cursor: Cursor, calls: tuple[FunctionCall, ...], lateral: bool, at: int
) -> FunctionTable:
    ordinality = cursor.accept_words("WITH", "ORDINALITY")
    return FunctionTable(calls, _alias(cursor), ordinality, lateral, at=at)


def _parenthesized(cursor: Cursor, lateral: bool, at: int) -> TableExpression:
    """A subquery or a join. An inner `(SELECT ...)` may begin either; what follows it tells."""
    cursor.enter(2)
    cursor.expect("(")
    if lateral or cursor.key in QUERY_START:
        result: TableExpression = Subquery(query.query(cursor), lateral=lateral, at=at)
    else:
        result = table_expression(cursor)
        if isinstance(result, Subquery) and result.alias is None and not result.lateral:
            result = Subquery(query.query_after(cursor, result.query), at=at)
        elif not isinstance(result, Join) or result.alias is not None:
            cursor.fail("joined table")
    cursor.expect(")")
    cursor.depth -= 2
    alias = _alias(cursor)
    match result:
        case Subquery():
            return Subquery(result.query, alias, lateral, at=at)
        case Join() if alias is not None:
            return Join(
                result.kind, result.left, result.right, result.constraint, alias, at=result.at
            )
        case _:
            return result


def _alias(cursor: Cursor) -> TableAlias | None:
    at = cursor.at
    if cursor.key == "AS" and cursor.peek() != "OF":
        cursor.advance()
        name = identifier(cursor)
    elif cursor.key == QUOTED or (is_word(cursor.key) and cursor.key not in NOT_BARE_ALIASES):
        name = take_word(cursor)
    else:
        return None
    return TableAlias(name, optional_columns(cursor), at=at)


def optional_alias(cursor: Cursor) -> str | None:
    """The alias of a table that is written to; it cannot rename columns."""
    if cursor.accept("AS"):
        return identifier(cursor)
    if cursor.key == QUOTED or (is_word(cursor.key) and cursor.key not in NOT_BARE_ALIASES):
        return take_word(cursor)
    return None


_KINDS: Final[dict[str, JoinKind]] = {
    "INNER": "INNER",
    "LEFT": "LEFT",
    "RIGHT": "RIGHT",
    "FULL": "FULL",
}
