"""What happens to whole processes."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.sim.loop import Process
from tests.sim.scenario import Scenario


async def play(scenario: Scenario) -> None:
    """The whole day: work, with troubles now and then, and the end of it."""
    await scenario.open()
    troubles = scenario.shape.troubles
    wanted: list[tuple[float | None, Callable[[Scenario], Awaitable[None]]]] = [
        (troubles.crash_s, crash),
        (troubles.takeover_s, Scenario.take_over),
        (troubles.freeze_s, freeze),
        (troubles.outage_s, cut_off),
        (troubles.clock_s, turn_clock),
    ]
    tasks = [
        asyncio.create_task(_now_and_then(scenario, mean_s, trouble))
        for mean_s, trouble in wanted
        if mean_s is not None
    ]
    await asyncio.sleep(scenario.shape.duration_s)
    for task in tasks:
        task.cancel()
    await scenario.close()


async def _now_and_then(
    scenario: Scenario, mean_s: float, trouble: Callable[[Scenario], Awaitable[None]]
) -> None:
    while True:
        await asyncio.sleep(scenario.rng.expovariate(1 / mean_s))
        await trouble(scenario)


async def crash(scenario: Scenario) -> None:
    """Between any two steps."""
    _victim(scenario).steps_to_live = scenario.rng.randrange(200)


async def freeze(scenario: Scenario) -> None:
    """A process that does not know that time passes; others may take its place meanwhile."""
    victim = _victim(scenario)
    scenario.loop.note(f"{victim.name} is frozen")
    victim.freeze()
    try:
        await asyncio.sleep(scenario.rng.expovariate(1.0))
    finally:
        victim.thaw(scenario.loop)


async def cut_off(scenario: Scenario) -> None:
    """A process that reaches no store, for a while or for longer than it has patience."""
    victim = _victim(scenario)
    scenario.loop.note(f"{victim.name} is cut off")
    scenario.network.cut_off.add(victim)
    await asyncio.sleep(scenario.rng.choice((0.3, 40.0)))
    scenario.network.cut_off.discard(victim)


async def turn_clock(scenario: Scenario) -> None:
    """A clock that jumps, also back."""
    victim = _victim(scenario)
    victim.skew_ms = scenario.draw_skew()
    scenario.loop.note(f"{victim.name} is {victim.skew_ms} ms off")


def _victim(scenario: Scenario) -> Process:
    return scenario.rng.choice(list(scenario.slots.values())).node.process
