"""Aggregates. Additive ones say what to make of an exact sum and a count, others of all values.

An aggregate that takes several arguments, or that keeps NULLs, has its arguments packed into one
datum by a scalar function, which `packing` gives: an AggregateCall has one argument only.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_, or_, xor
from typing import Final

from evertide.expr.float_text import to_float4
from evertide.expr.functions.comparison import IN_COLUMNS
from evertide.expr.functions.datetime_arithmetic import divide_interval
from evertide.expr.functions.made_aggregate import made_packing
from evertide.expr.functions.numeric import divide
from evertide.expr.functions.row import Accumulator, AggregateFunction, ScalarFunction
from evertide.expr.functions.statistics import ROWS as STATISTICS
from evertide.expr.functions.type_groups import (
    ARRAYS,
    EVERY_TYPE,
    LISTS,
    SCALARS,
    TEXT_ARRAY,
    UINT2,
    UINT4,
    UINT8,
    out_of_range,
)
from evertide.expr.interval_text import checked_interval
from evertide.expr.json_value import Json, dump_json, read_canonical
from evertide.expr.numeric_value import settle, settle_integer
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.errors import InvalidParameterValue
from evertide.vocab.sql_type import (
    BOOL,
    BYTEA,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NUMERIC,
    TEXT,
    Kind,
    SqlType,
    array_of,
)


def _sum_bigint(total: int, count: int) -> int | None:
    if count and not -(2**63) <= total < 2**63:
        raise out_of_range(INT8)
    return total if count else None


def _sum_unsigned(total: int, count: int) -> int | None:
    if count and not 0 <= total < 2**64:
        raise out_of_range(UINT8)
    return total if count else None


def _sum_as_numeric(total: int, count: int) -> Decimal | None:
    return settle_integer(total) if count else None


def _sum_numeric(total: Decimal, count: int) -> Decimal | None:
    return settle(total) if count else None


def _sum_float8(total: float, count: int) -> float | None:
    return total if count else None


def _sum_float4(total: float, count: int) -> float | None:
    return to_float4(total) if count else None


def _average(total: int | Decimal, count: int) -> Decimal | None:
    return divide(Decimal(total), Decimal(count)) if count else None


def _average_float(total: float, count: int) -> float | None:
    return total / count if count else None


def _sum_intervals(values: Sequence[Interval]) -> Interval | None:
    if not values:
        return None
    months, days, micros = (sum(parts) for parts in zip(*values, strict=True))
    return checked_interval(months, days, micros)


def _average_intervals(values: Sequence[Interval]) -> Interval | None:
    total = _sum_intervals(values)
    return None if total is None else divide_interval(total, float(len(values)))


def _first(values: Sequence[Datum]) -> Datum:
    return values[0] if values else None


def _last(values: Sequence[Datum]) -> Datum:
    return values[-1] if values else None


_Packed = Sequence[tuple[Datum, ...]]


def _collect(values: _Packed) -> Datum:
    """The packed values, unpacked; over nothing there is NULL, not an empty array."""
    return tuple(value for (value,) in values) if values else None


def _collect_list(values: _Packed) -> Datum:
    return tuple(value for (value,) in values)


def _join(values: Sequence[tuple[str, str | None]]) -> str | None:
    """Each value but the first after its own delimiter."""
    if not values:
        return None
    first, *rest = values
    return first[0] + "".join((delimiter or "") + value for value, delimiter in rest)


def _join_bytes(values: Sequence[tuple[bytes, bytes | None]]) -> bytes | None:
    if not values:
        return None
    first, *rest = values
    return first[0] + b"".join((delimiter or b"") + value for value, delimiter in rest)


def _collect_json(values: Sequence[tuple[str | None]]) -> str | None:
    if not values:
        return None
    return f"[{','.join('null' if value is None else value for (value,) in values)}]"


def _collect_json_object(values: Sequence[tuple[str, str]]) -> str | None:
    if not values:
        return None
    members: dict[str, Json] = {key: read_canonical(value) for key, value in values}
    return dump_json(members)


def _pack_text(value: str | bytes | None, delimiter: str | bytes | None) -> Datum:
    return None if value is None else (value, delimiter)


def _pack_member(key: str | None, value: str | None) -> Datum:
    if key is None:
        raise InvalidParameterValue("field name must not be null")
    return (key, "null" if value is None else value)


def _rows_aggregate(
    name: str, arguments: tuple[SqlType, ...], result: SqlType, body: object
) -> AggregateFunction:
    assert callable(body)
    return AggregateFunction(name, arguments, result, Accumulator.ROWS, finish_rows=body)


_SUMS: Final = (
    *(AggregateFunction("sum", (t,), INT8, Accumulator.SUM_INT, _sum_bigint) for t in (INT2, INT4)),
    AggregateFunction("sum", (INT8,), NUMERIC, Accumulator.SUM_INT, _sum_as_numeric),
    *(
        AggregateFunction("sum", (t,), UINT8, Accumulator.SUM_INT, _sum_unsigned)
        for t in (UINT2, UINT4)
    ),
    AggregateFunction("sum", (UINT8,), NUMERIC, Accumulator.SUM_INT, _sum_as_numeric),
    AggregateFunction("sum", (FLOAT4,), FLOAT4, Accumulator.SUM_FLOAT, _sum_float4),
    AggregateFunction("sum", (FLOAT8,), FLOAT8, Accumulator.SUM_FLOAT, _sum_float8),
    AggregateFunction("sum", (NUMERIC,), NUMERIC, Accumulator.SUM_NUMERIC, _sum_numeric),
    _rows_aggregate("sum", (INTERVAL,), INTERVAL, _sum_intervals),
)
_AVERAGES: Final = (
    *(
        AggregateFunction("avg", (t,), NUMERIC, Accumulator.SUM_INT, _average)
        for t in (INT2, INT4, INT8, UINT2, UINT4, UINT8)
    ),
    *(
        AggregateFunction("avg", (t,), FLOAT8, Accumulator.SUM_FLOAT, _average_float)
        for t in (FLOAT4, FLOAT8)
    ),
    AggregateFunction("avg", (NUMERIC,), NUMERIC, Accumulator.SUM_NUMERIC, _average),
    _rows_aggregate("avg", (INTERVAL,), INTERVAL, _average_intervals),
)
_COUNTS: Final = (
    AggregateFunction("count", (), INT8, Accumulator.COUNT),
    *(AggregateFunction("count", (t,), INT8, Accumulator.COUNT) for t in EVERY_TYPE),
)
_EXTREMES: Final = tuple(
    _rows_aggregate(name, (t,), t, body)
    for t in (*IN_COLUMNS, *ARRAYS, *LISTS)
    for name, body in (("min", _first), ("max", _last))
)


def _bits(combine: Callable[[int, int], int]) -> Callable[[Sequence[int]], int | None]:
    return lambda values: reduce(combine, values) if values else None


_BITS: Final = tuple(
    _rows_aggregate(name, (t,), t, _bits(combine))
    for t in (INT2, INT4, INT8)
    for name, combine in (("bit_and", and_), ("bit_or", or_), ("bit_xor", xor))
)
_TRUTHS: Final = (
    _rows_aggregate("bool_and", (BOOL,), BOOL, _first),
    _rows_aggregate("every", (BOOL,), BOOL, _first),
    _rows_aggregate("bool_or", (BOOL,), BOOL, _last),
)


def _collections() -> dict[AggregateFunction, ScalarFunction]:
    """Aggregates that need their arguments packed, with the function that packs them."""
    found: dict[AggregateFunction, ScalarFunction] = {}
    for element in SCALARS:
        array, lists = array_of(element), SqlType(Kind.LIST, element=element)
        pack = ScalarFunction("pack", (element,), array, lambda value: (value,), strict=False)
        found[_rows_aggregate("array_agg", (element,), array, _collect)] = pack
        found[_rows_aggregate("list_agg", (element,), lists, _collect_list)] = pack
        if element == JSONB:
            found[_rows_aggregate("jsonb_agg", (JSONB,), JSONB, _collect_json)] = pack
    pack_text = ScalarFunction("pack_text", (TEXT, TEXT), TEXT_ARRAY, _pack_text, strict=False)
    pack_member = ScalarFunction(
        "pack_member", (TEXT, JSONB), TEXT_ARRAY, _pack_member, strict=False, fallible=True
    )
    two = (BYTEA, BYTEA)
    pack_bytes = ScalarFunction("pack_bytes", two, array_of(BYTEA), _pack_text, strict=False)
    found[_rows_aggregate("string_agg", two, BYTEA, _join_bytes)] = pack_bytes
    joined = _rows_aggregate("string_agg", (TEXT, TEXT), TEXT, _join)
    members = _rows_aggregate("jsonb_object_agg", (TEXT, JSONB), JSONB, _collect_json_object)
    return {**found, joined: pack_text, members: pack_member}


_PACKED: Final = _collections()


def packing(aggregate: AggregateFunction) -> ScalarFunction | None:
    """What makes one datum of the aggregate's arguments; None: it has one and skips NULLs."""
    return _PACKED.get(aggregate) or made_packing(aggregate)


def shows_order(aggregate: AggregateFunction) -> bool:
    """Whether its result depends on the order that a call asks for.

    Those that put arguments together do, and they are the ones that have them packed. Sums do not,
    nor do those that rely on value order: `min` is the first, `bool_or` the last of it.
    """
    return packing(aggregate) is not None


AGGREGATES: Final = (
    *_COUNTS,
    *_SUMS,
    *_AVERAGES,
    *_EXTREMES,
    *_TRUTHS,
    *_BITS,
    *STATISTICS,
    *_PACKED,
)
# Each packing function once, in order.
ROWS: Final = tuple(dict.fromkeys(_PACKED.values()))
