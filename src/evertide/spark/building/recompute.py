"""Ticks that change so much that building the state anew takes less than following the changes.

The output is computed as a whole at every timestamp at which an input changed, and the difference
to the one before is given at that timestamp: as exact as following. Meanwhile the dataflow has no
state, and nothing new is shown: its readers wait.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evertide.dataflow.description import Import, ShardExport
from evertide.expr.relation import Types
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.faults import BelowSince
from evertide.spark.engine import Engine
from evertide.spark.running import RunningDataflow
from evertide.spark.source import Collections, count_updates, snapshot_inputs
from evertide.spark.tables import consolidate_updates
from evertide.spark.takeover.sink import TakeoverSink
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_back, step_forward
from evertide.vocab.update import Update

# So many changes per row that its inputs hold afterwards make a tick take longer than building the
# state anew. `make bench` prints where the two meet, per view: measured from 0.3 (the best row of
# each group) over 0.7 (joins of three and five) to 1.3 (least and greatest); a count of distinct
# values and a left join are quicker followed even at 1.6. What was there before is read as well.
CROSSOVER: Final = 1.0
# Below this a tick takes some tens of milliseconds, whatever share of the state it changes.
LEAST_CHANGES: Final = 20_000
# The difference of two outputs is taken row by row, at about 1.5 kB a row: more are followed.
MOST_RECORDS: Final = 500_000


@dataclass(frozen=True, slots=True)
class Changes:
    """What a tick would follow: how many changes, how many rows they add, and at which times."""

    count: int
    net: int
    times: tuple[Timestamp, ...]


def changes_of(inputs: Mapping[GlobalId, Sequence[Update]]) -> Changes:
    """The changes of all inputs together."""
    net = 0
    times: set[int] = set()
    for updates in inputs.values():
        if isinstance(updates, UpdateBatch) and updates.columnar:
            net += int(updates.table.column("d").to_numpy().sum())
            times.update(np.unique(updates.table.column("t").to_numpy()).tolist())
        else:
            net += sum(update.diff for update in updates)
            times.update(update.ts for update in updates)
    count = sum(map(len, inputs.values()))
    return Changes(count, net, tuple(Timestamp(ts) for ts in sorted(times)))


async def too_many_changes(
    collections: Collections,
    dataflow: RunningDataflow,
    inputs: Mapping[GlobalId, Sequence[Update]],
    upper: Timestamp,
) -> Changes | None:
    """The changes of a tick, if building the state anew takes less time than following them."""
    if count_updates(inputs) < LEAST_CHANGES or upper == EMPTY_FRONTIER:
        return None
    # Time itself changes a temporal one, and what is owed is not to be found in the shard yet. An
    # index is its own state: nobody takes the difference, and its history would be lost. The
    # shard of one that is staged holds another view.
    if dataflow.plan.is_temporal or dataflow.owes or dataflow.index_key is not None:
        return None
    if isinstance(dataflow.sink, TakeoverSink):
        return None
    records = sum([await collections.records(i) for i in dataflow.description.imports])
    changes = changes_of(inputs)
    return changes if is_worth_it(changes, records) else None


def is_worth_it(changes: Changes, records: int) -> bool:
    """Whether to build anew; `records` are those of the inputs, with these changes among them.

    Each timestamp needs a whole computation of its own.
    """
    if changes.count < LEAST_CHANGES:
        return False
    rows = max(records - changes.count + changes.net, 0)
    return changes.count > CROSSOVER * rows * len(changes.times)


async def output_before(
    collections: Collections, dataflow: RunningDataflow
) -> Sequence[Update] | None:
    """What a view holds now: its shard has it, since nothing is owed.

    None: not to be found, because another replica is so far ahead that it was forgotten; or so much
    that taking the difference would need too much memory.
    """
    description = dataflow.description
    export = description.export
    assert isinstance(export, ShardExport), "an index is followed"
    assert not dataflow.owes, "all that was computed is in the shard"
    own = Import(description.global_id, export.shard_id, export.desc, False)
    # Where the shard is not as far as the view, nothing has changed in between.
    as_of = min(step_back(dataflow.frontier), step_back(await collections.upper(own)))
    if await collections.records(own) > MOST_RECORDS:
        return None
    try:
        return await collections.columns.snapshot(own, as_of)
    except BelowSince:
        return None


async def output_at(
    collections: Collections, dataflow: RunningDataflow, engine: Engine, as_of: Timestamp
) -> Sequence[Update]:
    """What the output holds then, computed from nothing and kept nowhere."""
    scratch = GlobalId(f"{dataflow.description.global_id}_at_{as_of}")
    inputs = await snapshot_inputs(collections, dataflow.description.imports, as_of)
    await engine.create(scratch, dataflow.plan, index_key=None, as_of=as_of)
    try:
        return await engine.tick(scratch, inputs, as_of, step_forward(as_of))
    finally:
        await engine.drop(scratch)


async def differences(
    types: Types,
    before: Sequence[Update],
    times: Sequence[Timestamp],
    contents: Callable[[Timestamp], Awaitable[Sequence[Update]]],
) -> list[Update]:
    """The output's changes at these times, given what it holds before and at each of them."""
    found: list[Update] = []
    for ts in times:
        after = await contents(ts)
        found += await asyncio.to_thread(_difference, types, before, after, ts)
        before = after
    return found


def _difference(
    types: Types, before: Iterable[Update], after: Iterable[Update], ts: Timestamp
) -> list[Update]:
    gone = [Update(row, ts, -diff, error) for row, _, diff, error in before]
    come = [Update(row, ts, diff, error) for row, _, diff, error in after]
    return consolidate_updates(types, [*gone, *come], ts)
