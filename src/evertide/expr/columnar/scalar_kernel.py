"""What kernels are made of: functions over whole columns that do what bodies do to datums.

While a scalar is computed, a column of one value stands for that value in every row, so that
constants cost nothing: numpy spreads it by itself, Arrow gets it as a scalar. Results of numeric
arithmetic stay integers with a scale until someone needs their bytes. No column is empty here.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.column import Column, Ints, Mask, Numbers, Others, Values
from evertide.expr.columnar.numeric_columns import Scaled
from evertide.expr.scalar import Scalar


class ByRows(Exception):  # not an error: the rows are computed in another way
    """Some row of this batch is beyond the kernel, or has an error: compute the batch by rows."""


Part: TypeAlias = Column | Scaled
Parts: TypeAlias = Sequence[Part]
# From evaluated arguments, each as long as the batch or one constant, to such a result.
Apply: TypeAlias = Callable[[Parts], Part]
# From the arguments' scalars, whose literals a kernel may want to know, to a kernel.
Build: TypeAlias = Callable[[Sequence[Scalar]], Apply | None]
# Values of arguments and, last, where one of them is NULL; gives values, of any kind there.
NumberKernel: TypeAlias = Callable[..., Values]
# Arrow arrays or scalars to an Arrow array; it keeps NULLs by itself.
ArrowKernel: TypeAlias = Callable[..., pa.Array]


def refuse(bad: Mask, nulls: Mask | None) -> None:
    """Leave the batch to the row-wise path if a row is bad that has no NULL among its arguments."""
    if bad.any() and (nulls is None or (bad & ~nulls).any()):
        raise ByRows


def refuse_outside(values: Values, least: int, greatest: int, nulls: Mask | None) -> None:
    """Refuse results that their type cannot hold."""
    if values.min() < least or values.max() > greatest:
        refuse((values < least) | (values > greatest), nulls)


def plain(part: Part) -> Column:
    """The part with its numerics as bytes."""
    if not isinstance(part, Scaled):
        return part
    encoded = part.encoded()
    if encoded is None:
        raise ByRows
    return encoded


def either_null(parts: Parts) -> Mask | None:
    """Where an argument is NULL; None: nowhere."""
    nulls: Mask | None = None
    for part in parts:
        own = null_mask(part)
        if own is not None:
            nulls = own if nulls is None else nulls | own
    return nulls


def null_mask(part: Part) -> Mask | None:
    """Where the part is NULL; None: nowhere."""
    if isinstance(part, Others):
        return part.null_mask if part.array.null_count else None
    return part.nulls


def masked(values: Values, nulls: Mask | None) -> Numbers:
    """Values and where they are NULL, with zeros there."""
    if nulls is None:
        return Numbers(values)
    if nulls.shape != values.shape:
        values, nulls = (np.ascontiguousarray(a) for a in np.broadcast_arrays(values, nulls))
    return Numbers(np.where(nulls, values.dtype.type(0), values), nulls)


def number_values(part: Part) -> Values:
    """The values of a part that is known to be of numbers."""
    assert isinstance(part, Numbers), "the part's type has numbers"
    return part.values


def over_numbers(kernel: NumberKernel) -> Build:
    """A strict kernel from numbers to numbers."""

    def apply(parts: Parts) -> Numbers:
        nulls = either_null(parts)
        return masked(kernel(*map(number_values, parts), nulls), nulls)

    return lambda _arguments: apply


def total_over_numbers(kernel: NumberKernel) -> Build:
    """One that can do any values and need not know where they are NULL."""
    return over_numbers(lambda *values: kernel(*values[:-1]))


def arrow_operands(parts: Parts) -> list[pa.Array | pa.Scalar]:
    """Arrays, or scalars for constants beside arrays."""
    arrays = []
    for part in parts:
        column = plain(part)
        assert isinstance(column, Others), "the part's type has no numbers"
        arrays.append(column.array)
    length = max(map(len, arrays))
    return [array if len(array) == length else array[0] for array in arrays]


def from_bools(array: pa.Array) -> Numbers:
    """An Arrow array of booleans."""
    if not array.null_count:
        return Numbers(np.asarray(array.to_numpy(zero_copy_only=False)))
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    return Numbers(np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False)), nulls)


def arrow_test(kernel: ArrowKernel) -> Build:
    """A strict kernel from what is not a number to booleans."""

    def apply(parts: Parts) -> Numbers:
        return from_bools(kernel(*arrow_operands(parts)))

    return lambda _arguments: apply


def arrow_map(kernel: ArrowKernel) -> Build:
    """A strict kernel between types that are not numbers."""

    def apply(parts: Parts) -> Others:
        return Others(kernel(*arrow_operands(parts)))

    return lambda _arguments: apply


def relabel(_arguments: Sequence[Scalar]) -> Apply:
    """The kernel of functions that give their argument."""
    return lambda parts: parts[0]


def expanded(part: Part, length: int) -> Column:
    """A column as long as the batch."""
    column = plain(part)
    if len(column) == length:
        return column
    return column.take(np.zeros(length, np.int64))


def spread(mask: Mask, length: int) -> Mask:
    """A mask as long as the batch."""
    return mask if len(mask) == length else np.broadcast_to(mask, (length,))


def as_ints(array: pa.Array) -> tuple[Ints, Mask | None]:
    """Integers of an Arrow array, and where they are NULL."""
    nulls = None
    if array.null_count:
        nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), nulls
