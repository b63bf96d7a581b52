"""Shards as Arrow tables: contents at a timestamp, without an object per row.

Parts are columns already, so what is left to do is to add up diffs, and that only for rows that
were ever taken away: they are found by looking for the values of those few in every part. The rest
is passed on as it was stored. What takes time runs in threads beside the event loop.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.persist.coding.batch import concat_batches
from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.parts import Times, decode_part
from evertide.persist.faults import BlobMissing
from evertide.persist.handle import PersistClient
from evertide.persist.prepare import load_bytes, load_inline
from evertide.persist.state import Batch, BlobPart, InlinePart, ShardState, refers_to
from evertide.persist.threads import give_way
from evertide.persist.txn import Txns
from evertide.persist.upkeep.merge import merge_tables, to_keys
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward

# The place of a column among those that can be compared, and the values looked for in it.
_Sought: TypeAlias = tuple[int, pa.Array]

# Parts on their way at once: one is fetched while another is decoded.
_AT_ONCE: Final = 2
# No column is looked at any more once so few rows are left that adding them all up costs nothing.
_FEW_ROWS: Final = 1_000
# Slices of fewer rows, on average, would cost whoever goes through them more than a copy.
_SLICE_ROWS: Final = 1_000
_NOT_OF_THE_ROW: Final = ("t", "d")


async def snapshot_table(
    client: PersistClient, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
) -> pa.Table:
    """What the shard holds at as_of, in the schema of its updates, every t = as_of.

    Errors are rows of it. No row's diffs add up to nothing, and where a diff is negative, it is the
    row's only one; a row that was inserted twice may be there twice.

    Waits until upper > as_of; raises BelowSince, BlobMissing, Corrupt.
    """
    await client.wait_for_upper(shard_id, as_of)
    return await _snapshot(client, shard_id, desc, as_of)


async def table_snapshot_table(
    client: PersistClient, txns: Txns, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
) -> pa.Table:
    """The same of a table: waits until the upper of all tables > as_of."""
    await txns.wait_for_upper(as_of)
    return await _snapshot(client, shard_id, desc, as_of)


async def _snapshot(
    client: PersistClient, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
) -> pa.Table:
    while True:
        state = await client.reader.readable(shard_id, as_of)
        try:
            tables = await _load(client, shard_id, desc, state, as_of)
        except BlobMissing as missing:
            if refers_to(await client.state(shard_id), missing.key):
                raise
            continue  # garbage collection was faster; look at what replaced the batches
        return await asyncio.to_thread(_add_up, desc, tables, as_of)


async def _load(
    client: PersistClient,
    shard_id: ShardId,
    desc: RelationDesc,
    state: ShardState,
    as_of: Timestamp,
) -> list[pa.Table]:
    """The updates up to as_of, a table for each part and one for all that lies in the state."""
    batches = [batch for batch in state.batches if batch.lower <= as_of]
    times = (MIN_TS, step_forward(as_of))
    gate = asyncio.Semaphore(_AT_ONCE)

    async def load(batch: Batch, part: BlobPart) -> pa.Table:
        within = None if batch.upper <= times[1] else times
        async with gate:
            value = await load_bytes(client.blob, part)
            return await asyncio.to_thread(decode_part, desc, part, value, within)

    inline = [(b, p) for b in batches for p in b.parts if isinstance(p, InlinePart)]
    stored = [(b, p) for b in batches for p in b.parts if isinstance(p, BlobPart)]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(load(batch, part)) for batch, part in stored]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    parts = [part for _, part in inline]
    in_state = await asyncio.to_thread(_inline_table, shard_id, desc, parts, times)
    return [*(task.result() for task in tasks), in_state]


def _inline_table(
    shard_id: ShardId, desc: RelationDesc, parts: Sequence[InlinePart], times: Times
) -> pa.Table:
    batches = []
    for part in parts:
        batches.append(load_inline(desc, part, shard_id=shard_id).between(*times))
        give_way()
    return concat_batches(desc, batches).table


def _add_up(desc: RelationDesc, tables: list[pa.Table], as_of: Timestamp) -> pa.Table:
    taken = [table.filter(pc.less(table["d"], 0)) for table in tables]
    retractions = pa.concat_tables(taken)
    if retractions.num_rows:
        tables = _without_retractions(desc, tables, retractions, as_of)
    found = pa.concat_tables(tables)
    times = pa.repeat(pa.scalar(as_of, pa.int64()), found.num_rows)
    return found.set_column(
        found.schema.get_field_index("t"), update_schema(desc).field("t"), times
    )


def _without_retractions(
    desc: RelationDesc, tables: list[pa.Table], retractions: pa.Table, as_of: Timestamp
) -> list[pa.Table]:
    """The same, with rows that a retraction may concern taken out, added up and put at the end."""
    columns = enumerate(_comparable(retractions))
    sought = sorted(((i, pc.unique(column)) for i, column in columns), key=lambda s: -len(s[1]))
    few = max(_FEW_ROWS, 2 * retractions.num_rows)
    concerned: list[pa.Table] = []
    for number, table in enumerate(tables):
        rows = _matching(table, sought, few)
        if len(rows):
            concerned.append(table.take(rows))
            tables[number] = _without(table, rows)
        give_way()
    return [*tables, merge_tables(desc, concerned, as_of)]


def _without(table: pa.Table, rows: pa.Array) -> pa.Table:
    """The other rows. Where these are few, nothing is copied: the table falls into slices."""
    dropped = rows.to_numpy().astype(np.int64)
    if len(dropped) * _SLICE_ROWS > table.num_rows:
        others = np.ones(table.num_rows, dtype=bool)
        others[dropped] = False
        return table.filter(pa.array(others))
    bounds = pairwise([-1, *np.sort(dropped).tolist(), table.num_rows])
    return pa.concat_tables([table.slice(a + 1, b - a - 1) for a, b in bounds])


def _matching(table: pa.Table, sought: Sequence[_Sought], few: int) -> pa.Array:
    """Rows whose values are all among those sought, and perhaps others.

    The most telling column comes first; the others are looked at only for what it left.
    """
    columns = _comparable(table)
    rows = pa.array(range(0), pa.uint64())
    for number, (place, values) in enumerate(sought):
        column = columns[place] if number == 0 else columns[place].take(rows)
        found = pc.indices_nonzero(pc.is_in(column, value_set=values))
        rows = found if number == 0 else rows.take(found)
        if len(rows) <= few:
            break
    return rows


def _comparable(table: pa.Table) -> list[pa.ChunkedArray]:
    """The columns of the rows, as far as Arrow can compare them: all but arrays."""
    kept = [
        field.name
        for field in table.schema
        if field.name not in _NOT_OF_THE_ROW and not pa.types.is_list(field.type)
    ]
    columns: list[pa.ChunkedArray] = to_keys(table.select(kept)).columns
    return columns
