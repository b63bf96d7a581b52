"""Critical holds move on as views do, so that their inputs' history may be merged behind them."""

import asyncio
from functools import partial

from evertide.dataflow.description import ShardExport
from evertide.persist.handle import PersistClient
from evertide.persist.state import ShardChange, existing, set_hold
from evertide.spark.running import RunningDataflow
from evertide.spark.worker import Worker
from evertide.vocab.timestamp import EMPTY_FRONTIER, step_back

PAUSE_SECONDS = 5.0


async def keep_holds(persist: PersistClient, worker: Worker) -> None:
    """Downgrade every view's holds to where a restart would begin, for ever."""
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        for dataflow in worker.dataflows():
            for change in hold_changes(dataflow):
                await persist.machine.apply_all([change])


def hold_changes(dataflow: RunningDataflow) -> list[ShardChange]:
    """A restart hydrates at max(as_of, output upper - 1): nothing below that is needed."""
    sink = dataflow.sink
    if sink is None or dataflow.stopped is not None or sink.upper == EMPTY_FRONTIER:
        return []
    assert isinstance(dataflow.description.export, ShardExport)
    hold_ts = max(dataflow.description.as_of, step_back(sink.upper))
    owner = f"view {dataflow.description.global_id}"
    transition = existing(partial(set_hold, owner=owner, hold_ts=hold_ts))
    return [ShardChange(i.shard_id, transition) for i in dataflow.description.imports]
