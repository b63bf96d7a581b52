"""width_bucket, factorial and min_scale."""

import math
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Final

from evertide.expr.data_errors import InvalidArgumentForWidthBucket
from evertide.expr.functions.build import partial, total
from evertide.expr.numeric_value import settle
from evertide.vocab.errors import NumericOutOfRange
from evertide.vocab.sql_type import FLOAT8, INT4, INT8, NUMERIC

# Quotients of 39-digit numbers fall on the right side of a bucket's border.
_EXACT: Final = Context(prec=120, rounding=ROUND_FLOOR)
_MOST_BUCKETS: Final = 2**31 - 1
_MOST_FACTOR: Final = 40


def _check_count(count: int) -> None:
    if count <= 0:
        raise InvalidArgumentForWidthBucket("count must be greater than zero")


def _bucket(position: int, count: int) -> int:
    if position > _MOST_BUCKETS:
        raise NumericOutOfRange("integer out of range")
    return min(position, count + 1)


def _float_bucket(operand: float, low: float, high: float, count: int) -> int:
    _check_count(count)
    if any(math.isnan(value) for value in (operand, low, high)):
        raise InvalidArgumentForWidthBucket("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise InvalidArgumentForWidthBucket("lower and upper bounds must be finite")
    if low == high:
        raise InvalidArgumentForWidthBucket("lower bound cannot equal upper bound")
    if (operand < low) if low < high else (operand > low):
        return 0
    if (operand >= high) if low < high else (operand <= high):
        return _bucket(count + 1, count)
    if math.isinf(high - low):  # halves cannot overflow
        operand, low, high = operand / 2, low / 2, high / 2
    share = (operand - low) / (high - low)
    return min(int(share * count), count - 1) + 1


def _numeric_bucket(operand: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    _check_count(count)
    if any(value.is_nan() for value in (operand, low, high)):
        raise InvalidArgumentForWidthBucket("operand, lower bound, and upper bound cannot be NaN")
    if low.is_infinite() or high.is_infinite():
        raise InvalidArgumentForWidthBucket("lower and upper bounds must be finite")
    if low == high:
        raise InvalidArgumentForWidthBucket("lower bound cannot equal upper bound")
    if (operand < low) if low < high else (operand > low):
        return 0
    if (operand >= high) if low < high else (operand <= high):
        return _bucket(count + 1, count)
    width = _EXACT.subtract(high, low)
    reached = _EXACT.multiply(_EXACT.subtract(operand, low), Decimal(count))
    return int(_EXACT.divide(reached, width)) + 1


def _factorial(value: int) -> Decimal:
    if value < 0:
        raise NumericOutOfRange("factorial of a negative number is undefined")
    if value > _MOST_FACTOR:
        raise NumericOutOfRange("value overflows numeric format")
    return settle(Decimal(math.factorial(value)))


def _min_scale(value: Decimal) -> int | None:
    if not value.is_finite():
        return None
    exponent = value.normalize(_EXACT).as_tuple().exponent
    assert isinstance(exponent, int), "the value is finite"
    return max(-exponent, 0)


ROWS: Final = (
    partial("width_bucket", (FLOAT8, FLOAT8, FLOAT8, INT4), INT4, _float_bucket),
    partial("width_bucket", (NUMERIC, NUMERIC, NUMERIC, INT4), INT4, _numeric_bucket),
    partial("factorial", (INT8,), NUMERIC, _factorial),
    total("min_scale", (NUMERIC,), INT4, _min_scale),
)
