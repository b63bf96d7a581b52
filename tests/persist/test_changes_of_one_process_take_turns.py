"""Goal: whoever changes a shard gets through beside others of its process that never pause."""

import asyncio
from functools import partial

import pytest

from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import ShardChange, existing, set_hold
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.turns import Turns
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD

A, B, C = ShardId("a"), ShardId("b"), ShardId("c")


async def test_a_change_gets_through_beside_a_writer_that_does_not_pause() -> None:
    """Without turns both would read, decide and set in step, and the writer would always win."""
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob())
    await client.create_shard(SHARD)
    upper = MIN_TS

    async def write() -> None:
        nonlocal upper
        while True:
            update = Update(("w", upper), upper, 1)
            done = await client.compare_and_append(
                SHARD, DESC, [update], upper, Timestamp(upper + 1)
            )
            assert isinstance(done, Appended)
            upper = done.upper

    writer = asyncio.create_task(write())
    for number in range(20):
        for _ in range(number):
            await asyncio.sleep(0)
        started = upper
        hold = existing(partial(set_hold, owner=f"h{number}", hold_ts=MIN_TS))
        await client.machine.apply_all([ShardChange(SHARD, hold)])
        assert upper <= started + 3
    writer.cancel()
    await client.maintenance.close()


async def test_turns_come_in_order_and_never_in_a_circle() -> None:
    turns, order = Turns(), list[str]()

    async def work(name: str, *shard_ids: ShardId) -> None:
        with turns.take(shard_ids) as turn:
            await turn.wait()
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    async with asyncio.timeout(60):
        await asyncio.gather(work("1", A, B), work("2", B, A), work("3", A, B))
        assert order == [f"{n} {what}" for n in "123" for what in ("begins", "ends")]
        order.clear()
        await asyncio.gather(work("4", A, B), work("5", B, C), work("6", C, A), work("7", C))
    assert len(order) == 8


async def test_a_turn_ends_with_whoever_had_it() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="trouble"), turns.take([A, B]):
        raise ValueError("trouble")
    holding = asyncio.create_task(_hold(turns))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(_hold(turns))
    await asyncio.sleep(0)
    waiting.cancel()
    holding.cancel()
    await asyncio.gather(waiting, holding, return_exceptions=True)
    with turns.take([A]) as turn:
        assert turn.come


async def test_a_turn_that_comes_too_late_is_passed_on() -> None:
    """Whoever gives up in the very moment in which its turn comes must not keep it."""
    turns, order = Turns(), list[str]()

    async def work(name: str) -> None:
        with turns.take([A]) as turn:
            await turn.wait()
            order.append(name)

    with turns.take([A]):
        late, leaving, next_one = (asyncio.create_task(work(name)) for name in "123")
        await asyncio.sleep(0)
        leaving.cancel()
    late.cancel()
    await asyncio.gather(late, leaving, return_exceptions=True)
    async with asyncio.timeout(60):
        await next_one
        await work("4")
    assert order == ["3", "4"]


async def _hold(turns: Turns) -> None:
    with turns.take([A]) as turn:
        await turn.wait()
        await asyncio.Event().wait()
