"""The values of one column: numbers in numpy, everything else in Arrow.

Numbers are what numpy computes with: all integers, dates and times as int64, both floats as
float64, and booleans. A uint8 keeps the offset form of its physical encoding. NULLs have a mask
beside the values, and what lies below the mask is of no meaning, but never a surprise: it is 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evertide.persist.coding.encoding import arrow_type, decode_column, encode_column
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import Kind, SqlType

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Values: TypeAlias = npt.NDArray[Any]

_UINT8_OFFSET: Final = 2**63
_FLOATS: Final = frozenset({Kind.FLOAT4, Kind.FLOAT8})
_WIDE: Final[dict[pa.DataType, Any]] = {
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """int64, float64 or bool; `nulls` is None where nothing is NULL."""

    values: Values
    nulls: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, places: Ints | Mask) -> "Numbers":
        """The values at these places, or where the mask is set."""
        nulls = None if self.nulls is None else self.nulls[places]
        return Numbers(self.values[places], nulls)

    @property
    def null_mask(self) -> Mask:
        """Where it is NULL."""
        return np.zeros(len(self.values), np.bool_) if self.nulls is None else self.nulls


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """Values of a type that numpy has not, in their physical encoding."""

    array: pa.Array

    def __len__(self) -> int:
        return len(self.array)

    def take(self, places: Ints | Mask) -> "Others":
        """The values at these places, or where the mask is set."""
        if places.dtype == np.bool_:
            places = np.flatnonzero(places)
        return Others(self.array.take(pa.array(places)))

    @property
    def null_mask(self) -> Mask:
        """Where it is NULL."""
        if not self.array.null_count:
            return np.zeros(len(self.array), np.bool_)
        mask: Mask = np.asarray(self.array.is_null().to_numpy(zero_copy_only=False))
        return mask


Column: TypeAlias = Numbers | Others


def has_nulls(column: Column) -> bool:
    """Whether some value may be NULL."""
    if isinstance(column, Numbers):
        return column.nulls is not None
    return bool(column.array.null_count)


def nbytes(column: Column) -> int:
    """How much memory the values take."""
    return int(column.values.nbytes if isinstance(column, Numbers) else column.array.nbytes)


def is_number(sql_type: SqlType) -> bool:
    """Whether columns of this type are Numbers."""
    if sql_type.kind in (Kind.ARRAY, Kind.LIST, Kind.MAP):
        return False
    physical = arrow_type(sql_type)
    return physical in _WIDE or physical == pa.bool_()


def from_arrow(sql_type: SqlType, array: pa.Array) -> Column:
    """A column from its physical encoding; large integer columns are not copied."""
    if not is_number(sql_type):
        return Others(array)
    nulls = None
    if array.null_count:
        nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    if array.type == pa.bool_():
        values = array.fill_null(False) if nulls is not None else array
        return Numbers(np.asarray(values.to_numpy(zero_copy_only=False)), nulls)
    memory = np.frombuffer(array.buffers()[1], dtype=_WIDE[array.type])
    seen = memory[array.offset : array.offset + len(array)]
    wide = np.float64 if sql_type.kind in _FLOATS else np.int64
    if nulls is None:
        return Numbers(seen.astype(wide, copy=False))
    return Numbers(np.where(nulls, 0, seen).astype(wide, copy=False), nulls)


def to_arrow(sql_type: SqlType, column: Column) -> pa.Array:
    """The physical encoding."""
    if isinstance(column, Others):
        return column.array
    physical = arrow_type(sql_type)
    wide = pa.array(column.values, mask=column.nulls)
    return wide if wide.type == physical else wide.cast(physical)


def from_datums(sql_type: SqlType, datums: Sequence[Datum]) -> Column:
    """A column from values; the fewer passes the better."""
    if not is_number(sql_type) or sql_type.kind is Kind.UINT8 or None in datums:
        return from_arrow(sql_type, encode_column(sql_type, datums))
    if arrow_type(sql_type) == pa.bool_():
        return Numbers(np.array(datums, np.bool_))
    return Numbers(np.array(datums, np.float64 if sql_type.kind in _FLOATS else np.int64))


def to_datums(sql_type: SqlType, column: Column) -> list[Datum]:
    """Inverse of from_datums."""
    if isinstance(column, Others):
        return decode_column(sql_type, column.array)
    plain: list[Datum] = column.values.tolist()
    if sql_type.kind is Kind.UINT8:
        plain = [value + _UINT8_OFFSET for value in column.values.tolist()]
    if column.nulls is None:
        return plain
    return [
        None if null else datum for datum, null in zip(plain, column.nulls.tolist(), strict=True)
    ]


def concat(columns: Sequence[Column]) -> Column:
    """One after the other; they are of one type."""
    if len(columns) == 1:
        return columns[0]
    numbers = [column for column in columns if isinstance(column, Numbers)]
    if not numbers:
        return Others(pa.concat_arrays([c.array for c in columns if isinstance(c, Others)]))
    assert len(numbers) == len(columns), "columns of one type are of one kind"
    values = np.concatenate([column.values for column in numbers])
    if all(column.nulls is None for column in numbers):
        return Numbers(values)
    return Numbers(values, np.concatenate([column.null_mask for column in numbers]))


def all_null(sql_type: SqlType, length: int) -> Column:
    """NULL as often as asked."""
    return from_arrow(sql_type, pa.nulls(length, arrow_type(sql_type)))


def constant(sql_type: SqlType, datum: Datum, length: int) -> Column:
    """One value as often as asked."""
    one = from_datums(sql_type, [datum])
    return one.take(np.zeros(length, np.int64))


def aligned(column: Column, places: Ints) -> Column:
    """The values at these places, NULL where the place is -1."""
    missing = places < 0
    if not missing.any():
        return column.take(places)
    if isinstance(column, Others):
        return Others(column.array.take(pa.array(places, mask=missing)))
    if not len(column):
        return Numbers(np.zeros(len(places), column.values.dtype), missing)
    found = column.take(np.maximum(places, 0))
    zero = np.zeros(1, column.values.dtype)[0]
    nulls = missing if found.nulls is None else missing | found.nulls
    return Numbers(np.where(missing, zero, found.values), nulls)
