"""Views that are refreshed at certain times: what changed in between counts from the next one on.

A tick of such a view reaches from one refresh to the next, so nothing is computed in between; its
inputs' history is held until then, as that of any view which has not come further. After the last
refresh it is finished: its shard is sealed, and it needs neither state nor inputs.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from evertide.persist.coding.batch import UpdateBatch
from evertide.spark.running import RunningDataflow
from evertide.spark.sink import ShardSink
from evertide.spark.source import Look
from evertide.vocab.refresh import RefreshSchedule
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp
from evertide.vocab.update import Update


def postponed(updates: Sequence[Update], schedule: RefreshSchedule | None) -> Sequence[Update]:
    """The updates, each at the first refresh that is not before it; without a schedule, as is."""
    if schedule is None or not len(updates):
        return updates
    if isinstance(updates, UpdateBatch) and updates.columnar:
        return _postponed_columns(updates, schedule)
    return [one._replace(ts=schedule.next_at(one.ts)) for one in updates]


def _postponed_columns(batch: UpdateBatch, schedule: RefreshSchedule) -> UpdateBatch:
    times, places = np.unique(batch.table.column("t").to_numpy(), return_inverse=True)
    later = np.array([schedule.next_at(Timestamp(ts)) for ts in times.tolist()], dtype=np.int64)
    if (later == times).all():
        return batch
    number = batch.table.schema.get_field_index("t")
    moved = pa.array(later[places], pa.int64())
    table = batch.table.set_column(number, batch.table.schema.field(number), moved)
    return UpdateBatch(batch.desc, table=table, count=len(batch))


def reached(dataflow: RunningDataflow, inputs: Look) -> Timestamp:
    """How far a dataflow can go by now; one with refreshes goes from one to the next.

    Only contents at refreshes matter to it, so its inputs' changes are postponed as well: a tick
    has fewer times to tell apart.
    """
    upper = min(map(inputs.upper, dataflow.description.imports), default=EMPTY_FRONTIER)
    refresh = dataflow.description.refresh
    return upper if refresh is None else refresh.known_below(upper)


def stands_still(dataflow: RunningDataflow) -> bool:
    """Whether readers know that a view stands still with its inputs: not one that time itself
    changes, nor one of which they know only up to its next refresh."""
    return not dataflow.plan.is_temporal and dataflow.description.refresh is None


def is_over(dataflow: RunningDataflow) -> bool:
    """Whether a view has had its last refresh, in this life or in an earlier one."""
    refresh, sink = dataflow.description.refresh, dataflow.sink
    if refresh is None or not isinstance(sink, ShardSink):
        return False
    if sink.upper == EMPTY_FRONTIER:
        return True
    return dataflow.frontier > MIN_TS and refresh.next_at(dataflow.frontier) == EMPTY_FRONTIER
