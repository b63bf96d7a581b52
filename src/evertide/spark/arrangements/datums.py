"""Values of a column one by one, at few places.

Arrow takes some ten microseconds for each call, whatever it is given, and a probe of few keys asks
every column for a handful of values. So these are read where they lie.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.column import Column, Ints, Others, to_datums
from evertide.persist.coding.encoding import decode_column
from evertide.persist.coding.numeric import decode_numeric
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import Kind, SqlType

NUMPY_TYPES: Final[dict[pa.DataType, type[np.generic]]] = {
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}

# What is at these places of a column.
Datums: TypeAlias = Callable[[Ints], list[Datum]]
Integers: TypeAlias = Callable[[Ints], list[int]]

# From so many places on, one call of Arrow's for all of them is quicker. In a loop that does
# nothing else it is from 100 on; but between ticks others use the caches, and its code is large.
_MANY: Final = 400
_TEXTS: Final = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.CHAR, Kind.JSONB})


def datums_of(sql_type: SqlType, column: Column) -> Datums:
    """A way to read single values of a column, which never changes."""
    if isinstance(column, Others):
        return _bytes(sql_type, column.array)
    values = column.values
    if column.nulls is None and sql_type.kind is not Kind.UINT8:
        return lambda places: cast("list[Datum]", values[places].tolist())
    return lambda places: to_datums(sql_type, column.take(places))


def datums_of_array(sql_type: SqlType, array: pa.Array) -> Datums:
    """The same of a column in Arrow, of which nothing is copied."""
    numbers = NUMPY_TYPES.get(array.type)
    if numbers is None:
        return _bytes(sql_type, array)
    if array.null_count or sql_type.kind is Kind.UINT8:
        return _by_arrow(sql_type, array)
    memory = np.frombuffer(array.buffers()[1], numbers)
    values = memory[array.offset : array.offset + len(array)]
    return lambda places: cast("list[Datum]", values[places].tolist())


def integers_of(values: Ints) -> Integers:
    """Times or diffs, of which there are some. After a merge they are mostly all the same: then
    nothing is read, which would mean to wait for memory at every place.
    """
    first = int(values[0])
    if (values == first).all():
        return lambda places: [first] * len(places)
    return lambda places: cast("list[int]", values[places].tolist())


def _by_arrow(sql_type: SqlType, array: pa.Array) -> Datums:
    return lambda places: decode_column(sql_type, array.take(pa.array(places)))


def _bytes(sql_type: SqlType, array: pa.Array) -> Datums:
    """Texts and bytes of which none, or each, is NULL; everything else is left to Arrow."""
    if array.null_count == len(array):
        return lambda places: [None] * len(places)
    decode, by_arrow = _decoder(sql_type), _by_arrow(sql_type, array)
    if decode is None or array.null_count:
        return by_arrow
    _, offset_buffer, value_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[array.offset :]
    values = memoryview(b"" if value_buffer is None else value_buffer)

    def one_by_one(places: Ints) -> list[Datum]:
        if len(places) > _MANY:
            return by_arrow(places)
        starts, ends = offsets[places].tolist(), offsets[places + 1].tolist()
        return decode([values[a:b] for a, b in zip(starts, ends, strict=True)])

    return one_by_one


def _decoder(sql_type: SqlType) -> Callable[[list[memoryview]], list[Datum]] | None:
    if sql_type.kind in _TEXTS:
        return lambda pieces: [str(piece, "utf-8") for piece in pieces]
    if sql_type.kind is Kind.NUMERIC:
        return lambda pieces: [decode_numeric(bytes(piece)) for piece in pieces]
    return (lambda pieces: list(map(bytes, pieces))) if sql_type.kind is Kind.BYTEA else None
