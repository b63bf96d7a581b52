"""Kernels of float arithmetic: the same operations of the same processor, so the same results.

A finite result that overflows, or a product that vanishes, is left to the bodies, which refuse it.
Functions whose results differ between libraries in the last digit have no kernels.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from evertide.expr.columnar.column import Mask, Values
from evertide.expr.columnar.scalar_kernel import (
    Build,
    NumberKernel,
    over_numbers,
    refuse,
    relabel,
    total_over_numbers,
)
from evertide.expr.functions.build import Types
from evertide.expr.functions.type_groups import FLOATS
from evertide.vocab.sql_type import FLOAT4, FLOAT8


def _sum_like(compute: Callable[[Values, Values], Values]) -> NumberKernel:
    def kernel(left: Values, right: Values, nulls: Mask | None) -> Values:
        result = compute(left, right)
        infinite = np.isinf(result)
        if infinite.any():
            refuse(infinite & ~np.isinf(left) & ~np.isinf(right), nulls)
        return result

    return kernel


def _multiply(left: Values, right: Values, nulls: Mask | None) -> Values:
    result = _sum_like(np.multiply)(left, right, nulls)
    zero = result == 0
    if zero.any():
        refuse(zero & (left != 0) & (right != 0), nulls)
    return result


def _divide(left: Values, right: Values, nulls: Mask | None) -> Values:
    refuse(right == 0, nulls)
    result = np.divide(left, right)
    refuse(np.isinf(result) & ~np.isinf(left), nulls)
    refuse((result == 0) & (left != 0) & ~np.isinf(right), nulls)
    return result


def single(values: Values, nulls: Mask | None) -> Values:
    """Rounded to single precision; what overflows or vanishes by that is refused."""
    rounded: Values = values.astype(np.float32).astype(np.float64)
    refuse(np.isinf(rounded) & ~np.isinf(values), nulls)
    refuse((rounded == 0) & (values != 0), nulls)
    return rounded


def _single(kernel: NumberKernel) -> NumberKernel:
    """Doubles are wide enough that rounding their result once more is exact."""
    return lambda left, right, nulls: single(kernel(left, right, nulls), nulls)


def _square_root(values: Values, nulls: Mask | None) -> Values:
    refuse(values < 0, nulls)
    return np.sqrt(values)


def _sign(values: Values) -> Values:
    """Neither -0 nor NaN has a sign."""
    return (values > 0).astype(np.float64) - (values < 0)


_BINARY: Final[dict[str, NumberKernel]] = {
    "+": _sum_like(np.add),
    "-": _sum_like(np.subtract),
    "*": _multiply,
    "/": _divide,
}
_UNARY: Final[dict[str, NumberKernel]] = {
    "round": np.rint, "trunc": np.trunc, "ceil": np.ceil, "ceiling": np.ceil,
    "floor": np.floor, "sign": _sign,
}  # fmt: skip


def _kernels() -> dict[tuple[str, Types], Build]:
    found: dict[tuple[str, Types], Build] = {}
    for name, kernel in _BINARY.items():
        found[name, (FLOAT4, FLOAT4)] = over_numbers(_single(kernel))
        for both in ((FLOAT8, FLOAT8), (FLOAT4, FLOAT8), (FLOAT8, FLOAT4)):
            found[name, both] = over_numbers(kernel)
    for sql_type in FLOATS:
        found["-", (sql_type,)] = total_over_numbers(np.negative)
        found["+", (sql_type,)] = relabel
        found["abs", (sql_type,)] = found["@", (sql_type,)] = total_over_numbers(np.abs)
    found |= {(name, (FLOAT8,)): total_over_numbers(kernel) for name, kernel in _UNARY.items()}
    found["sqrt", (FLOAT8,)] = found["|/", (FLOAT8,)] = over_numbers(_square_root)
    return found


KERNELS: Final = _kernels()
