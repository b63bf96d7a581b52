"""Expressions: one loop over operators by precedence.

The loop, not recursion, reads chains, so `1 + 1 + ...` costs no frames; see cursor.py for the
limit on the tree that results. Expressions hold queries and queries hold expressions, so these
modules import each other, as modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from evertide.sql.lexer import LITERAL_LIST, OPERATOR_START
from evertide.sql.parser import precedence, primary, query
from evertide.sql.parser.cursor import HEIGHT_LIMIT, Cursor
from evertide.sql.parser.keywords import QUERY_START
from evertide.sql.parser.names import comma_separated, label, qualified_name
from evertide.sql.parser.type_name import data_type
from evertide.sql.syntax.expression import (
    And,
    AnyAll,
    Between,
    Binary,
    Cast,
    Collate,
    Expression,
    FieldAccess,
    FunctionCall,
    InList,
    InSubquery,
    IsDistinct,
    IsTest,
    Name,
    Or,
    PatternMatch,
    RowStar,
    ScalarSubquery,
    Slice,
    Subscript,
)
from evertide.sql.syntax.query import Query

Infix = Callable[[Cursor, Expression], Expression]


def expression(cursor: Cursor, floor: int = 0) -> Expression:
    """An expression whose operators all bind at least as tightly as `floor`."""
    cursor.enter(1)
    outer_height, cursor.height = cursor.height, 0
    left = primary.primary(cursor)
    height = cursor.height + 1
    barred = -1  # comparisons do not chain: after `a < b`, no operator of that level may follow
    while True:
        level, read, chains = _operator(cursor)
        if level < floor or level == barred:
            break
        left = read(cursor, left)
        barred = -1 if chains else level
        # A call holds its operands in a tuple, which costs those who compare trees a level more.
        height = max(height, cursor.height) + (2 if read is _at_time_zone else 1)
        if height > HEIGHT_LIMIT:
            cursor.refuse_height()
    cursor.height = max(outer_height, height)
    cursor.depth -= 1
    return left


def expressions(cursor: Cursor) -> tuple[Expression, ...]:
    return comma_separated(cursor, expression)


def inside_parentheses(cursor: Cursor) -> Query | tuple[Expression, ...]:
    """`(query)` or `(expression, ...)`.

    Only what follows an inner `(SELECT ...)` tells whether it is the first arm of a UNION or an
    operand. It is read as an operand, and taken back as a query if a query's clause follows.
    """
    cursor.expect("(")
    result: Query | tuple[Expression, ...]
    if cursor.key in QUERY_START:
        result = query.query(cursor)
    else:
        first = expression(cursor)
        if isinstance(first, ScalarSubquery) and cursor.key != ",":
            result = query.query_after(cursor, first.query)
        else:
            result = (first, *expressions(cursor)) if cursor.accept(",") else (first,)
    cursor.expect(")")
    return result


def _operator(cursor: Cursor) -> tuple[int, Infix, bool]:
    """The level of the operator at the cursor, how to read it, and whether it may be repeated."""
    key = cursor.key
    found = _INFIX.get(key)
    if found is not None:
        return found
    if key[:1] in OPERATOR_START and key != "=>":
        return precedence.OTHER, _binary, True
    if key == "NOT" and cursor.peek() in _NEGATABLE:
        return _NEGATABLE[cursor.peek()]
    if key == "AT" and cursor.peek() == "TIME":
        return precedence.AT_TIME_ZONE, _at_time_zone, True
    if key == "OPERATOR" and cursor.peek() == "(":
        return precedence.OTHER, _binary, True
    return _NO_OPERATOR


def _binary(cursor: Cursor, left: Expression) -> Expression:
    at = cursor.at
    operator, schema = take_operator(cursor)
    if cursor.key in ("ANY", "SOME", "ALL") and cursor.peek() == "(":
        return _any_all(cursor, left, operator, schema, at)
    right = expression(cursor, precedence.binary_precedence(operator, schema) + 1)
    return Binary(operator, left, right, schema, at=at)


def take_operator(cursor: Cursor) -> tuple[str, tuple[str, ...]]:
    """An operator, with its schema if it is written OPERATOR(schema.x)."""
    if not cursor.accept("OPERATOR"):
        operator = cursor.key
        cursor.advance()
        return operator, ()
    cursor.expect("(")
    schema: list[str] = []
    while cursor.key[:1] not in OPERATOR_START:
        schema.append(label(cursor, "operator"))
        cursor.expect(".")
    operator = cursor.key
    cursor.advance()
    cursor.expect(")")
    # Without a schema it must not bind like the bare operator, so it is given the one it has.
    return operator, tuple(schema) or ("pg_catalog",)


def _any_all(
    cursor: Cursor, left: Expression, operator: str, schema: tuple[str, ...], at: int
) -> AnyAll:
    quantifier: Literal["ANY", "ALL"] = "ALL" if cursor.key == "ALL" else "ANY"
    cursor.advance()
    match inside_parentheses(cursor):
        case (source,):
            pass
        case Query() as source:
            pass
        case _:
            cursor.fail("right parenthesis")
    return AnyAll(left, operator, quantifier, source, schema, at=at)


def _and(cursor: Cursor, left: Expression) -> And:
    at = cursor.at
    terms = [left]
    while cursor.accept("AND"):
        terms.append(expression(cursor, precedence.AND + 1))
    return And(tuple(terms), at=at)


def _or(cursor: Cursor, left: Expression) -> Or:
    at = cursor.at
    terms = [left]
    while cursor.accept("OR"):
        terms.append(expression(cursor, precedence.OR + 1))
    return Or(tuple(terms), at=at)


def _is(cursor: Cursor, left: Expression) -> Expression:
    at = cursor.at
    cursor.expect("IS")
    negated = cursor.accept("NOT")
    if cursor.accept("DISTINCT"):
        cursor.expect("FROM")
        right = expression(cursor, precedence.IS + 1)
        return IsDistinct(left, right, negated, at=at)
    test = _TESTS.get(cursor.key)
    if test is None:
        cursor.fail(
            "NULL, NOT NULL, TRUE, NOT TRUE, FALSE, NOT FALSE, UNKNOWN, NOT UNKNOWN after IS"
        )
    cursor.advance()
    return IsTest(left, test, negated, at=at)


def _is_null(cursor: Cursor, left: Expression) -> IsTest:
    at = cursor.at
    negated = cursor.key == "NOTNULL"
    cursor.advance()
    return IsTest(left, "NULL", negated, at=at)


def _in(cursor: Cursor, left: Expression) -> Expression:
    at = cursor.at
    negated = cursor.accept("NOT")
    cursor.expect("IN")
    if cursor.key == LITERAL_LIST:
        found = cursor.tokens.literal_rows[cursor.index]
        cursor.advance()
        return InList(left, found, negated, at=at)
    match inside_parentheses(cursor):
        case Query() as subquery:
            return InSubquery(left, subquery, negated, at=at)
        case items:
            return InList(left, items, negated, at=at)


def _between(cursor: Cursor, left: Expression) -> Between:
    at = cursor.at
    negated = cursor.accept("NOT")
    cursor.expect("BETWEEN")
    symmetric = cursor.accept("SYMMETRIC")
    if not symmetric:
        cursor.accept("ASYMMETRIC")
    low = expression(cursor, precedence.MATCH + 1)
    cursor.expect("AND")
    high = expression(cursor, precedence.MATCH + 1)
    return Between(left, low, high, negated, symmetric, at=at)


def _match(cursor: Cursor, left: Expression) -> Expression:
    at = cursor.at
    negated = cursor.accept("NOT")
    kind = _PATTERNS[cursor.key]
    cursor.advance()
    if kind == "SIMILAR TO":
        cursor.expect("TO")
    elif cursor.key in ("ANY", "SOME", "ALL") and cursor.peek() == "(":
        operator = ("!~~" if negated else "~~") + ("*" if kind == "ILIKE" else "")
        return _any_all(cursor, left, operator, (), at)
    pattern = expression(cursor, precedence.MATCH + 1)
    escape = expression(cursor, precedence.MATCH + 1) if cursor.accept("ESCAPE") else None
    return PatternMatch(left, pattern, kind, escape, negated, at=at)


def _at_time_zone(cursor: Cursor, left: Expression) -> FunctionCall:
    at = cursor.at
    cursor.expect("AT", "TIME", "ZONE")
    zone = expression(cursor, precedence.AT_TIME_ZONE + 1)
    return FunctionCall(Name(("timezone",), at=at), (zone, left), at=at)


def _collate(cursor: Cursor, left: Expression) -> Collate:
    at = cursor.at
    cursor.expect("COLLATE")
    return Collate(left, qualified_name(cursor), at=at)


def _cast(cursor: Cursor, left: Expression) -> Cast:
    at = cursor.at
    cursor.expect("::")
    return Cast(left, data_type(cursor), at=at)


def _subscript(cursor: Cursor, left: Expression) -> Subscript:
    at = cursor.at
    cursor.expect("[")
    lower = None if cursor.key == ":" else expression(cursor)
    if lower is not None and cursor.key != ":":
        cursor.expect("]")
        return Subscript(left, lower, at=at)
    cursor.expect(":")
    upper = None if cursor.key == "]" else expression(cursor)
    cursor.expect("]")
    return Subscript(left, Slice(lower, upper, at=at), at=at)


def _field(cursor: Cursor, left: Expression) -> Expression:
    """Names take their own dots, so what stands before this one is another kind of expression."""
    at = cursor.at
    cursor.expect(".")
    if cursor.accept("*"):
        return RowStar(left, at=at)
    return FieldAccess(left, label(cursor), at=at)


def _none(_cursor: Cursor, _left: Expression) -> Expression:
    raise AssertionError("the level below every floor keeps this from being called")


_TESTS: Final[dict[str, Literal["NULL", "TRUE", "FALSE", "UNKNOWN"]]] = {
    "NULL": "NULL",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "UNKNOWN": "UNKNOWN",
}
_PATTERNS: Final[dict[str, Literal["LIKE", "ILIKE", "SIMILAR TO"]]] = {
    "LIKE": "LIKE",
    "ILIKE": "ILIKE",
    "SIMILAR": "SIMILAR TO",
}
_NO_OPERATOR: Final[tuple[int, Infix, bool]] = (-2, _none, True)
_NEGATABLE: Final[dict[str, tuple[int, Infix, bool]]] = {
    "IN": (precedence.MATCH, _in, True),
    "LIKE": (precedence.MATCH, _match, False),
    "ILIKE": (precedence.MATCH, _match, False),
    "SIMILAR": (precedence.MATCH, _match, False),
    "BETWEEN": (precedence.MATCH, _between, False),
}
_INFIX: Final[dict[str, tuple[int, Infix, bool]]] = {
    **{
        operator: (level, _binary, level != precedence.COMPARISON)
        for operator, level in precedence.OPERATORS.items()
    },
    **_NEGATABLE,
    "AND": (precedence.AND, _and, True),
    "OR": (precedence.OR, _or, True),
    "IS": (precedence.IS, _is, True),
    "ISNULL": (precedence.IS, _is_null, True),
    "NOTNULL": (precedence.IS, _is_null, True),
    "COLLATE": (precedence.COLLATE, _collate, True),
    "::": (precedence.POSTFIX, _cast, True),
    "[": (precedence.POSTFIX, _subscript, True),
    ".": (precedence.POSTFIX, _field, True),
}
