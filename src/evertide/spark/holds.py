"""What need not be kept any longer: history of views' inputs, and of indexes."""

import asyncio
from functools import partial

from evertide.dataflow.description import ShardExport, hold_owner
from evertide.persist.handle import PersistClient
from evertide.persist.state import ShardChange, existing, move_hold
from evertide.spark.engine import EngineLost
from evertide.spark.running import Placement, RunningDataflow
from evertide.spark.worker import INDEX_HISTORY_MS, Worker
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_back

PAUSE_SECONDS = 5.0


async def keep_holds(persist: PersistClient, worker: Worker) -> None:
    """Move every view's holds to where a restart would begin, and indexes' sinces, for ever."""
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        for dataflow in worker.dataflows():
            for change in hold_changes(dataflow):
                await persist.machine.apply_all([change])
            await _compact_index(dataflow)


async def _compact_index(dataflow: RunningDataflow) -> None:
    """Let an index forget what nobody asks for; peeks below are refused from this moment on."""
    placement = dataflow.placement
    if placement is None or dataflow.index_key is None or dataflow.stopped is not None:
        return
    if dataflow.frontier == EMPTY_FRONTIER:
        return
    since = Timestamp(dataflow.frontier - 1 - INDEX_HISTORY_MS)
    if since <= placement.since:
        return
    dataflow.placement = Placement(placement.engine, since)
    try:
        await placement.engine.allow_compaction(dataflow.description.global_id, since)
    except EngineLost:
        pass  # the next incarnation starts without that history anyway


def hold_changes(dataflow: RunningDataflow) -> list[ShardChange]:
    """A restart hydrates at max(as_of, output upper - 1): nothing below that is needed."""
    sink = dataflow.sink
    if sink is None or dataflow.stopped is not None or sink.upper == EMPTY_FRONTIER:
        return []
    assert isinstance(dataflow.description.export, ShardExport)
    hold_ts = max(dataflow.description.as_of, step_back(sink.upper))
    owner = hold_owner(dataflow.description.global_id)
    transition = existing(partial(move_hold, owner=owner, hold_ts=hold_ts))
    return [ShardChange(i.shard_id, transition) for i in dataflow.description.imports]
