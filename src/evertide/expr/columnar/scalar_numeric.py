"""Kernels of numeric arithmetic, as far as 18 digits go. They are exact, so nothing is rounded."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from evertide.expr.columnar.column import Ints, Numbers, Others
from evertide.expr.columnar.numeric_columns import (
    LIMIT,
    MAX_DIGITS,
    Scaled,
    common_scale,
    largest,
    rescaled,
)
from evertide.expr.columnar.scalar_kernel import (
    Apply,
    Build,
    ByRows,
    Part,
    Parts,
    either_null,
    masked,
    number_values,
    refuse,
    refuse_outside,
    relabel,
)
from evertide.expr.functions.build import Types
from evertide.expr.functions.type_groups import INTEGERS, RANGES, UINT8
from evertide.expr.numeric_value import MAX_SCALE
from evertide.expr.scalar import Literal, Scalar
from evertide.vocab.datum import NUMERIC_DIGITS
from evertide.vocab.sql_type import INT4, NUMERIC, SqlType

# Divides integers by a power of ten, each in its way.
Rounding: TypeAlias = Callable[[Ints, int], Ints]

# Doubles hold these integers, and these powers of ten, exactly.
_EXACT_INTEGER: Final = 2**53
_EXACT_POWER: Final = 22


def scaled(part: Part) -> Scaled:
    """The part as integers, or by rows."""
    if isinstance(part, Scaled):
        return part
    assert isinstance(part, Others), "numerics are no numbers to numpy"
    found = common_scale(part.array)
    if found is None:
        raise ByRows
    return found


def at_one_scale(parts: Parts) -> tuple[Ints, Ints, int]:
    """Two columns at the greater of their scales."""
    left, right = map(scaled, parts)
    scale = max(left.scale, right.scale)
    left_there, right_there = rescaled(left, scale), rescaled(right, scale)
    if left_there is None or right_there is None:
        raise ByRows
    return left_there.values, right_there.values, scale


def _result(values: Ints, scale: int, parts: Parts) -> Scaled:
    """Zeros below NULLs, and no more digits than a column holds."""
    nulls = either_null(parts)
    if nulls is not None:
        masked_values = masked(values, nulls)
        values, nulls = masked_values.values, masked_values.nulls
    if largest(values) >= LIMIT:
        raise ByRows
    return Scaled(values, scale, nulls)


def _sum_like(compute: Callable[[Ints, Ints], Ints]) -> Apply:
    def apply(parts: Parts) -> Scaled:
        left, right, scale = at_one_scale(parts)
        return _result(compute(left, right), scale, parts)

    return apply


def _multiply(parts: Parts) -> Scaled:
    left, right = map(scaled, parts)
    scale = left.scale + right.scale
    if scale > MAX_SCALE:
        raise ByRows
    if largest(left.values) * largest(right.values) >= LIMIT:
        size = np.abs(left.values.astype(np.float64) * right.values)
        if size.max() >= LIMIT:
            raise ByRows
    return _result(left.values * right.values, scale, parts)


def _modulo(parts: Parts) -> Scaled:
    left, right, scale = at_one_scale(parts)
    zero = right == 0
    if zero.any():
        refuse(zero, either_null(parts))
        right = np.where(zero, 1, right)
    return _result(np.fmod(left, right), scale, parts)


def _unary(compute: Callable[[Ints], Ints]) -> Apply:
    def apply(parts: Parts) -> Scaled:
        column = scaled(parts[0])
        return Scaled(compute(column.values), column.scale, column.nulls)

    return apply


def _half_away(values: Ints, unit: int) -> Ints:
    """Ties are rounded away from zero."""
    sizes: Ints = (np.abs(values) + unit // 2) // unit
    return np.where(values < 0, -sizes, sizes)


def _towards_zero(values: Ints, unit: int) -> Ints:
    sizes: Ints = np.abs(values) // unit
    return np.where(values < 0, -sizes, sizes)


def _upwards(values: Ints, unit: int) -> Ints:
    return -(-values // unit)


def _rounded(column: Scaled, scale: int, rounding: Rounding) -> Scaled:
    """Brought to a scale that may be smaller; a greater one leaves the column alone."""
    fewer = column.scale - scale
    if fewer <= 0:
        return column
    if fewer > MAX_DIGITS:
        raise ByRows
    return Scaled(rounding(column.values, 10**fewer), scale, column.nulls)


def _round_to(rounding: Rounding) -> Build:
    """Rounding to so many digits after the point, if they are a constant; by default to none."""

    def build(arguments: Sequence[Scalar]) -> Apply | None:
        scale = literal_integer(arguments[1]) if len(arguments) == 2 else 0
        if scale is None or scale < 0:
            return None
        return lambda parts: _rounded(scaled(parts[0]), scale, rounding)

    return build


def literal_integer(scalar: Scalar) -> int | None:
    """The value of a constant that is not NULL."""
    if isinstance(scalar, Literal) and isinstance(scalar.value, int):
        return scalar.value
    return None


def _fit(arguments: Sequence[Scalar]) -> Apply | None:
    """Rounded to numeric(p,s), unless a value has too many digits then."""
    precision, scale = map(literal_integer, arguments[1:])
    if precision is None or scale is None:
        return None
    if not (1 <= precision <= NUMERIC_DIGITS and 0 <= scale <= precision):
        return None

    def apply(parts: Parts) -> Part:
        column = scaled(parts[0])
        fitted = _rounded(column, scale, _half_away)
        if largest(fitted.values) >= 10 ** (precision - scale + fitted.scale):
            raise ByRows
        return parts[0] if fitted is column else fitted

    return apply


def _from_integer(parts: Parts) -> Scaled:
    return _result(number_values(parts[0]), 0, parts)


def _to_integer(target: SqlType) -> Apply:
    def apply(parts: Parts) -> Numbers:
        column = _rounded(scaled(parts[0]), 0, _half_away)
        refuse_outside(column.values, *RANGES[target], column.nulls)
        return Numbers(column.values, column.nulls)

    return apply


def _to_float(parts: Parts) -> Numbers:
    """One division of two exact doubles is rounded once, as it must be."""
    column = scaled(parts[0])
    if largest(column.values) > _EXACT_INTEGER or column.scale > _EXACT_POWER:
        raise ByRows
    return Numbers(column.values / 10.0**column.scale, column.nulls)


def _fixed(apply: Apply) -> Build:
    return lambda _arguments: apply


def _kernels() -> dict[tuple[str, Types], Build]:
    both, one = (NUMERIC, NUMERIC), (NUMERIC,)
    absolute = _fixed(_unary(np.abs))
    found: dict[tuple[str, Types], Build] = {
        ("+", both): _fixed(_sum_like(np.add)),
        ("-", both): _fixed(_sum_like(np.subtract)),
        ("*", both): _fixed(_multiply),
        ("%", both): _fixed(_modulo),
        ("mod", both): _fixed(_modulo),
        ("-", one): _fixed(_unary(np.negative)),
        ("+", one): relabel,
        ("trim_scale", one): relabel,
        ("abs", one): absolute,
        ("@", one): absolute,
        ("round", one): _round_to(_half_away),
        ("round", (NUMERIC, INT4)): _round_to(_half_away),
        ("trunc", one): _round_to(_towards_zero),
        ("trunc", (NUMERIC, INT4)): _round_to(_towards_zero),
        ("floor", one): _round_to(np.floor_divide),
        ("ceil", one): _round_to(_upwards),
        ("ceiling", one): _round_to(_upwards),
        ("numeric", (NUMERIC, INT4, INT4)): _fit,
        ("float8", one): _fixed(_to_float),
    }
    for integer in INTEGERS:
        if integer != UINT8:
            found["numeric", (integer,)] = _fixed(_from_integer)
            found[integer.kind.value, one] = _fixed(_to_integer(integer))
    return found


KERNELS: Final = _kernels()
