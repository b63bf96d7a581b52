"""Goal: a worker holds back its inputs' history while it needs it and no longer; one that was left
behind all the same begins again.

Method: workers over stores in memory, one round at a time.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import (
    DataflowDescription,
    Import,
    IndexExport,
    ShardExport,
    hold_owner,
)
from evertide.expr.relation import Get
from evertide.persist.handle import PersistClient
from evertide.persist.leases import ReadHold
from evertide.persist.state import (
    ShardChange,
    advance_since,
    allowed_since,
    existing,
    move_hold,
    set_hold,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import Consensus
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.spark.channel import FailedReply
from evertide.spark.engine import DriverEngine, EngineFailing
from evertide.spark.evaluate import Evaluator
from evertide.spark.holds import keep_holds
from evertide.spark.partitions.connection import ResidentFault
from evertide.spark.running import Placement, RunningDataflow
from evertide.spark.worker import Worker
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import MIN_TS, Timestamp

DESC = relation_desc(("a", TEXT))
TABLE, VIEW = ShardId("t"), ShardId("v")
TABLE_ID, VIEW_ID, INDEX_ID = GlobalId("t"), GlobalId("v"), GlobalId("i")
IMPORT = Import(TABLE_ID, TABLE, DESC, is_table=True)
INDEX = DataflowDescription(
    INDEX_ID,
    ClusterId("c"),
    (IMPORT,),
    Get(TABLE_ID, DESC.types),
    IndexExport(TABLE_ID, (0,), DESC),
    MIN_TS,
)
COPY = DataflowDescription(
    VIEW_ID,
    ClusterId("c"),
    (IMPORT,),
    Get(TABLE_ID, DESC.types),
    ShardExport(VIEW, DESC),
    MIN_TS,
)
HELD = hold_owner(VIEW_ID)


class CountedStorage(Storage):
    """Counts the holds it gave out that are not released; each takes a moment to be had."""

    given = 0

    async def hold(self, collections: Sequence[Import], as_of: Timestamp) -> ReadHold:
        hold = await super().hold(collections, as_of)
        self.given += 1
        release, once = hold.release, iter([1])

        def counted() -> None:
            self.given -= next(once, 0)
            release()

        hold.release = counted  # type: ignore[method-assign]
        await asyncio.sleep(0.01)
        return hold


class Replica:
    """A worker and what it works with."""

    def __init__(self, consensus: Consensus, blob: MemoryBlob, scratch: Path) -> None:
        self.client = PersistClient(consensus, blob, cache_bytes=0)
        self.txns = Txns(self.client, ShardId("txns"))
        self.storage = CountedStorage(self.client, self.txns)
        self.worker = Worker(self.client, self.storage, DriverEngine(Evaluator(scratch)))

    async def insert(self, text: str, at: int) -> None:
        write = {TABLE: TableWrite(DESC, [((text,), 1)])}
        assert isinstance(await self.txns.commit(write, at=Timestamp(at)), Committed)

    async def rounds(self, count: int = 5) -> None:
        for _ in range(count):
            await self.worker.round()
            await asyncio.sleep(0)


async def _replicas(count: int, scratch: Path) -> tuple[list[Replica], MemoryBlob]:
    """Replicas of one cluster, a table, and the shard of a view over it."""
    store, blob = MemoryStore(), MemoryBlob()
    consensus = store.consensus(await store.raise_epoch())
    replicas = [Replica(consensus, blob, scratch / str(i)) for i in range(count)]
    client = replicas[0].client
    await replicas[0].txns.ensure()
    hold = existing(partial(set_hold, owner=HELD, hold_ts=MIN_TS))
    await client.append_all([], also=[register_table(TABLE), ShardChange(TABLE, hold)])
    await client.create_shard(VIEW, writer=VIEW_ID)
    return replicas, blob


async def test_hydration_that_failed_lets_go_of_its_inputs(tmp_path: Path) -> None:
    (replica,), blob = await _replicas(1, tmp_path)
    await replica.insert("x" * 200_000, 5)
    (key,) = await blob.keys()
    value = await blob.get(key)
    await blob.delete(key)
    await replica.worker.set_dataflows({INDEX_ID: INDEX})
    await replica.rounds()
    dataflow = replica.worker.dataflow(INDEX_ID)
    assert dataflow is not None
    assert dataflow.placement is None
    assert replica.storage.given == 0
    await blob.put(key, value)
    while dataflow.placement is None:
        await replica.rounds()
        await asyncio.sleep(0.01)
    assert replica.storage.given == 1
    await replica.worker.set_dataflows({})
    assert replica.storage.given == 0


async def _meets(
    fault: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Replica, RunningDataflow]:
    """A replica that asked an index to forget history, and got this for an answer."""
    (replica,), _ = await _replicas(1, tmp_path)
    await replica.insert("first", 5)
    await replica.worker.set_dataflows({INDEX_ID: INDEX})
    dataflow = replica.worker.dataflow(INDEX_ID)
    assert dataflow is not None
    await until_placed(replica, dataflow)
    await replica.insert("second", 100_000)
    await replica.rounds()
    refused: list[int] = []

    async def fail(_engine: DriverEngine, _global_id: GlobalId, since: Timestamp) -> None:
        refused.append(since)
        raise fault

    monkeypatch.setattr("evertide.spark.holds.PAUSE_SECONDS", 0.01)
    with monkeypatch.context() as patched:
        patched.setattr(DriverEngine, "allow_compaction", fail)
        keeping = asyncio.create_task(keep_holds(replica.client, replica.worker))
        while not refused:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert not keeping.done(), "the replica would end with it"
    keeping.cancel()
    return replica, dataflow


async def test_state_that_cannot_forget_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = EngineFailing("planted", broken=True)
    replica, dataflow = await _meets(fault, tmp_path, monkeypatch)
    assert dataflow.placement is None
    placement = await until_placed(replica, dataflow)
    peeked = await placement.engine.peek(INDEX_ID, None, Timestamp(dataflow.frontier - 1))
    assert sorted(peeked.rows) == [(("first",), 1), (("second",), 1)]


async def test_a_bug_that_left_state_broken_stops_its_dataflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = ResidentFault(FailedReply("ValueError", "planted", "", broken=True))
    _, dataflow = await _meets(fault, tmp_path, monkeypatch)
    assert dataflow.stopped == "internal error"


async def test_whoever_fails_without_harm_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, dataflow = await _meets(EngineFailing("MemoryError: planted"), tmp_path, monkeypatch)
    assert dataflow.placement is not None
    assert dataflow.stopped is None


async def until_placed(replica: Replica, dataflow: RunningDataflow) -> Placement:
    while dataflow.placement is None:
        await replica.rounds()
        await asyncio.sleep(0.01)
    return dataflow.placement


async def test_an_index_dropped_while_it_is_built_lets_go_of_its_inputs(tmp_path: Path) -> None:
    (replica,), _ = await _replicas(1, tmp_path)
    await replica.insert("first", 5)
    await replica.worker.set_dataflows({INDEX_ID: INDEX})
    building = asyncio.create_task(replica.worker.round())
    while not replica.storage.given:
        await asyncio.sleep(0)
    assert not building.done()
    await replica.worker.set_dataflows({})
    await building
    await replica.rounds()
    assert replica.storage.given == 0


async def test_a_replica_that_lags_behind_begins_again_where_the_view_is(tmp_path: Path) -> None:
    """The holds of a view follow the replica that is furthest."""
    (first, second), _ = await _replicas(2, tmp_path)
    for replica in (first, second):
        await replica.insert("before", 1_000 if replica is first else 2_000)
        await replica.worker.set_dataflows({VIEW_ID: COPY})
        await replica.rounds()
    for number in range(3, 6):
        await first.insert("meanwhile", number * 100_000)
        await first.rounds()
    upper = (await first.client.state(VIEW)).upper
    moved = existing(partial(move_hold, owner=HELD, hold_ts=Timestamp(upper - 1)))
    merged = existing(lambda state: advance_since(state, to=allowed_since(state, 0)))
    await first.client.machine.apply_all([ShardChange(TABLE, moved), ShardChange(TABLE, merged)])
    await first.worker.set_dataflows({})
    await first.insert("after", 600_000)
    while (await second.client.state(VIEW)).upper <= 600_000:
        await second.rounds()
        await asyncio.sleep(0.01)
    dataflow = second.worker.dataflow(VIEW_ID)
    assert dataflow is not None
    assert dataflow.stopped is None
    rows = await second.client.snapshot(VIEW, DESC, Timestamp(600_000))
    assert {update.row[0]: update.diff for update in rows} == {
        "before": 2,
        "meanwhile": 3,
        "after": 1,
    }
