"""Batches of updates as Parquet, so that Spark reads them directly.

A part is written once and never changed. Its schema is encoding.update_schema; values of an error
row are null.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from evertide.persist.encoding import decode_column, encode_column, update_schema
from evertide.persist.faults import Corrupt
from evertide.persist.state import BlobPart
from evertide.persist.updates import UpdateColumns
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp

_COMPRESSION: Final = "zstd"
_ROW_GROUP_ROWS: Final = 128 * 1024


def columns_to_table(desc: RelationDesc, updates: UpdateColumns) -> pa.Table:
    """Updates as Arrow columns."""
    rows = updates.rows
    if updates.errors is not None:
        nulls: Row = (None,) * desc.arity
        rows = [nulls if e is not None else r for r, e in zip(rows, updates.errors, strict=True)]
    columns: Iterable[Sequence[Datum]] = zip(*rows, strict=True) if rows else repeat(())
    arrays = [
        encode_column(sql_type, column)
        for sql_type, column in zip(desc.types, columns, strict=False)
    ]
    errors = pa.nulls(len(updates), pa.string())
    if updates.errors is not None:
        errors = pa.array(updates.errors, pa.string())
    timestamps = pa.array(updates.timestamps, pa.int64())
    diffs = pa.array(updates.diffs, pa.int64())
    return pa.Table.from_arrays([*arrays, errors, timestamps, diffs], schema=update_schema(desc))


def table_to_columns(desc: RelationDesc, table: pa.Table) -> UpdateColumns:
    """Inverse of columns_to_table."""
    columns = [
        decode_column(sql_type, table.column(index)) for index, sql_type in enumerate(desc.types)
    ]
    rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
    timestamps = cast(list[Timestamp], decode_column(INT8, table.column("t")))
    diffs = cast(list[int], decode_column(INT8, table.column("d")))
    if table.column("e").null_count == table.num_rows:
        return UpdateColumns(rows, timestamps, diffs)
    errors = cast(list[str | None], decode_column(TEXT, table.column("e")))
    rows = [row if error is None else () for row, error in zip(rows, errors, strict=True)]
    return UpdateColumns(rows, timestamps, diffs, errors)


def encode_part(table: pa.Table) -> bytes:
    """The bytes of a part. Dictionaries and statistics are pyarrow's defaults, which Spark uses."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression=_COMPRESSION, row_group_size=_ROW_GROUP_ROWS, store_schema=False
    )
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def decode_part(desc: RelationDesc, part: BlobPart, value: bytes) -> pa.Table:
    """The table of a part, after comparing its bytes with what the state says they are."""
    if checksum(value) != part.checksum:
        raise Corrupt(f"part {part.key} does not have its checksum")
    table = pq.read_table(pa.BufferReader(value), use_threads=False)
    return table.cast(update_schema(desc))


def checksum(value: bytes) -> int:
    """What a BlobPart keeps to tell damaged bytes."""
    return xxhash.xxh3_64_intdigest(value)
