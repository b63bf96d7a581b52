"""Constants and casts."""

import re
from typing import Final

from evertide.expr.functions.cast import CastContext
from evertide.expr.numeric_value import parse_numeric
from evertide.expr.scalar import Literal, Scalar
from evertide.sql.plan.coercion import coerce, with_position
from evertide.sql.plan.data_type import resolve_type
from evertide.sql.plan.dimensions import as_many_dimensions
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.place import start_of
from evertide.sql.plan.record import cast_row
from evertide.sql.plan.registered import (
    cast_to_registered,
    cast_to_regproc,
    registered_name,
)
from evertide.sql.syntax.expression import (
    ArrayConstructor,
    Cast,
    Expression,
    ListConstructor,
    MapConstructor,
    TypedLiteral,
    TypeName,
)
from evertide.vocab.datum import Interval
from evertide.vocab.sql_type import INT4, INT8, INTERVAL, NUMERIC, UNKNOWN, Kind

_INTEGER = re.compile(r"-?(?:[0-9]+|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)")
_PLAIN_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")
_HOUR: Final = 3_600_000_000
_MINUTE: Final = 60_000_000


def number(text: str, at: int) -> Literal:
    """An integer if it is written as one and fits, else a numeric.

    >>> str(number("2147483648", 0).type), str(number("1.50", 0).type)
    ('bigint', 'numeric')
    """
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("-")
        value = int(digits, 0) if not digits.isdecimal() else int(digits)
        value = -value if text.startswith("-") else value
        if -(2**31) <= value < 2**31:
            return Literal(value, INT4)
        if -(2**63) <= value < 2**63:
            return Literal(value, INT8)
        text = str(value)
    with with_position(at):
        return Literal(parse_numeric(text.upper()), NUMERIC)


def bind_cast(node: Cast, context: ExpressionContext) -> Scalar:
    """`CAST(x AS t)` and `x::t`."""
    name = registered_name(node.target)
    if name is not None:
        operand = context.bind_node(node.operand, context)
        return cast_to_registered(name, operand, context.query, at=node.at)
    target = resolve_type(node.target, context.query)
    match target.kind, node.operand:
        case Kind.ARRAY, ArrayConstructor() if _holds_nothing(node.operand):
            return Literal((), target)
        case (Kind.LIST, ListConstructor(items=())) | (Kind.MAP, MapConstructor(entries=())):
            return Literal((), target)
    operand = context.bind_node(node.operand, context)
    if target.kind is Kind.RECORD:
        return cast_row(operand, target, context.query, at=node.at)
    match target.kind, operand:
        case Kind.REGPROC, Literal(value=str(text)) if not text.strip("-").isdecimal() and text:
            return cast_to_regproc(text, start_of(node.operand))
    wanted = as_many_dimensions(target, operand)
    return coerce(operand, wanted, CastContext.EXPLICIT, context.query, at=node.at)


def _holds_nothing(node: Expression) -> bool:
    """Whether it is `ARRAY[]`, or made of such: an array without elements has no dimensions."""
    return isinstance(node, ArrayConstructor) and all(map(_holds_nothing, node.items))


def bind_typed_literal(node: TypedLiteral, context: ExpressionContext) -> Scalar:
    """`DATE '2024-01-01'`: a constant read as that type."""
    match node.target:
        case TypeName(parts=(*_, "interval"), fields=fields) if fields:
            with with_position(node.at):
                return Literal(_interval(node.value, fields, context, node.at), INTERVAL)
        case _:
            target = resolve_type(node.target, context.query)
            text = Literal(node.value, UNKNOWN)
            return coerce(text, target, CastContext.EXPLICIT, context.query, at=node.at)


def _interval(text: str, fields: str, context: ExpressionContext, at: int) -> Interval:
    """`INTERVAL '1' DAY`: a bare number counts the last field, and smaller parts are cut off."""
    words = fields.split(" (")[0].split()
    last = words[-1]
    if _PLAIN_NUMBER.fullmatch(text):
        text = f"{text} {last}"
    elif words == ["MINUTE", "TO", "SECOND"] and text.count(":") == 1:
        text = f"0:{text}"
    parsed = coerce(Literal(text, UNKNOWN), INTERVAL, CastContext.EXPLICIT, context.query, at=at)
    assert isinstance(parsed, Literal), "a constant is read at once"
    assert isinstance(parsed.value, Interval), "as an interval"
    return _cut(parsed.value, last)


def _cut(interval: Interval, last: str) -> Interval:
    """The interval without the parts below its last field."""
    months, days, micros = interval
    match last:
        case "YEAR":
            return Interval(months - _rest(months, 12), 0, 0)
        case "MONTH":
            return Interval(months, 0, 0)
        case "DAY":
            return Interval(months, days, 0)
        case "HOUR":
            return Interval(months, days, micros - _rest(micros, _HOUR))
        case "MINUTE":
            return Interval(months, days, micros - _rest(micros, _MINUTE))
        case _:
            return interval


def _rest(value: int, unit: int) -> int:
    """What is left over a multiple of the unit, towards zero."""
    return value % unit if value >= 0 else -(-value % unit)
