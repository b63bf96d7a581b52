"""What lasts when everyone has let go of a place, and what processes sharing it see."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from evertide.oracle.batching import BatchingOracle
from evertide.oracle.durable import DurableOracle
from evertide.persist.faults import Fenced
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import AllSet, CompareAndSet, Head, Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline
from tests.conformance.stash_rows import ITEM, append, row

A = ShardId("a")
DATA = Timeline.EPOCH_MS
Opener = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres"])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Opens one and the same place as often as asked."""
    opened: list[Store] = []

    def open_again() -> Store:
        if request.param == "sqlite":
            opened.append(SqliteStore(tmp_path / "consensus.db"))
        else:
            opened.append(PostgresStore(request.getfixturevalue("postgres_url")))
        return opened[-1]

    yield open_again
    for store in opened:
        await store.close()


async def test_everything_is_there_again(open_store: Opener) -> None:
    before = open_store()
    epoch = await before.raise_epoch()
    await before.consensus(epoch).compare_and_set_all([CompareAndSet(A, None, b"kept")])
    await before.note("name", "kept")
    await before.stash().ensure([ITEM])
    kept = append(0, [row(0, "k", "kept")])
    assert await before.consensus(epoch).compare_and_set_all([], stash=kept) == AllSet()
    clock = ManualClock(start_ms=5_000)
    oracle = DurableOracle(before.oracle_rows(epoch), clock)
    await oracle.apply_write(DATA, await oracle.write_ts(DATA))
    unused = await oracle.write_ts(DATA)
    await before.close()

    after = open_store()
    assert await after.current_epoch() == epoch
    assert await after.consensus(epoch).head(A) == Head(1, b"kept")
    assert await after.note("name", "x") == "kept"
    assert (await after.stash().read()).rows == [row(0, "k", "kept")]
    clock.advance(-4_000)
    oracle = DurableOracle(after.oracle_rows(epoch), clock)
    assert await oracle.read_ts(DATA) == 5_000
    assert await oracle.write_ts(DATA) == unused + 1


async def test_processes_of_one_generation_work_side_by_side(open_store: Opener) -> None:
    stores = [open_store() for _ in range(3)]
    epoch = await stores[0].raise_epoch()
    shards = [ShardId(f"s{i}") for i in range(12)]
    racing = [
        store.consensus(epoch).compare_and_set_all([CompareAndSet(s, None, bytes([i]))])
        for i, store in enumerate(stores)
        for s in shards
    ]
    outcomes = await asyncio.gather(*racing)
    assert outcomes.count(AllSet()) == len(shards)
    states = [await store.consensus(epoch).heads(dict.fromkeys(shards)) for store in stores]
    assert states[0] == states[1] == states[2]


async def test_a_takeover_fences_every_process_of_the_older(open_store: Opener) -> None:
    old, new = open_store(), open_store()
    epoch = await old.raise_epoch()
    consensus, rows = old.consensus(epoch), old.oracle_rows(epoch)
    assert await new.raise_epoch() == epoch + 1
    with pytest.raises(Fenced) as fenced:
        await consensus.compare_and_set_all([CompareAndSet(A, None, b"")])
    assert (fenced.value.own_epoch, fenced.value.current_epoch) == (epoch, Epoch(epoch + 1))
    with pytest.raises(Fenced):
        await rows.read(DATA)


async def test_the_oracle_is_linearizable_over_processes(open_store: Opener) -> None:
    """Each process asks through a batching oracle of its own; real time order is kept."""
    clock = ManualClock(start_ms=1_000)
    stores = [open_store() for _ in range(2)]
    epoch = await stores[0].raise_epoch()
    oracles = [BatchingOracle(DurableOracle(s.oracle_rows(epoch), clock)) for s in stores]
    handed_out: list[int] = []
    applied = 0

    async def work(number: int) -> None:
        nonlocal applied
        oracle, other = oracles[number % 2], oracles[(number + 1) % 2]
        for _ in range(10):
            last = max(handed_out, default=0)
            write_ts = await oracle.write_ts(DATA)
            assert write_ts > last, "beyond everything handed out before the call"
            handed_out.append(write_ts)
            await oracle.apply_write(DATA, write_ts)
            applied = max(applied, write_ts)
            covered = applied
            assert await other.read_ts(DATA) >= covered, "covers every finished apply_write"

    await asyncio.gather(*map(work, range(6)))
    assert len(set(handed_out)) == 60
