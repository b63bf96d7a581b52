"""What every timestamp oracle promises."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evertide.oracle.batching import BatchingOracle
from evertide.oracle.durable import DurableOracle
from evertide.oracle.memory import MemoryOracle
from evertide.oracle.protocol import BlockOracle, TimestampOracle
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.clock import ManualClock
from evertide.vocab.timestamp import Timeline, Timestamp

DATA, CATALOG = Timeline.EPOCH_MS, Timeline.CATALOG


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start_ms=1_000)


KINDS = [
    "in memory",
    "batching in memory",
    "durable in memory",
    "durable in sqlite",
    "batching in sqlite",
    "durable in postgres",
    "batching in postgres",
]


@pytest.fixture(params=KINDS)
async def oracle(
    request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path
) -> AsyncIterator[TimestampOracle]:
    kind, _, place = request.param.rpartition("in ")
    store: Store = MemoryStore()
    if place == "sqlite":
        store = SqliteStore(tmp_path / "consensus.db")
    if place == "postgres":
        store = PostgresStore(request.getfixturevalue("postgres_url"))
    inner: BlockOracle = MemoryOracle(clock)
    if place != "memory" or kind == "durable ":
        inner = DurableOracle(store.oracle_rows(await store.raise_epoch()), clock)
    yield BatchingOracle(inner) if kind == "batching " else inner
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
    before = await oracle.write_ts(DATA)
    handed_out = await asyncio.gather(*(oracle.write_ts(DATA) for _ in range(50)))
    assert len({before, *handed_out}) == 51
    assert before < min(handed_out)
    assert await oracle.write_ts(DATA) > max(handed_out)


async def test_concurrent_applies_all_count(oracle: TimestampOracle) -> None:
    await asyncio.gather(*(oracle.apply_write(DATA, Timestamp(ts)) for ts in (7, 90, 30)))
    assert await oracle.read_ts(DATA) == 90
