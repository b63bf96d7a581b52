"""Goal: an index can be read as far back as RETAIN HISTORY says, its inputs are held for as long,
and both are let go when that is taken back.

Method: a worker over stores in memory; holds are moved by hand.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

from evertide.dataflow.description import DataflowDescription, IndexExport
from evertide.spark import holds
from evertide.spark.running import INDEX_HISTORY_MS, RunningDataflow
from evertide.vocab.timestamp import Timestamp
from tests.spark.test_a_worker_holds_history_while_it_needs_it import (
    INDEX,
    INDEX_ID,
    Replica,
    _replicas,
)

HOUR_MS = 3_600_000
FIRST, LATER = 10_000_000, 10_000_000 + HOUR_MS // 2


def index_for(history_ms: int | None) -> DataflowDescription:
    assert isinstance(INDEX.export, IndexExport)
    return replace(INDEX, export=replace(INDEX.export, history_ms=history_ms))


async def running(replica: Replica, history_ms: int | None) -> RunningDataflow:
    await replica.worker.set_dataflows({INDEX_ID: index_for(history_ms)})
    dataflow = replica.worker.dataflow(INDEX_ID)
    assert dataflow is not None
    while dataflow.placement is None:
        await replica.rounds()
        await asyncio.sleep(0.01)
    return dataflow


async def since(replica: Replica, dataflow: RunningDataflow) -> int:
    await holds._move_all(replica.client, replica.worker)
    assert dataflow.placement is not None
    return dataflow.placement.since


async def test_it_begins_and_stays_as_far_back_as_asked(tmp_path: Path) -> None:
    (replica,), _ = await _replicas(1, tmp_path)
    await replica.insert("first", FIRST)
    await replica.insert("second", LATER)
    dataflow = await running(replica, HOUR_MS)
    await replica.rounds()
    assert await since(replica, dataflow) <= FIRST
    assert dataflow.placement is not None
    peeked = await dataflow.placement.engine.peek(INDEX_ID, None, Timestamp(FIRST))
    assert peeked.rows == [(("first",), 1)]
    await replica.insert("third", FIRST + HOUR_MS + 5)
    await replica.rounds()
    assert await since(replica, dataflow) == FIRST + 5


async def test_what_is_asked_may_change_while_it_runs(tmp_path: Path) -> None:
    (replica,), _ = await _replicas(1, tmp_path)
    await replica.insert("first", FIRST)
    dataflow = await running(replica, HOUR_MS)
    await replica.insert("second", LATER)
    await replica.rounds()
    assert await since(replica, dataflow) == LATER - HOUR_MS
    await replica.worker.set_dataflows({INDEX_ID: index_for(None)})
    assert replica.worker.dataflow(INDEX_ID) is dataflow, "it goes on with the state it has"
    assert await since(replica, dataflow) == LATER - INDEX_HISTORY_MS
    await replica.worker.set_dataflows({INDEX_ID: index_for(3_000)})
    assert await since(replica, dataflow) == LATER - 3_000
