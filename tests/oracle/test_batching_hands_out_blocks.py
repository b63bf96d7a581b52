"""Many callers share one allocation, and each gets a timestamp of its own.

Calls of the store are counted, because time depends on the machine.
"""

import asyncio
from collections import Counter

import pytest

from evertide.oracle.batching import BatchingOracle
from evertide.oracle.durable import DurableOracle
from evertide.oracle.memory import MemoryOracle
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.protocol import OracleRow, OracleRows
from evertide.vocab.clock import ManualClock
from evertide.vocab.timestamp import Timeline, Timestamp

DATA = Timeline.EPOCH_MS


class CountedRows:
    """Rows a round trip away."""

    def __init__(self, inner: OracleRows) -> None:
        self._inner = inner
        self.calls: Counter[str] = Counter()

    async def read(self, timeline: Timeline) -> OracleRow:
        await self._travel("read")
        return await self._inner.read(timeline)

    async def allocate(self, timeline: Timeline, at_least: Timestamp, count: int = 1) -> Timestamp:
        await self._travel("allocate")
        return await self._inner.allocate(timeline, at_least, count)

    async def apply(self, timeline: Timeline, write_ts: Timestamp) -> None:
        await self._travel("apply")
        await self._inner.apply(timeline, write_ts)

    async def _travel(self, what: str) -> None:
        self.calls[what] += 1
        for _ in range(20):
            await asyncio.sleep(0)


class SlowOracle(MemoryOracle):
    """Hands out at once and answers late."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.counts: list[int] = []
        self.answer = asyncio.Event()

    async def write_ts_block(self, timeline: Timeline, count: int) -> Timestamp:
        self.counts.append(count)
        first = await super().write_ts_block(timeline, count)
        await self.answer.wait()
        return first


@pytest.fixture
async def rows() -> CountedRows:
    store = MemoryStore()
    return CountedRows(store.oracle_rows(await store.raise_epoch()))


async def test_64_callers_cost_a_few_round_trips(rows: CountedRows) -> None:
    oracle = BatchingOracle(DurableOracle(rows, ManualClock(start_ms=1_000)))
    handed_out = await asyncio.gather(*(oracle.write_ts(DATA) for _ in range(64)))
    assert sorted(handed_out) == list(range(1_000, 1_064))
    await asyncio.gather(*(oracle.apply_write(DATA, write_ts) for write_ts in handed_out))
    readings = await asyncio.gather(*(oracle.read_ts(DATA) for _ in range(64)))
    assert set(readings) == {1_063}
    assert all(count <= 3 for count in rows.calls.values()), rows.calls


async def test_callers_that_keep_coming_share_what_they_can(rows: CountedRows) -> None:
    """Whoever comes while a call runs waits for the next, together with all others who did."""
    oracle = BatchingOracle(DurableOracle(rows, ManualClock()))

    async def ask(number: int) -> Timestamp:
        for _ in range(number):
            await asyncio.sleep(0)
        return await oracle.write_ts(DATA)

    handed_out = await asyncio.gather(*map(ask, range(64)))
    assert len(set(handed_out)) == 64
    assert rows.calls["allocate"] <= 64 / 20 + 3


async def test_a_later_caller_does_not_join_a_running_call() -> None:
    """What another process got after that call had its answer lies below the later caller's."""
    inner = SlowOracle()
    oracle = BatchingOracle(inner)
    early = asyncio.create_task(oracle.write_ts(DATA))
    await asyncio.sleep(0.01)
    await inner.apply_write(DATA, Timestamp(5_000))
    late = [asyncio.create_task(oracle.write_ts(DATA)) for _ in range(3)]
    await asyncio.sleep(0.01)
    inner.answer.set()
    assert await early < 5_000
    assert sorted(await asyncio.gather(*late)) == [5_001, 5_002, 5_003]
    assert inner.counts == [1, 3]


async def test_a_caller_that_gives_up_takes_nothing_from_others() -> None:
    inner = SlowOracle()
    oracle = BatchingOracle(inner)
    callers = [asyncio.create_task(oracle.write_ts(DATA)) for _ in range(3)]
    await asyncio.sleep(0.01)
    callers[0].cancel()
    inner.answer.set()
    stayed = await asyncio.gather(*callers[1:])
    assert len({*stayed, await oracle.write_ts(DATA)}) == 3


async def test_timestamps_follow_the_clock_at_the_time_of_the_call(rows: CountedRows) -> None:
    clock = ManualClock(start_ms=1_000)
    oracle = BatchingOracle(DurableOracle(rows, clock))
    first = asyncio.create_task(oracle.write_ts(DATA))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.advance(500)
    assert await oracle.write_ts(DATA) >= 1_500
    assert await first == 1_000
