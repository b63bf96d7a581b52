"""What every timestamp oracle promises."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evertide.oracle.batching import BatchingOracle
from evertide.oracle.durable import DurableOracle
from evertide.oracle.memory import MemoryOracle
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.protocol import Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.clock import ManualClock
from evertide.vocab.timestamp import Timeline, Timestamp

DATA, CATALOG = Timeline.EPOCH_MS, Timeline.CATALOG


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start_ms=1_000)


@pytest.fixture(params=["memory", "durable-memory", "durable-sqlite", "batching-sqlite"])
async def oracle(
    request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path
) -> AsyncIterator[TimestampOracle]:
    if request.param == "memory":
        yield MemoryOracle(clock)
        return
    in_memory = request.param == "durable-memory"
    store: Store = MemoryStore() if in_memory else SqliteStore(tmp_path / "consensus.db")
    durable = DurableOracle(store.oracle_rows(await store.raise_epoch()), clock)
    yield BatchingOracle(durable) if request.param == "batching-sqlite" else durable
    await store.close()


async def test_a_read_sees_every_applied_write(oracle: TimestampOracle) -> None:
    write_ts = await oracle.write_ts(DATA)
    assert await oracle.read_ts(DATA) < write_ts
    await oracle.apply_write(DATA, write_ts)
    assert await oracle.read_ts(DATA) == write_ts


async def test_a_read_never_follows_the_clock(oracle: TimestampOracle, clock: ManualClock) -> None:
    await oracle.apply_write(DATA, await oracle.write_ts(DATA))
    before = await oracle.read_ts(DATA)
    clock.advance(60_000)
    assert await oracle.read_ts(DATA) == before


async def test_writes_follow_the_clock_and_never_repeat(
    oracle: TimestampOracle, clock: ManualClock
) -> None:
    assert [await oracle.write_ts(DATA) for _ in range(3)] == [1_000, 1_001, 1_002]
    clock.advance(500)
    assert await oracle.write_ts(DATA) == 1_500


async def test_a_clock_that_goes_back_is_not_followed(
    oracle: TimestampOracle, clock: ManualClock
) -> None:
    first = await oracle.write_ts(DATA)
    clock.advance(-900)
    assert await oracle.write_ts(DATA) == first + 1


async def test_the_catalog_timeline_is_a_counter(oracle: TimestampOracle) -> None:
    assert [await oracle.write_ts(CATALOG) for _ in range(3)] == [1, 2, 3]


async def test_timelines_are_apart(oracle: TimestampOracle) -> None:
    await oracle.apply_write(CATALOG, Timestamp(5))
    assert await oracle.read_ts(DATA) == 0
    assert await oracle.write_ts(DATA) == 1_000


async def test_an_applied_write_from_elsewhere_is_never_handed_out_again(
    oracle: TimestampOracle,
) -> None:
    await oracle.apply_write(DATA, Timestamp(5_000))
    assert await oracle.write_ts(DATA) == 5_001


async def test_applying_an_older_write_changes_nothing(oracle: TimestampOracle) -> None:
    await oracle.apply_write(DATA, Timestamp(20))
    await oracle.apply_write(DATA, Timestamp(10))
    assert await oracle.read_ts(DATA) == 20


async def test_concurrent_callers_get_distinct_write_timestamps(oracle: TimestampOracle) -> None:
    handed_out = await asyncio.gather(*(oracle.write_ts(DATA) for _ in range(50)))
    assert len(set(handed_out)) == 50


async def test_concurrent_applies_all_count(oracle: TimestampOracle) -> None:
    await asyncio.gather(*(oracle.apply_write(DATA, Timestamp(ts)) for ts in (7, 90, 30)))
    assert await oracle.read_ts(DATA) == 90
