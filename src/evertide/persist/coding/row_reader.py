"""Some rows of Arrow columns as Python's values, without columns of them in between.

Whoever looks for a few rows among many wants their values, and Arrow's own way to these costs more
than all else about the search: it chooses a kernel for each column, makes new columns, and takes
them apart again. Here the buffers of a column are looked into once, and then each row is read from
them. Columns with NULLs, and types that are more than one buffer, go Arrow's way.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evertide.persist.coding.encoding import decode_column, decode_numeric, one_chunk
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import Kind, SqlType

_Places: TypeAlias = npt.NDArray[np.int64]
_Read: TypeAlias = Callable[[_Places], Sequence[Datum]]

# What numpy gives for these is the datum.
_NUMBERS: Final = frozenset(
    {Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.OID, Kind.REGCLASS,
     Kind.REGPROC, Kind.REGTYPE, Kind.MZ_TIMESTAMP, Kind.FLOAT4, Kind.FLOAT8, Kind.DATE, Kind.TIME,
     Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
)  # fmt: skip
_TEXTS: Final = frozenset(
    {Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.CHAR, Kind.JSONB}
)  # fmt: skip
_BYTES: Final = frozenset({Kind.BYTEA, Kind.UUID})


class RowReader:
    """Reads rows of a table that stays as it is. Holds its columns."""

    def __init__(self, table: pa.Table, types: tuple[SqlType, ...]) -> None:
        self.types = types
        columns = [table.column(i) for i in range(len(types))]
        self._read = [_reader(t, one_chunk(c)) for t, c in zip(types, columns, strict=True)]

    def rows(self, places: _Places) -> list[Row]:
        """The rows at these places, in their order."""
        if not self._read:
            return [()] * len(places)
        return list(zip(*[read(places) for read in self._read], strict=True))


def _reader(sql_type: SqlType, column: pa.Array) -> _Read:
    if not column.null_count and len(column):
        if sql_type.kind in _NUMBERS:
            return _numbers(column.to_numpy())
        if sql_type.kind in _TEXTS:
            cut = _cutter(column)
            return lambda places: [str(found, "utf-8") for found in cut(places)]
        if sql_type.kind in _BYTES:
            cut = _cutter(column)
            return lambda places: [bytes(found) for found in cut(places)]
        if sql_type.kind is Kind.NUMERIC:
            cut = _cutter(column)
            return lambda places: [decode_numeric(bytes(found)) for found in cut(places)]
    return lambda places: decode_column(sql_type, column.take(pa.array(places)))


def _numbers(values: npt.NDArray[Any]) -> _Read:
    def read(places: _Places) -> Sequence[Datum]:
        found: list[Datum] = values.take(places).tolist()
        return found

    return read


def _cutter(column: pa.Array) -> Callable[[_Places], list[memoryview]]:
    """The bytes of values."""
    _, ends, content = column.buffers()
    # Each ends where the next begins; a slice of a column shares the buffers of the whole.
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    view = memoryview(b"" if content is None else content)

    def cut(places: _Places) -> list[memoryview]:
        starts, after = offsets.take(places).tolist(), offsets.take(places + 1).tolist()
        return [view[start:end] for start, end in zip(starts, after, strict=True)]

    return cut
