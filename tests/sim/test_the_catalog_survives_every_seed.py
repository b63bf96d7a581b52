"""The catalog under adapters that race each other, die, freeze, and are fenced.

Goal: no acknowledged DDL is lost or done by halves, a name has one winner, whoever asks finds all
that was acknowledged before, whoever follows is given every transaction once and in order, and
nobody commits who was fenced. What exactly is checked stands in catalog_checks.py and in
tests/support/ddl_accounts.py. Method: sessions of real adapters, from SQL down, on the event loop
and over the stores of the other simulations.
"""

import random
import time
from unittest import mock

import pytest

from tests.sim.catalog_scenario import draw_catalog_shape, play_catalog
from tests.sim.run import REPLAYED

SEEDS = 100
CHUNK = 25
MANY_SEEDS = 4_000
LARGE_CHUNK = 200
# One of each kind of catalog.
SOME_SEEDS = (30, 10, 14)


def play_all(first: int, count: int) -> None:
    played = [play_catalog(draw_catalog_shape(seed)) for seed in range(first, first + count)]
    # Else their silence would mean nothing.
    assert sum(one.changes for one in played) > 4 * count
    assert sum(one.refused for one in played) > 4 * count
    assert sum(one.looked for one in played) > 2 * count
    assert sum(one.followed for one in played) > count
    assert sum(one.generations for one in played) > count


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_catalog_keeps_its_promises(first: int) -> None:
    play_all(first, CHUNK)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MANY_SEEDS, LARGE_CHUNK))
def test_the_catalog_keeps_its_promises_for_long(first: int) -> None:
    play_all(first, LARGE_CHUNK)


if REPLAYED is not None:

    def test_replay_of_one_catalog_seed() -> None:
        """A failing seed says how to run this."""
        print(play_catalog(draw_catalog_shape(int(REPLAYED or 0))))


def test_a_catalog_seed_is_played_the_same_way_twice() -> None:
    once, again = ([play_catalog(draw_catalog_shape(s)) for s in SOME_SEEDS] for _ in range(2))
    assert once == again


def test_a_slow_machine_plays_a_catalog_seed_the_same_way() -> None:
    """What is real about time is not seen: not a clock that jumps by minutes either."""
    shape, jumps = draw_catalog_shape(SOME_SEEDS[0]), random.Random("jumps")
    quiet = play_catalog(shape)

    def jump() -> float:
        return jumps.expovariate(1 / 60)

    with mock.patch.object(time, "monotonic", jump):
        assert play_catalog(shape) == quiet
