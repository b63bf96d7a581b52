"""Aggregates over values that are all there.

The delta evaluator keeps additive ones in accumulators instead and must give the same datums.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from math import inf, isinf, nan
from typing import Final, TypeAlias, assert_never, cast

from evertide.expr.exact_sum import EXACT, fixed_point, rounded_float, rounded_numeric
from evertide.expr.functions.row import Accumulator, AggregateFunction
from evertide.expr.relation import AggregateCall
from evertide.expr.row_key import in_value_order, representation
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError, encode_error
from evertide.vocab.sql_type import SqlType

# Non-NULL datums with their multiplicities; identical ones appear once.
Weighted: TypeAlias = Sequence[tuple[Datum, int]]

_INFINITY: Final = Decimal("Infinity")


def evaluate_aggregate(call: AggregateCall, rows: int, values: Weighted) -> Datum:
    """One aggregate of a group with this many rows and these arguments."""
    function = call.function
    if call.argument is None:
        return finish_count(function, rows)
    if call.distinct:
        values = distinct_values(call.argument.type, values)
    if function.accumulator is Accumulator.ROWS:
        return finish_rows(function, call.argument.type, values)
    return finish_sum(function, values)


def finish_count(function: AggregateFunction, count: int) -> Datum:
    """count(*) and count(x) are their own result unless the function says otherwise."""
    return count if function.finish is None else function.finish(count, count)


def finish_rows(function: AggregateFunction, argument: SqlType, values: Weighted) -> Datum:
    """An aggregate that sees all values of its group, in their order."""
    assert function.finish_rows is not None, f"{function} has no body"
    repeated = [datum for datum, count in values for _ in range(count)]
    return function.finish_rows(in_value_order(argument, repeated))


def finish_sum(function: AggregateFunction, values: Weighted) -> Datum:
    """An aggregate that needs no more than an exact sum and a count."""
    count = sum(multiplicity for _, multiplicity in values)
    match function.accumulator:
        case Accumulator.COUNT:
            return finish_count(function, count)
        case Accumulator.SUM_INT:
            total: Datum = sum(cast(int, datum) * n for datum, n in values)
        case Accumulator.SUM_NUMERIC:
            total = _sum_numeric(cast("Sequence[tuple[Decimal, int]]", values))
        case Accumulator.SUM_FLOAT:
            total = _sum_float(cast("Sequence[tuple[float, int]]", values))
        case Accumulator.ROWS:
            raise AssertionError(f"{function} is not a sum")
        case _:
            assert_never(function.accumulator)
    assert function.finish is not None, f"{function} has no body"
    return function.finish(total, count)


def distinct_values(sql_type: SqlType, values: Weighted) -> Weighted:
    """Each value once by SQL's equality; of equal ones the least representation."""
    encode = key_encoder(sql_type)
    order = representation((sql_type,))
    counts: Counter[bytes] = Counter()
    shown: dict[bytes, Datum] = {}
    for datum, multiplicity in values:
        key = encode(datum)
        counts[key] += multiplicity
        if multiplicity <= 0:
            continue
        if key not in shown or (order is not None and order((datum,)) < order((shown[key],))):
            shown[key] = datum
    return [(shown[key], 1) for key, count in counts.items() if count > 0 and key in shown]


def least_error(errors: Iterable[SqlError]) -> SqlError:
    """Of several errors the least is kept, so that every executor keeps the same."""
    return min(errors, key=encode_error)


def _sum_numeric(values: Sequence[tuple[Decimal, int]]) -> Decimal:
    total = Decimal(0)
    specials: Counter[str] = Counter()
    for datum, multiplicity in values:
        if datum.is_finite():
            total = EXACT.add(total, EXACT.multiply(datum, Decimal(multiplicity)))
        else:
            specials[str(datum)] += multiplicity
    return special_numeric(
        nan_count=specials["NaN"],
        plus=specials["Infinity"],
        minus=specials["-Infinity"],
        finite=total,
    )


def _sum_float(values: Sequence[tuple[float, int]]) -> float:
    total = nan_count = plus = minus = 0
    for datum, multiplicity in values:
        if datum != datum:
            nan_count += multiplicity
        elif isinf(datum):
            plus += multiplicity if datum > 0 else 0
            minus += multiplicity if datum < 0 else 0
        else:
            total += fixed_point(datum) * multiplicity
    return special_float(nan_count=nan_count, plus=plus, minus=minus, finite=total)


def special_float(*, nan_count: int, plus: int, minus: int, finite: int) -> float:
    """What a sum is that has met NaNs and infinities: they win over everything finite."""
    if nan_count or (plus and minus):
        return nan
    if plus or minus:
        return inf if plus else -inf
    return rounded_float(finite)


def special_numeric(*, nan_count: int, plus: int, minus: int, finite: Decimal) -> Decimal:
    """special_float for numerics."""
    if nan_count or (plus and minus):
        return Decimal("NaN")
    if plus or minus:
        return _INFINITY if plus else -_INFINITY
    return rounded_numeric(finite)
