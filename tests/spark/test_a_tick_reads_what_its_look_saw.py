"""Goal: a view gets every change of its inputs, however late looks at the store come back.

Method: a real worker over a store whose answers overtake each other, as those of several links to
one server do, while others of the process look at the same shards. So what the process knows of a
shard goes back now and then. In the end each view must hold all that was written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from evertide.controller.storage import Storage
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.worker import Worker
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.test_a_worker_waits_for_its_store import DESC, SMALL, WIDE, _description
from tests.support.jitter import JitteryConsensus

TABLES = (SMALL, WIDE)
WRITES = 150


class Links(JitteryConsensus):
    """Several to one store: who asks first may be answered last."""

    async def _wait(self) -> None:
        await turns(self._rng.randrange(12))


class FarEngine(DriverEngine):
    """As far away as a resident task."""

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Mapping[GlobalId, Sequence[Update]],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        await turns(6)
        return await super().tick(dataflow_id, inputs, lower, upper)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def view_of(table: str) -> ShardId:
    return ShardId(f"{table} view")


class Site:
    """Two tables and a view over each; one client writes, the other is the replica's."""

    def __init__(self, seed: int, store: MemoryStore, directory: Path) -> None:
        self.draw = Random(seed)
        self.directory = directory
        self.store = store
        self.written: dict[str, list[str]] = {table: [] for table in TABLES}

    async def start(self) -> None:
        epoch, blob = await self.store.raise_epoch(), MemoryBlob()
        self.writer = PersistClient(self.store.consensus(epoch), blob)
        links = Links(self.store.consensus(epoch), Random(self.draw.random()))
        self.replica = PersistClient(links, blob)
        self.txns = Txns(self.writer, ShardId("txns"))
        await self.txns.ensure()
        for table in TABLES:
            await self.writer.append_all([], also=[register_table(ShardId(table))])
            await self.writer.create_shard(view_of(table), writer=GlobalId(view_of(table)))
        await self.txns.commit({}, at=Timestamp(1))
        storage = Storage(self.replica, Txns(self.replica, ShardId("txns")))
        self.worker = Worker(self.replica, storage, FarEngine(Evaluator(self.directory)))
        wanted = {GlobalId(view_of(table)): _description(table) for table in TABLES}
        await self.worker.set_dataflows(wanted)

    async def write(self, number: int) -> None:
        for table in TABLES:
            change = {ShardId(table): TableWrite(DESC, [((str(number),), 1)])}
            outcome = await self.txns.commit(change, at=await self.txns.upper())
            assert isinstance(outcome, Committed)
            self.written[table].append(str(number))
        await turns(self.draw.choice([1, 5, 40]))

    async def reach(self, upper: Timestamp) -> None:
        """Until every view is there."""
        for table in TABLES:
            while (await self.writer.state(view_of(table))).upper < upper:
                await asyncio.sleep(0.001)

    async def held(self, table: str) -> list[str]:
        as_of = Timestamp((await self.writer.state(view_of(table))).upper - 1)
        found = await self.writer.snapshot(view_of(table), DESC, as_of)
        return sorted(str(update.row[0]) for update in found for _ in range(update.diff))

    async def look_on(self) -> None:
        """Others of the process, such as upkeep and questions of adapters."""
        while True:
            await self.replica.state(ShardId(self.draw.choice(TABLES)))

    async def round_on(self) -> None:
        while True:
            await self.worker.round()
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(6))
async def test_no_change_is_passed_over(seed: int, tmp_path: Path) -> None:
    site = Site(seed, MemoryStore(), tmp_path)
    await site.start()
    others = [asyncio.create_task(site.look_on()) for _ in range(3)]
    others.append(asyncio.create_task(site.round_on()))
    async with asyncio.timeout(60):
        await site.write(0)
        await site.reach(Timestamp(2))
        for number in range(1, WRITES):
            await site.write(number)
        await site.reach(await site.txns.upper())
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for table in TABLES:
        assert await site.held(table) == sorted(site.written[table])
