"""Goal: a full or failing store makes views late, never wrong, and only those that it concerns.

Method: a worker over stores that refuse changes while told to, one round at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import DataflowDescription, Import, ShardExport
from evertide.expr.relation import Get
from evertide.persist.faults import StoreFailing, StoreFull
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.worker import Worker
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timestamp
from tests.support.owned import OURS
from tests.support.refusing import RefusingBlob, RefusingConsensus

DESC = relation_desc(("a", TEXT))
SMALL, WIDE = "small", "wide"
LARGE = "x" * 200_000
FULL, FAILING = StoreFull("no room"), StoreFailing("EIO")


def _description(name: str) -> DataflowDescription:
    """A view that is a copy of its table."""
    table = Import(GlobalId(name), ShardId(name), DESC, is_table=True)
    relation = Get(table.global_id, DESC.types)
    export = ShardExport(ShardId(f"{name} view"), DESC)
    return DataflowDescription(
        GlobalId(f"{name} view"), ClusterId("c"), (table,), relation, export, Timestamp(0)
    )


@dataclass
class Site:
    """Two tables, a view over each, and the worker that keeps them."""

    consensus: RefusingConsensus
    memory: MemoryBlob
    blob: RefusingBlob
    client: PersistClient
    txns: Txns
    worker: Worker
    written: dict[str, list[str]]

    async def insert(self, table: str, text: str) -> None:
        self.written[table].append(text)
        write = {ShardId(table): TableWrite(DESC, [((text,), 1)])}
        outcome = await self.txns.commit(write, at=await self.txns.upper())
        assert isinstance(outcome, Committed)

    async def shows(self, table: str) -> bool:
        """Whether the view holds what its table does, of now."""
        upper = (await self.client.state(ShardId(f"{table} view"))).upper
        if upper < await self.txns.upper():
            return False
        shard_id = ShardId(f"{table} view")
        rows = await self.client.snapshot(shard_id, DESC, Timestamp(upper - 1))
        found = [str(update.row[0]) for update in rows for _ in range(update.diff)]
        assert sorted(found) == sorted(self.written[table]), "late, never wrong"
        return True

    def was_asked(self, changes: int) -> bool:
        """Whether the consensus was asked for more changes than these."""
        return self.consensus.changes > changes

    async def run_until(self, check: Callable[[], object]) -> None:
        """Rounds until the check, a coroutine or a value, is true."""
        while True:
            await self.worker.round()
            answer = check()
            if (await answer) if asyncio.iscoroutine(answer) else answer:
                return
            await asyncio.sleep(0.01)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    store, memory = MemoryStore(), MemoryBlob()
    consensus = RefusingConsensus(store.consensus(await store.raise_epoch()))
    blob = RefusingBlob(memory)
    async with PersistClient(consensus, blob, cache_bytes=0, owner=OURS) as client:
        txns = Txns(client, ShardId("txns"))
        await txns.ensure()
        descriptions = {GlobalId(f"{name} view"): _description(name) for name in (SMALL, WIDE)}
        for name in (SMALL, WIDE):
            await client.append_all([], also=[register_table(ShardId(name))])
            writer = GlobalId(f"{name} view")
            await client.create_shard(ShardId(f"{name} view"), writer=writer)
        await txns.commit({}, at=Timestamp(1))
        engine = DriverEngine(Evaluator(tmp_path))
        worker = Worker(client, Storage(client, txns), engine)
        await worker.set_dataflows(descriptions)
        site = Site(consensus, memory, blob, client, txns, worker, {SMALL: [], WIDE: []})
        await site.insert(SMALL, "first")
        await site.insert(WIDE, "first")
        await site.run_until(lambda: site.shows(WIDE))
        await site.run_until(lambda: site.shows(SMALL))
        yield site


async def test_output_that_does_not_fit_waits_and_keeps_no_other_back(site: Site) -> None:
    await site.insert(WIDE, LARGE)
    site.blob.fault = FULL
    for number in range(3):
        await site.insert(SMALL, str(number))
        await site.run_until(lambda: site.shows(SMALL))
    assert not await site.shows(WIDE)
    site.blob.fault = None
    await site.run_until(lambda: site.shows(WIDE))


async def test_a_view_that_owes_output_computes_no_more(site: Site) -> None:
    wide = site.worker.dataflow(GlobalId("wide view"))
    assert wide is not None
    await site.insert(WIDE, LARGE)
    site.blob.fault = FULL
    await site.run_until(lambda: wide.owes)
    frontier = wide.frontier
    await site.insert(WIDE, "more")
    tried = site.blob.puts
    await site.run_until(lambda: site.blob.puts > tried + 1)
    assert wide.frontier == frontier, "a full disk must not fill the memory"
    site.blob.fault = None
    await site.run_until(lambda: site.shows(WIDE))


@pytest.mark.parametrize("fault", [FULL, FAILING])
async def test_without_consensus_views_wait_and_then_catch_up(
    site: Site, fault: StoreFull | StoreFailing
) -> None:
    for number in range(3):
        await site.insert(SMALL, str(number))
        await site.insert(WIDE, str(number))
        site.consensus.fault = fault
        await site.run_until(partial(site.was_asked, site.consensus.changes))
        assert not await site.shows(SMALL)
        site.consensus.fault = None
        await site.run_until(lambda: site.shows(SMALL))
        await site.run_until(lambda: site.shows(WIDE))


async def test_a_view_whose_input_is_lost_waits_until_it_is_found(site: Site) -> None:
    await site.insert(WIDE, LARGE)
    (key,) = await site.memory.keys("wide/")
    value = await site.memory.get(key)
    await site.memory.delete(key)
    for number in range(3):
        await site.insert(SMALL, str(number))
        await site.run_until(lambda: site.shows(SMALL))
    assert not await site.shows(WIDE)
    await site.memory.put(key, value)
    await site.run_until(lambda: site.shows(WIDE))
