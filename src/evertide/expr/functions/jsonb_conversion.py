"""jsonb from other types (to_jsonb) and back (casts)."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from evertide.expr.float_text import float4_text, float8_text, to_float4
from evertide.expr.functions.build import Body, partial, total
from evertide.expr.functions.conversion import numeric_to_integer
from evertide.expr.functions.jsonb import type_name
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import (
    ARRAYS,
    FLOATS,
    INTEGERS,
    LISTS,
    SCALARS,
    SIGNED,
)
from evertide.expr.json_value import dump_json, parse_jsonb, read_canonical
from evertide.expr.numeric_value import numeric_text, parse_numeric
from evertide.expr.text_output import formatter
from evertide.vocab.datum import Datum, Row, reduce_numeric
from evertide.vocab.errors import InvalidParameterValue
from evertide.vocab.sql_type import (
    BOOL,
    FLOAT4,
    FLOAT8,
    JSONB,
    NUMERIC,
    Kind,
    SqlType,
)


def _number(value: Decimal) -> str:
    """JSON has no NaN and no infinities: they become strings."""
    return numeric_text(value) if value.is_finite() else f'"{numeric_text(value)}"'


def _float(write: Callable[[float], str]) -> Body:
    """The digits that the float's own text has."""

    def body(value: float) -> str:
        text = write(value)
        return numeric_text(parse_numeric(text)) if math.isfinite(value) else f'"{text}"'

    return body


def to_jsonb(sql_type: SqlType) -> Body:
    """The body of to_jsonb for a type."""
    if sql_type == JSONB or sql_type in INTEGERS:
        return str
    if sql_type == BOOL:
        return lambda value: "true" if value else "false"
    if sql_type == NUMERIC:
        return _number
    if sql_type in FLOATS:
        return _float(float4_text if sql_type == FLOAT4 else float8_text)
    if sql_type.kind is Kind.MAP and sql_type.element is not None:
        return _object(to_jsonb(sql_type.element))
    if sql_type.element is not None:
        return _sequence(to_jsonb(sql_type.element))
    if sql_type.fields is not None:
        return _record([(name, to_jsonb(field)) for name, field in sql_type.fields])
    write = formatter(sql_type)
    return lambda value: dump_json(write(value))


def _sequence(element: Body) -> Body:
    def body(values: tuple[Datum, ...]) -> str:
        parts = ["null" if value is None else str(element(value)) for value in values]
        return f"[{','.join(parts)}]"

    return body


def _object(value: Body) -> Body:
    def body(pairs: tuple[tuple[str, Datum], ...]) -> str:
        shown = [(key, "null" if held is None else str(value(held))) for key, held in pairs]
        return parse_jsonb(_braces(shown))

    return body


def _record(fields: Sequence[tuple[str, Body]]) -> Body:
    def body(row: Row) -> str:
        shown = [
            (name, "null" if datum is None else str(write(datum)))
            for (name, write), datum in zip(fields, row, strict=True)
        ]
        return parse_jsonb(_braces(shown))

    return body


def _braces(pairs: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{dump_json(key)}:{value}" for key, value in pairs) + "}"


def _refusal(kind: str, target: SqlType) -> InvalidParameterValue:
    return InvalidParameterValue(f"cannot cast jsonb {kind} to type {target}")


def _to_number(target: SqlType, convert: Callable[[Decimal], Datum]) -> Body:
    def body(value: str) -> Datum:
        parsed = read_canonical(value)
        if not isinstance(parsed, Decimal):
            raise _refusal(type_name(parsed), target)
        return convert(parsed)

    return body


def _to_bool(value: str) -> bool:
    parsed = read_canonical(value)
    if not isinstance(parsed, bool):
        raise _refusal(type_name(parsed), BOOL)
    return parsed


def _to_float4(value: Decimal) -> float:
    return to_float4(float(value))


_NUMBERS: Final[dict[SqlType, Callable[[Decimal], Datum]]] = {
    **{target: numeric_to_integer(target) for target in SIGNED},
    FLOAT4: _to_float4,
    FLOAT8: float,
    NUMERIC: reduce_numeric,
}

# JSON refuses to hold floats beyond what a numeric holds.
_FALLIBLE: Final = FLOATS


def to_jsonb_row(sql_type: SqlType) -> ScalarFunction:
    """to_jsonb of one type."""
    element = sql_type
    while element.element is not None:
        element = element.element
    make = partial if element in _FALLIBLE else total
    return make("to_jsonb", (sql_type,), JSONB, to_jsonb(sql_type))


CASTS: Final = (
    partial("bool", (JSONB,), BOOL, _to_bool),
    *(
        partial(target.kind.value, (JSONB,), target, _to_number(target, convert))
        for target, convert in _NUMBERS.items()
    ),
)

ROWS: Final = tuple(to_jsonb_row(t) for t in (*SCALARS, *ARRAYS, *LISTS))
