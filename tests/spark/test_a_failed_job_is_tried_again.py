"""Goal: a hydration or a tick that fails for want of room, or because a job failed, makes its view
late and says why; it is done again from the shards, and other views do not wait for it.

Method: a worker over stores in memory whose hydrator, or whose engine, fails while told to.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import DataflowDescription, Import, ShardExport
from evertide.expr.relation import Get
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.spark import worker as worker_module
from evertide.spark.engine import DriverEngine, Engine, EngineFailing
from evertide.spark.evaluate import Evaluator
from evertide.spark.reports import Reports
from evertide.spark.running import RunningDataflow
from evertide.spark.source import input_deltas
from evertide.spark.watch import JobFailed
from evertide.spark.worker import Worker
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT4))
TABLE, VIEW, OTHER = ShardId("t"), ShardId("v"), ShardId("w")
FAULTS = (JobFailed("stage 3 was killed"), OSError(28, "No space left on device"))


@dataclass
class FailingHydrator:
    """Leaves the work to a tick, unless it fails."""

    victim: GlobalId
    fault: Exception | None = None
    tried: int = 0

    async def hydrate(
        self, dataflow: RunningDataflow, _engine: Engine, _as_of: Timestamp
    ) -> Sequence[Update] | None:
        if self.fault is not None and dataflow.description.global_id == self.victim:
            self.tried += 1
            raise self.fault
        return None


@dataclass
class FailingEngine(DriverEngine):
    """Its ticks of one dataflow fail after they have changed the state: half of them is done."""

    evaluator: Evaluator
    victim: GlobalId
    fault: Exception | None = None
    failed: list[Timestamp] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.evaluator)

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Mapping[GlobalId, Sequence[Update]],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        output = await super().tick(dataflow_id, inputs, lower, upper)
        if self.fault is not None and dataflow_id == self.victim:
            self.failed.append(lower)
            raise self.fault
        return output


def description(view: ShardId) -> DataflowDescription:
    table = Import(GlobalId(TABLE), TABLE, DESC, is_table=True)
    relation = Get(table.global_id, DESC.types)
    export = ShardExport(view, DESC)
    return DataflowDescription(
        GlobalId(view), ClusterId("c"), (table,), relation, export, Timestamp(0)
    )


@dataclass
class Site:
    client: PersistClient
    txns: Txns
    worker: Worker
    written: list[int] = field(default_factory=list)

    async def insert(self, number: int) -> None:
        self.written.append(number)
        write = {TABLE: TableWrite(DESC, [((number,), 1)])}
        await self.txns.commit(write, at=await self.txns.upper())

    async def shows(self, view: ShardId) -> bool:
        upper = (await self.client.state(view)).upper
        if upper < await self.txns.upper():
            return False
        found = await self.client.snapshot(view, DESC, Timestamp(upper - 1))
        rows = [u.row for u in found for _ in range(u.diff)]
        assert Counter(rows) == Counter((number,) for number in self.written)
        return True

    async def reason(self, view: ShardId) -> str | None:
        told = await Reports(self.worker).response(1, "mz_hydration_statuses")
        (why,) = [row[5] for row in told.rows if row[0] == view]
        assert why is None or isinstance(why, str)
        return why

    async def run_until(self, check: Callable[[], Awaitable[object]]) -> None:
        while True:
            await self.worker.round()
            if await check():
                return
            await asyncio.sleep(0.01)


async def started(client: PersistClient, engine: Engine) -> Site:
    txns = Txns(client, ShardId("txns"))
    await txns.ensure()
    await client.append_all([], also=[register_table(TABLE)])
    for view in (VIEW, OTHER):
        await client.create_shard(view, writer=GlobalId(view))
    await txns.commit({}, at=Timestamp(1))
    site = Site(client, txns, Worker(client, Storage(client, txns), engine))
    await site.insert(1)
    return site


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_hydration_that_fails(tmp_path: Path, fault: Exception) -> None:
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob(), cache_bytes=0) as client:
        site = await started(client, DriverEngine(Evaluator(tmp_path)))
        hydrator = FailingHydrator(GlobalId(VIEW), fault)
        site.worker.hydrator = hydrator
        await site.worker.set_dataflows({GlobalId(v): description(v) for v in (VIEW, OTHER)})

        async def tried_twice() -> bool:
            return hydrator.tried > 1

        await site.run_until(tried_twice)
        await site.insert(2)
        await site.run_until(lambda: site.shows(OTHER))
        assert not await site.shows(VIEW)
        assert str(fault) in str(await site.reason(VIEW))
        assert await site.reason(OTHER) is None
        hydrator.fault = None
        await site.run_until(lambda: site.shows(VIEW))
        assert await site.reason(VIEW) is None


@pytest.mark.parametrize("fault", [*FAULTS, EngineFailing("OSError: no room")])
async def test_a_tick_that_fails_half_done(tmp_path: Path, fault: Exception) -> None:
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob(), cache_bytes=0) as client:
        engine = FailingEngine(Evaluator(tmp_path), GlobalId(VIEW))
        site = await started(client, engine)
        await site.worker.set_dataflows({GlobalId(v): description(v) for v in (VIEW, OTHER)})
        for view in (VIEW, OTHER):
            await site.run_until(partial(site.shows, view))
        engine.fault = fault
        await site.insert(2)

        async def failed() -> bool:
            return len(engine.failed) > 1

        await site.run_until(failed)
        await site.run_until(lambda: site.shows(OTHER))
        assert not await site.shows(VIEW)
        assert str(fault) in str(await site.reason(VIEW))
        engine.fault = None
        await site.insert(3)
        await site.run_until(lambda: site.shows(VIEW))
        assert await site.reason(VIEW) is None


@pytest.mark.parametrize("dropped", [True, False])
async def test_a_tick_that_is_overtaken_while_its_inputs_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: bool
) -> None:
    """A dropped view has no engine left, nor has one whose engine died: neither is an error."""
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob(), cache_bytes=0) as client:
        first = DriverEngine(Evaluator(tmp_path / "first"))
        site = await started(client, first)
        await site.worker.set_dataflows({GlobalId(VIEW): description(VIEW)})
        await site.run_until(partial(site.shows, VIEW))
        dataflow = site.worker.dataflow(GlobalId(VIEW))
        assert dataflow is not None

        overtakings = 0

        async def overtaken(*read: Any) -> dict[GlobalId, Sequence[Update]]:
            nonlocal overtakings
            overtakings += 1
            monkeypatch.undo()
            found = await input_deltas(*read)
            if dropped:
                await site.worker.set_dataflows({})
            else:
                site.worker.lose_engine(first)
            return found

        monkeypatch.setattr(worker_module, "input_deltas", overtaken)
        await site.insert(2)
        await site.worker.round()
        assert overtakings == 1
        assert dataflow.stopped == ("dropped" if dropped else None)
        if not dropped:
            site.worker.use_engine(DriverEngine(Evaluator(tmp_path / "second")))
            await site.run_until(partial(site.shows, VIEW))
