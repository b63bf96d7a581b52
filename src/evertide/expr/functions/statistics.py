"""Variances and standard deviations, computed exactly and rounded once."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from evertide.expr.functions.numeric import EXACT, divide
from evertide.expr.functions.row import Accumulator, AggregateFunction
from evertide.expr.functions.type_groups import FLOATS, SIGNED, UNSIGNED
from evertide.expr.numeric_value import NAN, settle
from evertide.vocab.datum import Datum
from evertide.vocab.errors import NumericOutOfRange
from evertide.vocab.sql_type import FLOAT8, NUMERIC, SqlType

Number: TypeAlias = int | float | Decimal


def _variance(values: Sequence[Number], *, sample: bool) -> Fraction | None:
    """The exact variance of finite numbers; None where there are too few."""
    count = len(values)
    divisor = count - 1 if sample else count
    if divisor < 1:
        return None
    exact = [Fraction(value) for value in values]
    total = sum(exact)
    squares = sum(value * value for value in exact)
    return Fraction(squares * count - total * total) / (count * divisor)


def _numeric_result(variance: Fraction) -> Decimal:
    return divide(_bounded(variance.numerator), _bounded(variance.denominator))


def _bounded(value: int) -> Decimal:
    return EXACT.plus(Decimal(value))


def _numeric_root(variance: Fraction) -> Decimal:
    quotient = EXACT.divide(_bounded(variance.numerator), _bounded(variance.denominator))
    return settle(EXACT.sqrt(quotient))


def _float_result(variance: Fraction) -> float:
    try:
        return float(variance)
    except OverflowError:
        raise NumericOutOfRange("value out of range: overflow") from None


def _float_root(variance: Fraction) -> float:
    return math.sqrt(_float_result(variance))


def _numeric_body(*, sample: bool, root: bool) -> Callable[[Sequence[Number]], Datum]:
    finish = _numeric_root if root else _numeric_result

    def body(values: Sequence[Number]) -> Datum:
        if any(isinstance(value, Decimal) and not value.is_finite() for value in values):
            return NAN if len(values) > sample else None
        variance = _variance(values, sample=sample)
        return None if variance is None else finish(variance)

    return body


def _float_body(*, sample: bool, root: bool) -> Callable[[Sequence[Number]], Datum]:
    finish = _float_root if root else _float_result

    def body(values: Sequence[Number]) -> Datum:
        if not all(map(math.isfinite, values)):
            return math.nan if len(values) > sample else None
        variance = _variance(values, sample=sample)
        return None if variance is None else finish(variance)

    return body


# name: (of a sample, the root of it)
_NAMES: Final = {
    "variance": (True, False), "var_samp": (True, False), "var_pop": (False, False),
    "stddev": (True, True), "stddev_samp": (True, True), "stddev_pop": (False, True),
}  # fmt: skip


def _row(name: str, argument: SqlType) -> AggregateFunction:
    sample, root = _NAMES[name]
    is_float = argument in FLOATS
    make = _float_body if is_float else _numeric_body
    return AggregateFunction(
        name,
        (argument,),
        FLOAT8 if is_float else NUMERIC,
        Accumulator.ROWS,
        finish_rows=make(sample=sample, root=root),
    )


ROWS: Final = tuple(
    _row(name, argument) for argument in (*SIGNED, *UNSIGNED, *FLOATS, NUMERIC) for name in _NAMES
)
