"""The catalog under adapters that race each other, die, freeze, and are fenced.

Goal: no acknowledged DDL is lost or done by halves, a name has one winner, whoever asks finds all
that was acknowledged before, whoever follows is given every transaction once and in order, and
nobody commits who was fenced. What exactly is checked stands in catalog_checks.py and in
tests/support/ddl_accounts.py. Method: sessions of real adapters, from SQL down, on the event loop
and over the stores of the other simulations.
"""

import random
import time
from collections.abc import Sequence
from unittest import mock

from tests.sim.catalog_scenario import draw_catalog_shape, play_catalog
from tests.support.seeds import seeds

CHUNK = 25
# One of each kind of catalog.
SOME_SEEDS = (30, 10, 14)


@seeds(range(100), deep=range(100, 4_100), fresh=500, block=CHUNK)
def test_the_catalog_keeps_its_promises(seeds: Sequence[int]) -> None:
    played = [play_catalog(draw_catalog_shape(seed)) for seed in seeds]
    if len(seeds) == CHUNK:
        # Else their silence would mean nothing.
        assert sum(one.changes for one in played) > 4 * CHUNK
        assert sum(one.refused for one in played) > 4 * CHUNK
        assert sum(one.looked for one in played) > 2 * CHUNK
        assert sum(one.followed for one in played) > CHUNK
        assert sum(one.generations for one in played) > CHUNK


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
