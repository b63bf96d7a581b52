"""Goal: a round reads only what changed, and another follows at once only where it finds work.

Method: tables, a view of each, a join of both and a view of a view; no polling, so that a round
which nobody asks for never comes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import DataflowDescription, Derived, Import, ShardExport
from evertide.expr.relation import Get, Join, Relation
from evertide.persist.append import Append
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.faults import StoreFull
from evertide.persist.handle import AppendOutcome, PersistClient
from evertide.persist.state import ShardState
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.spark import worker as worker_module
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.source import ColumnReads, Look
from evertide.spark.worker import Worker
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp

DESC = relation_desc(("a", INT8))
JOINED = relation_desc(("a", INT8), ("b", INT8))
TXNS = ShardId("txns")


def table(name: str) -> Import:
    return Import(GlobalId(name), ShardId(name), DESC, is_table=True)


def view_of(name: str, *inputs: Import) -> Import:
    derived = Derived(inputs, Timestamp(1), GlobalId(name))
    desc = DESC if len(inputs) == 1 else JOINED
    return Import(GlobalId(name), ShardId(name), desc, is_table=False, derived=derived)


T, U = table("t"), table("u")
OF_T, OF_U, BOTH = view_of("of t", T), view_of("of u", U), view_of("both", T, U)
OF_VIEW = view_of("of view", OF_T)


@dataclass
class Counting:
    """A storage that keeps count of what is asked of it."""

    storage: Storage
    looks: int = 0
    read: list[str] = field(default_factory=list)

    async def look(self, collections: Sequence[Import]) -> Look:
        self.looks += 1
        return await self.storage.look(collections)

    @property
    def columns(self) -> ColumnReads:
        return self

    async def updates(
        self,
        collection: Import,
        lower: Timestamp,
        upper: Timestamp,
        seen: ShardState | None = None,
    ) -> UpdateBatch:
        self.read.append(collection.global_id)
        return await self.storage.columns.updates(collection, lower, upper, seen)

    async def snapshot(self, collection: Import, as_of: Timestamp) -> UpdateBatch:
        return await self.storage.columns.snapshot(collection, as_of)

    def __getattr__(self, name: str) -> object:
        return getattr(self.storage, name)


@dataclass
class Refusing:
    """Shards that may have no room for appends."""

    client: PersistClient
    full: bool = False
    refused: int = 0

    async def state(self, shard_id: ShardId) -> ShardState:
        return await self.client.state(shard_id)

    async def append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]:
        if self.full:
            self.refused += 1
            raise StoreFull("no room")
        return await self.client.append_each(appends)


@dataclass
class Site:
    client: PersistClient
    txns: Txns
    counting: Counting
    shards: Refusing
    worker: Worker

    async def write(self, collection: Import, value: int) -> None:
        write = {collection.shard_id: TableWrite(DESC, [((value,), 1)])}
        assert isinstance(await self.txns.commit(write, at=await self.txns.upper()), Committed)

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not true():
                await asyncio.sleep(0.001)

    async def shown(self, view: Import, count: int) -> None:
        """Until the view's shard holds so many rows."""
        async with asyncio.timeout(20):
            while True:
                upper = (await self.client.state(view.shard_id)).upper
                if upper > 1:
                    as_of = Timestamp(upper - 1)
                    found = await self.client.snapshot(view.shard_id, view.desc, as_of)
                    if len(found) == count:
                        return
                await asyncio.sleep(0.001)


@asynccontextmanager
async def running(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, *views: Import
) -> AsyncIterator[Site]:
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 3_600.0)
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob()) as client:
        txns = Txns(client, TXNS)
        await txns.ensure()
        await client.append_all([], also=[register_table(t.shard_id) for t in (T, U)])
        for view in views:
            await client.create_shard(view.shard_id, since=Timestamp(1), writer=view.global_id)
        await txns.commit({}, at=Timestamp(1))
        counting, shards = Counting(Storage(client, txns)), Refusing(client)
        evaluator = Evaluator(scratch)
        worker = Worker(shards, counting, DriverEngine(evaluator))  # type: ignore[arg-type]
        site = Site(client, txns, counting, shards, worker)
        await worker.set_dataflows({view.global_id: _description(view) for view in views})
        task = asyncio.create_task(worker.run())
        try:
            for value, collection in enumerate((T, U)):
                await site.write(collection, value)
                worker.wake()
            for view in views:
                await site.shown(view, 0 if view is BOTH else 1)
            yield site
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            evaluator.close()


def _description(view: Import) -> DataflowDescription:
    assert view.derived is not None
    inputs = view.derived.inputs
    gets = tuple(Get(i.global_id, i.desc.types) for i in inputs)
    relation: Relation = gets[0] if len(gets) == 1 else Join(gets, ((0, 1),))
    return DataflowDescription(
        global_id=view.global_id,
        cluster_id=ClusterId("u1"),
        imports=inputs,
        relation=relation,
        export=ShardExport(view.shard_id, view.desc),
        as_of=Timestamp(1),
    )


async def test_inputs_that_did_not_change_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch, BOTH) as site:
        for value, collection in ((5, T), (5, U), (6, U), (6, T)):
            site.counting.read.clear()
            await site.write(collection, value)
            site.worker.wake()
            await site.until(lambda: bool(site.counting.read))
            await site.until(lambda: not site.worker.dataflows()[0].owes)
            assert site.counting.read == [collection.global_id]
        await site.shown(BOTH, 2)


async def test_no_round_follows_an_append_that_nobody_here_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch, OF_T, OF_U) as site:
        await site.write(T, 10)
        await site.worker.round()
        await site.shown(OF_T, 2)
        looks = site.counting.looks
        await site.write(T, 11)
        site.worker.wake()
        await site.shown(OF_T, 3)
        for _ in range(50):
            await asyncio.sleep(0)
        assert site.counting.looks == looks + 1


async def test_a_view_of_a_view_follows_without_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch, OF_VIEW, OF_T) as site:
        for count in (2, 3, 4):
            await site.write(T, 10 * count)
            site.worker.wake()
            await site.shown(OF_VIEW, count)


async def test_what_waited_for_room_goes_on_without_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While output is owed nothing more is computed, so what came meanwhile is still to be done."""
    async with running(tmp_path, monkeypatch, OF_T) as site:
        site.shards.full = True
        await site.write(T, 10)
        site.worker.wake()
        await site.until(lambda: site.shards.refused > 0)
        await site.write(T, 11)
        site.shards.full = False
        while site.worker.dataflows()[0].owes:
            site.worker.wake()
            await asyncio.sleep(0.01)
        await site.shown(OF_T, 3)
