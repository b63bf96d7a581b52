"""Whoever shares a call shares its failure, and nobody else does."""

import asyncio

import pytest

from evertide.oracle.batching import BatchingOracle
from evertide.oracle.memory import MemoryOracle
from evertide.persist.faults import StoreUnreachable
from evertide.vocab.clock import ManualClock
from evertide.vocab.timestamp import Timeline, Timestamp

DATA = Timeline.EPOCH_MS


class FailingOnce(MemoryOracle):
    """Its first reading does not reach the store."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.reads = 0

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        self.reads += 1
        await asyncio.sleep(0)
        if self.reads == 1:
            raise StoreUnreachable("gone")
        return await super().read_ts(timeline)


async def test_all_who_shared_the_call_are_told() -> None:
    oracle = BatchingOracle(FailingOnce())
    async with asyncio.timeout(60):
        told = await asyncio.gather(
            *(oracle.read_ts(DATA) for _ in range(3)), return_exceptions=True
        )
        assert [type(answer) for answer in told] == [StoreUnreachable] * 3
        assert await oracle.read_ts(DATA) == 0


async def test_who_came_later_gets_an_answer() -> None:
    inner = FailingOnce()
    oracle = BatchingOracle(inner)
    first = asyncio.create_task(oracle.read_ts(DATA))
    while inner.reads == 0:
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await oracle.read_ts(DATA) == 0
    with pytest.raises(StoreUnreachable):
        await first
