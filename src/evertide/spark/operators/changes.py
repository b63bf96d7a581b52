"""Updates into deltas and back, by rows or by columns as they come."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final

import numpy as np
import pyarrow as pa

from evertide.expr.columnar.batch import Batch, Entry
from evertide.expr.columnar.column import from_arrow, to_arrow
from evertide.expr.relation import Types
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.coding.encoding import one_chunk, update_schema
from evertide.persist.coding.updates import UpdateColumns, zip_updates
from evertide.spark.operators.delta import Delta, ErrorEntry, are_many
from evertide.spark.tables import desc_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# From so many on, updates are not made one by one if they are only to be sent on.
_SOME_ROWS: Final = 16


def delta_of(updates: Sequence[Update]) -> Delta:
    """Updates of a collection, rows and errors told apart."""
    if isinstance(updates, UpdateBatch) and updates.columnar and are_many(len(updates)):
        return _from_table(updates.desc.types, updates.table)
    if isinstance(updates, UpdateBatch) and updates.columns.errors is None:
        columns = updates.columns
        return Delta(list(zip(columns.rows, columns.timestamps, columns.diffs, strict=True)))
    rows: list[Entry] = []
    errors: list[ErrorEntry] = []
    for row, ts, diff, error in updates:
        if error is None:
            rows.append((row, ts, diff))
        else:
            errors.append((error, ts, diff))
    return Delta(rows, errors)


def _from_table(types: Types, table: pa.Table) -> Delta:
    failed = table.column("e")
    if failed.null_count == table.num_rows:
        return Delta(batch=_batch(types, table))
    errors = table.filter(failed.is_valid())
    listed: Iterable[ErrorEntry] = zip(
        errors.column("e").to_pylist(),
        errors.column("t").to_pylist(),
        errors.column("d").to_pylist(),
        strict=True,
    )
    return Delta(errors=list(listed), batch=_batch(types, table.filter(failed.is_null())))


def _batch(types: Types, table: pa.Table) -> Batch:
    arrays = [one_chunk(column) for column in table.columns]
    columns = tuple([from_arrow(t, a) for t, a in zip(types, arrays, strict=False)])
    times, diffs = (np.asarray(array.to_numpy()) for array in arrays[-2:])
    return Batch(types, columns, times, diffs)


def updates_of(delta: Delta, types: Types) -> Sequence[Update]:
    """A delta as updates: in columns if they are some, a table of them if they are many."""
    if delta.is_wide:
        return UpdateBatch(desc_of(types), table=_to_table(types, delta))
    if len(delta) >= _SOME_ROWS and not delta.errors:
        rows, times, diffs = zip(*delta.rows, strict=True)
        columns = UpdateColumns(rows, times, diffs)
        return UpdateBatch(desc_of(types), columns=columns, count=len(rows))
    updates: list[Update] = []
    if len(delta):
        rows, times, diffs = zip(*delta.rows, strict=True)
        updates = zip_updates(rows, times, diffs, repeat(None))
    return updates + [Update((), Timestamp(ts), diff, error) for error, ts, diff in delta.errors]


def _to_table(types: Types, delta: Delta) -> pa.Table:
    batch = delta.batch(types)
    schema = update_schema(desc_of(types))
    columns = [to_arrow(t, c) for t, c in zip(types, batch.columns, strict=True)]
    own = [pa.nulls(len(batch), pa.string()), pa.array(batch.times), pa.array(batch.diffs)]
    table = pa.Table.from_arrays([*columns, *own], schema=schema)
    if not delta.errors:
        return table
    texts, times, diffs = zip(*delta.errors, strict=True)
    nothing = [pa.nulls(len(texts), field.type) for field in schema][: len(types)]
    failed = [pa.array(texts), pa.array(times, pa.int64()), pa.array(diffs, pa.int64())]
    return pa.concat_tables([table, pa.Table.from_arrays([*nothing, *failed], schema=schema)])
