"""A reading is shared by those who asked before it started, and by nobody else."""

import asyncio

from evertide.oracle.batching import BatchingOracle
from evertide.oracle.memory import MemoryOracle
from evertide.vocab.clock import ManualClock
from evertide.vocab.timestamp import Timeline, Timestamp

DATA = Timeline.EPOCH_MS


class SlowOracle(MemoryOracle):
    """Looks at once and answers late, as a store a network away may do."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.reads = 0
        self.answer = asyncio.Event()

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        self.reads += 1
        seen = await super().read_ts(timeline)
        await self.answer.wait()
        return seen


async def test_a_later_caller_does_not_join_a_running_read() -> None:
    inner = SlowOracle()
    oracle = BatchingOracle(inner)
    early = asyncio.create_task(oracle.read_ts(DATA))
    await asyncio.sleep(0.01)
    await inner.apply_write(DATA, Timestamp(7))
    late = asyncio.create_task(oracle.read_ts(DATA))
    await asyncio.sleep(0.01)
    inner.answer.set()
    assert await early == 0
    assert await late == 7


async def test_callers_that_wait_together_share_one_read() -> None:
    inner = SlowOracle()
    oracle = BatchingOracle(inner)
    first = asyncio.create_task(oracle.read_ts(DATA))
    await asyncio.sleep(0.01)
    others = [asyncio.create_task(oracle.read_ts(DATA)) for _ in range(20)]
    await asyncio.sleep(0.01)
    inner.answer.set()
    await asyncio.gather(first, *others)
    assert inner.reads == 2


async def test_a_cancelled_caller_does_not_take_the_answer_from_others() -> None:
    inner = SlowOracle()
    oracle = BatchingOracle(inner)
    leaving, staying = (asyncio.create_task(oracle.read_ts(DATA)) for _ in range(2))
    await asyncio.sleep(0.01)
    leaving.cancel()
    inner.answer.set()
    assert await staying == 0
