"""Updates as Arrow tables and back, for relations that have types but no names."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evertide.expr.relation import Types
from evertide.persist.coding.batch import to_batch
from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.parts import skipping_aids, table_to_columns
from evertide.persist.coding.updates import consolidate_columns
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update


@lru_cache(maxsize=1024)
def desc_of(types: Types) -> RelationDesc:
    """A description of unnamed columns."""
    return relation_desc(*(("", sql_type) for sql_type in types))


def updates_to_table(types: Types, updates: Sequence[Update]) -> pa.Table:
    """c0..cN-1, e, t and d."""
    return to_batch(desc_of(types), updates).table


def table_to_updates(types: Types, table: pa.Table) -> list[Update]:
    """Inverse of updates_to_table."""
    return table_to_columns(desc_of(types), table).updates()


def as_updates(types: Types, table: pa.Table, as_of: int) -> pa.Table:
    """A job's rows (c0.., e where it may fail, d) in encoding.update_schema."""
    schema = update_schema(desc_of(types))
    columns = [table.column(f"c{i}") for i in range(len(types))]
    errors = table.column("e") if "e" in table.column_names else pa.nulls(len(table), pa.string())
    times = pa.array(np.full(table.num_rows, as_of, np.int64))
    columns += [errors, times, table.column("d")]
    return pa.Table.from_arrays(columns, names=schema.names).cast(schema)


def consolidate_updates(types: Types, updates: Iterable[Update], since: Timestamp) -> list[Update]:
    """Raise times to since, add up diffs of equal (row, timestamp), drop zeros; ordered by time."""
    return consolidate_columns(types, updates, since).updates()


def write_parquet(table: pa.Table, path: Path) -> None:
    """A file that lives for a job or a dataflow: nothing is gained by making it small."""
    aids = skipping_aids(table)
    pq.write_table(table, path, compression="none", store_schema=False, **aids)
