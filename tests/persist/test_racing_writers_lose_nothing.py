"""Goal: no acknowledged append is lost and none is doubled, whoever races and whoever gives up.

Method: seeded simulations. Writers with their own clients race over a store that answers late, some
of them are cancelled in the middle, and batches are merged meanwhile.
"""

import asyncio
import random
from collections.abc import Sequence

import pytest

from evertide.persist.handle import Append, Appended, PersistClient
from evertide.persist.state import Batch, UpperMismatch
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Txns, register_table
from evertide.persist.upkeep.compaction import compact_shard
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import (
    DESC,
    SHARD,
    append_one,
    check_rows,
    commit_one,
)
from tests.support.jitter import JitteryConsensus
from tests.support.owned import OURS

TABLES = [ShardId("t1"), ShardId("t2")]


class Simulation:
    """Clients over one store; what was tried and what was acknowledged."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.store, self.blob = MemoryStore(), MemoryBlob()
        self.tried: set[tuple[str, int]] = set()
        self.acknowledged: set[tuple[str, int]] = set()

    async def open(self) -> None:
        self.epoch = await self.store.raise_epoch()

    def client(self) -> PersistClient:
        jittery = JitteryConsensus(self.store.consensus(self.epoch), self.rng)
        return PersistClient(jittery, self.blob, owner=OURS)

    async def write(self, writer: str, count: int, tables: bool) -> None:
        client = self.client()
        txns = Txns(client, ShardId("txns"))
        for number in range(count):
            self.tried.add((writer, number))
            one = (
                commit_one(txns, TABLES, writer, number)
                if tables
                else append_one(client, writer, number)
            )
            task = asyncio.create_task(one)
            if self.rng.random() < 0.2:
                for _ in range(self.rng.randrange(12)):
                    await asyncio.sleep(0)
                task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                continue
            self.acknowledged.add((writer, number))

    async def compact(self, shard_ids: Sequence[ShardId], times: int) -> None:
        client = self.client()
        for _ in range(times):
            await asyncio.sleep(0)
            start, length = self.rng.randrange(8), self.rng.randrange(1, 6)

            def choose(
                batches: Sequence[Batch], start: int = start, length: int = length
            ) -> tuple[Batch, ...]:
                return tuple(batches[start : start + length])

            shard_id = self.rng.choice(shard_ids)
            await compact_shard(client.machine, client.blob, shard_id, DESC, 0, choose=choose)


@pytest.mark.parametrize("seed", range(40))
async def test_appends_to_one_shard(seed: int) -> None:
    sim = Simulation(seed)
    await sim.open()
    await sim.client().create_shard(SHARD, since_lag=2)
    writers = (sim.write(name, 8, tables=False) for name in "abc")
    await asyncio.gather(*writers, sim.compact([SHARD], 20))
    reader = sim.client()
    as_of = Timestamp((await reader.state(SHARD)).upper - 1)
    check_rows(await reader.snapshot(SHARD, DESC, as_of), sim.acknowledged, sim.tried)


@pytest.mark.parametrize("seed", range(40))
async def test_commits_to_two_tables(seed: int) -> None:
    """Beside exactly once: both tables hold the same rows at every timestamp."""
    sim = Simulation(seed)
    await sim.open()
    client = sim.client()
    txns = Txns(client, ShardId("txns"))
    await txns.ensure()
    await client.append_all([], also=[register_table(table) for table in TABLES])
    writers = (sim.write(name, 6, tables=True) for name in "abc")
    await asyncio.gather(*writers, sim.compact(TABLES, 15))
    upper = await txns.upper()
    for as_of in map(Timestamp, range(upper)):
        left, right = [await txns.table_snapshot(table, DESC, as_of) for table in TABLES]
        assert sorted(left) == sorted(right)
    check_rows(left, sim.acknowledged, sim.tried)


@pytest.mark.parametrize("seed", range(20))
async def test_two_replicas_appending_the_same_outputs_write_them_once(seed: int) -> None:
    """Each replica appends several outputs per round, each for itself, and drops what it lost."""
    sim = Simulation(seed)
    await sim.open()
    outputs = [ShardId(f"out{i}") for i in range(3)]
    for shard_id in outputs:
        await sim.client().create_shard(shard_id)

    async def replica() -> None:
        client, uppers = sim.client(), dict.fromkeys(outputs, Timestamp(0))
        while any(upper < 10 for upper in uppers.values()):
            due = sim.rng.sample(outputs, sim.rng.randint(1, 3))
            appends = [
                Append(s, DESC, [Update(("x", u), u, 1)], u, Timestamp(u + 1))
                for s in due
                if (u := uppers[s]) < 10
            ]
            for one, outcome in zip(appends, await client.append_each(appends), strict=True):
                match outcome:
                    case Appended(upper) | UpperMismatch(upper):
                        uppers[one.shard_id] = upper
                    case other:
                        raise AssertionError(other)

    await asyncio.gather(replica(), replica())
    for shard_id in outputs:
        found = await sim.client().snapshot(shard_id, DESC, Timestamp(9))
        assert sorted(u.row for u in found) == [("x", i) for i in range(10)]
        assert all(u.diff == 1 for u in found)


async def test_a_lost_group_does_not_poison_what_is_known_of_its_other_shards() -> None:
    """A group that failed because of one shard changed none; the client must not believe so."""
    sim = Simulation(0)
    await sim.open()
    ours, theirs = sim.client(), sim.client()
    a, b = ShardId("a"), ShardId("b")
    for shard_id in (a, b):
        await ours.create_shard(shard_id)
    one, two = Timestamp(1), Timestamp(2)
    rows = [Update(("x", 1), Timestamp(0), 1)]
    await theirs.compare_and_append(b, DESC, [], Timestamp(0), two)
    lost = await ours.append_all([Append(s, DESC, rows, Timestamp(0), one) for s in (a, b)])
    assert not isinstance(lost, Appended)
    await theirs.compare_and_append(a, DESC, [], Timestamp(0), one)
    assert await ours.snapshot(a, DESC, Timestamp(0)) == []
