"""Goal: what a source holds follows from its definition alone, whatever the clock does.

Method: random clocks, that stand still, jump and go back, drive a schedule; the ticks that it
brings must be those of the plain rule, each once, at its time, and never before that has come.
"""

import random

import pytest

from evertide.catalog.objects import CounterLoad
from evertide.external.schedule import LEAD_MS, MOST_TICKS, Schedule
from evertide.vocab.timestamp import Timestamp

AS_OF = Timestamp(1_000_000)


def by_rule(load: CounterLoad, upper: Timestamp) -> dict[int, int]:
    """Every tick below the upper and when it is."""
    found, tick = {}, 0
    while load.up_to_tick is None or tick < load.up_to_tick:
        at = AS_OF + max(tick - load.from_tick, 0) * load.tick_ms
        if at >= upper:
            break
        found[tick] = at
        tick += 1
    return found


def random_load(rng: random.Random) -> CounterLoad:
    from_tick = rng.choice([0, 0, 1, 7])
    up_to = rng.choice([None, None, from_tick, from_tick + 3, from_tick + 40])
    return CounterLoad(
        tick_ms=rng.choice([1, 3, 50, 999, 1_000, 1_001, 20_000]),
        from_tick=from_tick,
        up_to_tick=up_to,
    )


@pytest.mark.parametrize("seed", range(300))
def test_every_tick_is_brought_once_and_at_its_time(seed: int) -> None:
    rng = random.Random(seed)
    load = random_load(rng)
    schedule = Schedule(load, AS_OF)
    upper, now, brought = AS_OF, int(AS_OF), dict[int, int]()
    for _ in range(60):
        now = max(now + rng.choice([-500, 0, 1, 30, 300, 1_000, 5_000]), int(AS_OF))
        due = schedule.due(upper, Timestamp(now))
        if due is None:
            continue
        assert due.upper > upper
        assert due.upper <= now + LEAD_MS
        assert due.last - due.first <= MOST_TICKS + load.from_tick
        for tick in range(due.first, due.last):
            assert tick not in brought
            brought[tick] = schedule.at(tick)
            assert upper <= brought[tick] <= now
        upper = due.upper
        assert brought == by_rule(load, upper)


@pytest.mark.parametrize("seed", range(100))
def test_who_waits_as_long_as_he_is_told_misses_nothing(seed: int) -> None:
    rng = random.Random(seed)
    load = random_load(rng)
    schedule = Schedule(load, AS_OF)
    upper, now = AS_OF, int(AS_OF)
    for _ in range(200):
        due = schedule.due(upper, Timestamp(now))
        if due is not None:
            upper = due.upper
            continue
        assert upper > now, "at every time it is known what there is now"
        pause = schedule.pause_ms(upper, Timestamp(now))
        assert schedule.due(upper, Timestamp(now + pause)) is not None or pause == 0
        if pause > 0:
            assert schedule.due(upper, Timestamp(now + pause - 1)) is None
        now += max(pause, 1)


def test_a_long_time_is_made_up_in_portions() -> None:
    schedule = Schedule(CounterLoad(tick_ms=1), AS_OF)
    now = Timestamp(AS_OF + 3 * MOST_TICKS)
    upper, portions = AS_OF, 0
    while (due := schedule.due(upper, now)) is not None and due.more:
        upper, portions = due.upper, portions + 1
    assert portions == 3
    assert due is not None
    assert due.upper == now + 1
