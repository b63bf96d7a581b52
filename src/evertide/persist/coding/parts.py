"""Batches of updates as Parquet, so that Spark reads them directly.

A part is written once and never changed. Its schema is encoding.update_schema; values of an error
row are null. Every row group has statistics, by which readers leave out those that hold nothing for
them: of times here, of any column in Spark.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from evertide.persist.coding.encoding import decode_column, encode_column, update_schema
from evertide.persist.coding.updates import UpdateColumns
from evertide.persist.faults import Corrupt
from evertide.persist.state import BlobPart
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp

# A stretch of time: lower <= ts < upper.
Times: TypeAlias = tuple[Timestamp, Timestamp]

_COMPRESSION: Final = "zstd"
# What a reader skips or reads as a whole: a few to a part of usual size.
_ROW_GROUP_ROWS: Final = 32 * 1024
_SAMPLE_ROWS: Final = 1_000
# e, t and d end every schema.
_OWN_COLUMNS: Final = 3
_TIMESTAMP_FROM_END: Final = 2


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
    """The bytes of a part; every page has a checksum."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=_COMPRESSION,
        row_group_size=_ROW_GROUP_ROWS,
        write_page_checksum=True,
        store_schema=False,
        **skipping_aids(table),
    )
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def skipping_aids(table: pa.Table) -> dict[str, list[str]]:
    """Which columns get statistics and dictionaries, by which readers skip row groups.

    All those that never mislead one. Spark orders NaN last and finds -0.0 equal to 0.0; Parquet's
    statistics leave NaN out, and a dictionary tells the zeros apart: a filter on a float column
    would lose rows. A dictionary of values that hardly repeat costs time and room for nothing.
    """
    floats = {f.name for f in table.schema if pa.types.is_floating(f.type)}
    misleading = {name for name in floats if pc.any(pc.is_nan(table.column(name))).as_py()}
    sample = _sample(table)
    unrepeated = {f.name for f in table.schema if not _repeats(sample.column(f.name))}
    return {
        "write_statistics": _leaf_paths(f for f in table.schema if f.name not in misleading),
        "use_dictionary": _leaf_paths(
            f for f in table.schema if f.name not in floats and f.name not in unrepeated
        ),
    }


def _sample(table: pa.Table) -> pa.Table:
    """Rows from all over the table."""
    rows = np.arange(0, table.num_rows, table.num_rows // _SAMPLE_ROWS + 1)
    return table.take(pa.array(rows))


def _repeats(sample: pa.ChunkedArray) -> bool:
    """Whether a dictionary pays for a column of which this is a sample."""
    if pa.types.is_nested(sample.type):
        return True
    return bool(2 * pc.count_distinct(sample).as_py() <= len(sample))


def _leaf_paths(fields: Iterable[pa.Field]) -> list[str]:
    """The columns below these fields, as Parquet names them."""
    paths: list[str] = []
    for field in fields:
        if pa.types.is_list(field.type):
            paths += _leaf_paths([field.type.value_field.with_name(f"{field.name}.list.element")])
        elif pa.types.is_struct(field.type):
            children = (field.type.field(i) for i in range(field.type.num_fields))
            paths += _leaf_paths(c.with_name(f"{field.name}.{c.name}") for c in children)
        else:
            paths.append(field.name)
    return paths


def decode_part(
    desc: RelationDesc, part: BlobPart, value: bytes, times: Times | None = None
) -> pa.Table:
    """The table of a part, after comparing its bytes with what the state says they are.

    A reader of another version of the schema has fewer columns than the part, and gets the first of
    them, or has more, and gets NULL there. With `times`, only the updates within.
    """
    if checksum(value) != part.checksum:
        raise _corrupt(part, "is damaged: its checksum differs")
    try:
        with pq.ParquetFile(pa.BufferReader(value)) as file:
            _check_columns(file.schema_arrow, update_schema(desc))
            return _read(file, update_schema(desc), times)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(part, f"is not readable: {error}") from error


def _check_columns(stored: pa.Schema, wanted: pa.Schema) -> None:
    """Columns of one place have one type in all versions; ours are in every part."""
    ours = wanted.names[-_OWN_COLUMNS:]
    if stored.names[-_OWN_COLUMNS:] != ours or len(set(stored.names)) != len(stored.names):
        raise pa.ArrowInvalid(f"its columns are {stored.names}")
    for field in wanted:
        if field.name in stored.names and stored.field(field.name).type != field.type:
            found = stored.field(field.name).type
            raise pa.ArrowInvalid(f"its column {field.name} is {found}, not {field.type}")


def _read(file: pq.ParquetFile, schema: pa.Schema, times: Times | None) -> pa.Table:
    """The updates within the times, in this schema; leaves out row groups that hold none."""
    stored = set(file.schema_arrow.names)
    groups = [
        group
        for group in range(file.metadata.num_row_groups)
        if times is None or _may_hold(file.metadata.row_group(group), times)
    ]
    columns = [name for name in schema.names if name in stored]
    table = file.read_row_groups(groups, columns=columns, use_threads=False)
    if times is not None:
        table = within_times(table, times)
    return fit_columns(table, schema)


def fit_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Updates of another version of the schema in this one; raises ArrowInvalid for other types.

    Columns that are not in the schema are left out, and those that the updates lack are NULL.
    """
    if table.schema.equals(schema):
        return table
    _check_columns(table.schema, schema)
    stored = set(table.column_names)
    return pa.Table.from_arrays(
        [
            table.column(field.name)
            if field.name in stored
            else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
            for field in schema
        ],
        schema=schema,
    )


def _may_hold(group: pq.RowGroupMetaData, times: Times) -> bool:
    timestamps = group.column(group.num_columns - _TIMESTAMP_FROM_END).statistics
    if timestamps is None or not timestamps.has_min_max:
        return True
    lower, upper = times
    return bool(lower <= timestamps.max and timestamps.min < upper)


def within_times(table: pa.Table, times: Times) -> pa.Table:
    """The updates with times among these; the same table if that is all of them."""
    lower, upper = times
    timestamps = table.column("t")
    ends = pc.min_max(timestamps).as_py()
    if ends["min"] is None or (lower <= ends["min"] and ends["max"] < upper):
        return table
    late_enough = pc.greater_equal(timestamps, pa.scalar(lower, pa.int64()))
    return table.filter(pc.and_(late_enough, pc.less(timestamps, pa.scalar(upper, pa.int64()))))


def _corrupt(part: BlobPart, what: str) -> Corrupt:
    return Corrupt(what, shard_id=part.shard_id, key=part.key)


def checksum(value: bytes) -> int:
    """What a BlobPart keeps to tell damaged bytes."""
    return xxhash.xxh3_64_intdigest(value)
