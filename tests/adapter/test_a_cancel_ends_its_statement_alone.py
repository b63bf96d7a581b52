"""Goal: a cancel or a timeout ends the statement that runs, and nothing that its task does later.

Method: statements are coroutines that wait, or do not, in a task that goes on after them.
"""

import asyncio
import time

import pytest

from evertide.adapter import running as running_module
from evertide.adapter.limit import Limit
from evertide.adapter.running import Running
from evertide.adapter.see_through import see_through
from evertide.vocab.errors import QueryCanceled


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def goes_on() -> bool:
    """Whether nothing is left of a cancel."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() == 0


async def test_what_runs_is_cancelled_and_its_task_goes_on() -> None:
    running = Running()
    for _ in range(2):
        asyncio.get_running_loop().call_later(0.001, running.cancel)
        with pytest.raises(QueryCanceled, match="user request"):
            await running.run(forever)
        assert goes_on()
        await asyncio.sleep(0.002)


async def test_a_commit_that_was_seen_through_leaves_no_cancel_behind() -> None:
    running, let = Running(), asyncio.Event()

    async def commit() -> int:
        await let.wait()
        return 7

    asyncio.get_running_loop().call_later(0.001, running.cancel)
    asyncio.get_running_loop().call_later(0.003, let.set)
    assert await running.run(lambda: see_through(commit())) == 7
    assert goes_on()
    await asyncio.sleep(0)


async def test_a_statement_that_is_cancelled_twice_is_left() -> None:
    running = Running()

    async def cancel_twice() -> None:
        for _ in range(2):
            for _ in range(5):  # each meets it where it waits: two at once are one
                await asyncio.sleep(0)
            running.cancel()

    cancelling = asyncio.create_task(cancel_twice())
    with pytest.raises(QueryCanceled):
        await running.run(lambda: see_through(forever()))
    assert goes_on()
    await cancelling


async def test_nothing_runs_nothing_is_cancelled() -> None:
    running = Running()
    running.cancel()
    await running.run(lambda: asyncio.sleep(0))
    running.cancel()
    await asyncio.sleep(0)
    assert goes_on()


async def test_a_task_that_is_itself_ended_is_not_told_of_a_statement() -> None:
    running = Running()
    task = asyncio.create_task(running.run(forever))
    await asyncio.sleep(0.001)
    running.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_statement_within_another_ends_with_it() -> None:
    running = Running()

    async def outer() -> None:
        await running.run(lambda: asyncio.sleep(0))
        asyncio.get_running_loop().call_soon(running.cancel)
        await running.run(forever)

    with pytest.raises(QueryCanceled):
        await running.run(outer)
    assert goes_on()


async def test_statements_that_wait_for_nothing_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_module, "_TURN_S", 1_000.0)
    running = Running()
    heard = asyncio.Event()

    async def nothing() -> None:
        return

    running.begin_turn()
    asyncio.get_running_loop().call_soon(heard.set)
    await running.run(nothing)
    assert not heard.is_set()  # a short text is not held up by others
    monkeypatch.undo()
    running.begin_turn()
    ends = time.monotonic() + 5
    while not heard.is_set():
        assert time.monotonic() < ends
        await running.run(nothing)


async def test_a_cancel_meets_statements_that_wait_for_nothing() -> None:
    running = Running()

    async def nothing() -> None:
        return

    async def many() -> None:
        ends = time.monotonic() + 5
        while time.monotonic() < ends:
            await running.run(nothing)

    asyncio.get_running_loop().call_soon(running.cancel)
    with pytest.raises(QueryCanceled):
        await many()


async def test_a_limit_that_passed_is_taken_back() -> None:
    limit = Limit(1)
    with pytest.raises(asyncio.CancelledError):
        await forever()
    assert limit.passed
    limit.lift()
    limit.lift()
    assert goes_on()
    await asyncio.sleep(0.002)


async def test_a_limit_that_was_lifted_does_not_pass() -> None:
    limit = Limit(1)
    limit.lift()
    await asyncio.sleep(0.005)
    assert not limit.passed
