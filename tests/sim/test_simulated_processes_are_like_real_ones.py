"""The event loop of the simulation: what must hold so that its findings mean anything."""

import asyncio
import random

import pytest

from tests.sim.loop import MAX_STEPS, Process, SimLoop, Stuck


def make_loop(seed: int = 1, *, in_order: bool = False) -> SimLoop:
    return SimLoop(random.Random(seed), in_order=in_order)


def test_time_passes_without_waiting() -> None:
    loop = make_loop()

    async def sleep_long() -> float:
        await asyncio.sleep(1_000_000)
        return asyncio.get_running_loop().time()

    assert loop.run_until_complete(sleep_long()) == pytest.approx(1_000_000)
    loop.bury()


def order_of_ten(loop: SimLoop) -> list[int]:
    order: list[int] = []

    async def main() -> None:
        async def one(number: int) -> None:
            order.append(number)

        await asyncio.gather(*(one(number) for number in range(10)))

    loop.run_until_complete(main())
    loop.bury()
    return order


def test_what_is_ready_runs_in_an_order_that_the_seed_draws() -> None:
    assert order_of_ten(make_loop(1)) == order_of_ten(make_loop(1))
    assert len({tuple(order_of_ten(make_loop(seed))) for seed in range(5)}) > 1
    assert order_of_ten(make_loop(1, in_order=True)) == list(range(10))


def test_a_killed_process_runs_nothing_more() -> None:
    """Not even what stands in `finally`; what it has sent arrives nevertheless."""
    loop, happened = make_loop(), list[str]()
    process = Process("p")

    async def victim() -> None:
        try:
            for _ in range(10):
                happened.append("step")
                await asyncio.sleep(1)
        finally:
            happened.append("finally")

    async def main() -> None:
        loop.spawn(process, victim(), "victim")
        await asyncio.sleep(2.5)
        process.kill()
        await asyncio.sleep(100)

    loop.run_until_complete(main())
    assert happened == ["step"] * 3
    loop.bury()


@pytest.mark.parametrize("steps", range(6))
def test_a_process_may_die_between_any_two_steps(steps: int) -> None:
    loop, happened = make_loop(), list[int]()
    process, ended = Process("p"), list[str]()
    process.steps_to_live = steps
    process.on_end = lambda: ended.append("gone")

    async def victim() -> None:
        for number in range(4):
            happened.append(number)
            await asyncio.sleep(0)

    async def main() -> None:
        loop.spawn(process, victim(), "victim")
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert happened == list(range(min(steps, 4)))
    assert ended == (["gone"] if steps < 5 else [])
    loop.bury()


def test_a_frozen_process_does_not_know_that_time_passes() -> None:
    loop, seen_s = make_loop(), list[float]()
    process = Process("p")

    async def victim() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            seen_s.append(loop.time())

    async def main() -> None:
        loop.spawn(process, victim(), "victim")
        await asyncio.sleep(1.5)
        process.freeze()
        await asyncio.sleep(10)
        process.thaw(loop)
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert seen_s == pytest.approx([1.0, 11.5, 12.5], abs=0.01)
    loop.bury()


def test_threads_are_steps_of_the_loop() -> None:
    loop = make_loop()

    async def main() -> int:
        return await asyncio.to_thread(lambda: 7)

    assert loop.run_until_complete(main()) == 7
    loop.bury()


def test_waiting_for_ever_is_noticed_and_named() -> None:
    loop = make_loop()

    async def main() -> None:
        waiting = asyncio.create_task(asyncio.Event().wait(), name="hopeless")
        await waiting

    with pytest.raises(Stuck, match="hopeless"):
        loop.run_until_complete(main())
    loop.bury()


def test_going_round_in_circles_is_noticed() -> None:
    loop = make_loop()
    loop.moment = MAX_STEPS - 1_000

    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="no end"):
        loop.run_until_complete(main())
    loop.bury()


def test_a_failing_callback_ends_the_simulation() -> None:
    loop = make_loop()

    async def main() -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(main())
    loop.bury()
