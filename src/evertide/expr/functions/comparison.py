"""Comparison: = <> < <= > >=, IS DISTINCT FROM, greatest and least, for every type.

Types whose Spark encoding compares as SQL compares are lowered to the plain operator. NaN equals
NaN and is the greatest, -0 equals 0, intervals compare by their span, jsonb by PostgreSQL's order.
"""

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias

from evertide.expr.functions.build import total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import ARRAYS, BPCHAR, LISTS, REGISTERED, SCALARS, VARCHAR
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.sql_type import (
    BOOL,
    FLOAT4,
    FLOAT8,
    INTERVAL,
    JSONB,
    NUMERIC,
    RANGE_BASES,
    Kind,
    SqlType,
)

# Whoever takes a row takes it for its argument types, so bodies do not repeat them.
Test: TypeAlias = Callable[..., bool]
SortKey: TypeAlias = Callable[..., object]

OPERATORS: Final[dict[str, Test]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

# Compared by their keys.
_BY_KEY: Final = frozenset({Kind.ARRAY, Kind.LIST, Kind.MAP, *RANGE_BASES})
# Compared as text and as oid: rows of their own would only make overloads ambiguous.
_WITHOUT_ROWS: Final = (VARCHAR, *REGISTERED)
COMPARED: Final = tuple(t for t in SCALARS if t not in _WITHOUT_ROWS)
# Those whose columns compare as they lie.
IN_COLUMNS: Final = tuple(t for t in COMPARED if t.kind not in RANGE_BASES)


def sort_key(sql_type: SqlType) -> SortKey | None:
    """A stand-in that Python compares as SQL compares the datum; None: the datum itself."""
    if sql_type in (FLOAT4, FLOAT8, NUMERIC):
        return _number_key
    if sql_type == INTERVAL:
        return Interval.span_micros
    if sql_type == BPCHAR:
        return _without_padding
    if sql_type == JSONB or sql_type.kind in _BY_KEY or sql_type.fields is not None:
        return key_encoder(sql_type)
    return None


def _number_key(number: float | Decimal) -> tuple[bool, float | Decimal]:
    return (True, 0.0) if number != number else (False, number)


def _without_padding(text: str) -> str:
    return text.rstrip(" ")


def _test(sql_type: SqlType, name: str) -> Test:
    """The body of one operator. Numbers are compared as such unless one of them is NaN."""
    compare = OPERATORS[name]
    key = sort_key(sql_type)
    if key is None or (sql_type == JSONB and name in ("=", "<>")):
        return compare  # canonical text is equal where jsonb is
    if key is _number_key:
        return lambda a, b: (
            compare(a, b) if a == a and b == b else compare(_number_key(a), _number_key(b))
        )
    return lambda a, b: compare(key(a), key(b))


_SPAN: Final = "((cast({0}.months as decimal(38,0)) * 30 + {0}.days) * 86400000000 + {0}.micros)"


def _lowering(sql_type: SqlType, name: str) -> str | None:
    if sql_type == INTERVAL:
        return f"{_SPAN} {name} {_SPAN.replace('{0}', '{1}')}"
    if sql_type == BPCHAR:
        return f"rtrim({{0}}) {name} rtrim({{1}})"
    if sql_type.kind in _BY_KEY or (sql_type == JSONB and name not in ("=", "<>")):
        return None
    return f"{{0}} {name} {{1}}"


def _distinct(sql_type: SqlType) -> ScalarFunction:
    differ = _test(sql_type, "<>")

    def is_distinct(a: Datum, b: Datum) -> bool:
        return (a is None) != (b is None) if a is None or b is None else differ(a, b)

    equal = _lowering(sql_type, "<=>")
    if sql_type == JSONB:
        equal = "{0} <=> {1}"
    spark = None if equal is None else f"NOT ({equal})"
    return ScalarFunction(
        "is_distinct_from", (sql_type, sql_type), BOOL, is_distinct, strict=False, spark=spark
    )


def _extreme(sql_type: SqlType, name: str) -> ScalarFunction:
    """greatest and least pass over NULLs; of equal values the first is kept."""
    better = _test(sql_type, ">" if name == "greatest" else "<")

    def extreme(*values: Datum) -> Datum:
        best: Datum = None
        for value in values:
            if value is not None and (best is None or better(value, best)):
                best = value
        return best

    return ScalarFunction(name, (sql_type,), sql_type, extreme, strict=False, variadic=True)


def rows_for(sql_type: SqlType) -> list[ScalarFunction]:
    """Every comparison of two values of one type."""
    both = (sql_type, sql_type)
    tests = [
        total(name, both, BOOL, _test(sql_type, name), _lowering(sql_type, name))
        for name in OPERATORS
    ]
    extremes = [_extreme(sql_type, name) for name in ("greatest", "least")]
    return [*tests, _distinct(sql_type), *extremes]


# Singles are doubles to Python, and Spark widens them before it compares.
_MIXED_ROWS: Final = tuple(
    total(
        name,
        both,
        BOOL,
        _test(FLOAT8, name),
        f"cast({{0}} as double) {name} cast({{1}} as double)",
    )
    for both in ((FLOAT4, FLOAT8), (FLOAT8, FLOAT4))
    for name in OPERATORS
)

ROWS: Final = _MIXED_ROWS + tuple(
    row for sql_type in (*COMPARED, *ARRAYS, *LISTS) for row in rows_for(sql_type)
)
