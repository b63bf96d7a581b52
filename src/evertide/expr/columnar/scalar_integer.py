"""Kernels of integer arithmetic. Whatever does not fit is left to the bodies, which say so."""

from collections.abc import Callable
from typing import Final

import numpy as np

from evertide.expr.columnar.column import Ints, Mask
from evertide.expr.columnar.scalar_kernel import (
    Build,
    over_numbers,
    refuse,
    refuse_outside,
    relabel,
    total_over_numbers,
)
from evertide.expr.functions.build import Types
from evertide.expr.functions.type_groups import INTEGERS, RANGES, SIGNED, UINT2, UINT4, UNSIGNED
from evertide.vocab.sql_type import INT2, INT4, INT8, SqlType

# A product of doubles below this is, whatever was rounded, one of integers below 2**63.
_SAFE_PRODUCT: Final = 9.2e18
_SMALL: Final = (INT2, INT4, UINT2)
_WRAPPED: Final = {INT2: np.int16, INT4: np.int32, INT8: np.int64}


def add(left: Ints, right: Ints, nulls: Mask | None) -> Ints:
    """A sum within 64 bits: one of another sign than both its parts has overflowed."""
    result = left + right
    refuse(((left ^ result) & (right ^ result)) < 0, nulls)
    return result


def subtract(left: Ints, right: Ints, nulls: Mask | None) -> Ints:
    """A difference within 64 bits."""
    result = left - right
    refuse(((left ^ right) & (left ^ result)) < 0, nulls)
    return result


def multiply(left: Ints, right: Ints, nulls: Mask | None) -> Ints:
    """A product within 64 bits; some of the greatest are refused too."""
    size = np.abs(left.astype(np.float64) * right)
    if size.max() >= _SAFE_PRODUCT:
        refuse(size >= _SAFE_PRODUCT, nulls)
    return left * right


def _divide(left: Ints, right: Ints, nulls: Mask | None) -> Ints:
    """Rounded towards zero."""
    divisor = _divisor(right, nulls)
    refuse((divisor == -1) & (left == RANGES[INT8][0]), nulls)
    return (left - np.fmod(left, divisor)) // divisor


def _modulo(left: Ints, right: Ints, nulls: Mask | None) -> Ints:
    divisor = _divisor(right, nulls)
    # The remainder by -1 is that by 1, which no processor fails to compute.
    return np.fmod(left, np.where(divisor == -1, 1, divisor))


def _divisor(right: Ints, nulls: Mask | None) -> Ints:
    zero = right == 0
    if not zero.any():
        return right
    refuse(zero, nulls)
    return np.where(zero, 1, right)


def _within(sql_type: SqlType, kernel: Callable[..., Ints]) -> Build:
    least, greatest = RANGES[sql_type]

    def checked(left: Ints, right: Ints, nulls: Mask | None) -> Ints:
        result = kernel(left, right, nulls)
        refuse_outside(result, least, greatest, nulls)
        return result

    return over_numbers(checked)


def _small(kernel: Callable[[Ints, Ints], Ints]) -> Callable[..., Ints]:
    """Integers so small that 64 bits hold every result."""
    return lambda left, right, _nulls: kernel(left, right)


def _arithmetic(sql_type: SqlType) -> dict[str, Build]:
    kernels: dict[str, Callable[..., Ints]] = {
        "+": add, "-": subtract, "*": multiply, "/": _divide, "%": _modulo, "mod": _modulo,
    }  # fmt: skip
    if sql_type in _SMALL:
        kernels |= {"+": _small(np.add), "-": _small(np.subtract), "*": _small(np.multiply)}
    if sql_type == INT8:
        return {name: over_numbers(kernel) for name, kernel in kernels.items()}
    return {name: _within(sql_type, kernel) for name, kernel in kernels.items()}


def _opposite(sql_type: SqlType, kernel: Callable[[Ints], Ints]) -> Build:
    """Only the least value has none."""
    least = RANGES[sql_type][0]

    def checked(values: Ints, nulls: Mask | None) -> Ints:
        refuse(values == least, nulls)
        return kernel(values)

    return over_numbers(checked)


def _shift(sql_type: SqlType, *, left: bool) -> Build:
    wrapped, mask = _WRAPPED[sql_type], 63 if sql_type == INT8 else 31

    def kernel(values: Ints, distances: Ints) -> Ints:
        distances = distances & mask
        if not left:
            return values >> distances
        return (values << distances).astype(wrapped).astype(np.int64)

    return total_over_numbers(kernel)


def _bits(sql_type: SqlType) -> dict[tuple[str, Types], Build]:
    both = (sql_type, sql_type)
    return {
        ("&", both): total_over_numbers(np.bitwise_and),
        ("|", both): total_over_numbers(np.bitwise_or),
        ("#", both): total_over_numbers(np.bitwise_xor),
        ("~", (sql_type,)): total_over_numbers(np.invert),
        ("<<", (sql_type, INT4)): _shift(sql_type, left=True),
        (">>", (sql_type, INT4)): _shift(sql_type, left=False),
    }


def _kernels() -> dict[tuple[str, Types], Build]:
    found: dict[tuple[str, Types], Build] = {}
    for sql_type in (*SIGNED, UINT2, UINT4):
        found |= {(n, (sql_type, sql_type)): build for n, build in _arithmetic(sql_type).items()}
    for sql_type in SIGNED:
        found[("-", (sql_type,))] = _opposite(sql_type, np.negative)
        found[("abs", (sql_type,))] = found[("@", (sql_type,))] = _opposite(sql_type, np.abs)
        found |= _bits(sql_type)
    found |= {("+", (sql_type,)): relabel for sql_type in INTEGERS}
    found |= {("abs", (sql_type,)): relabel for sql_type in UNSIGNED}
    return found


KERNELS: Final = _kernels()
