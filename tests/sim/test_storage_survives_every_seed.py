"""Storage under simulated processes, networks and clocks that fail in every way a seed draws.

Goal: nothing acknowledged is lost, nothing is done twice, every read is exact, time never goes
back. What exactly is checked stands in history.py, truth.py and checks.py. Method: real code on an
event loop with virtual time (loop.py) over stores whose network fails (network.py, store.py).
"""

import os
import subprocess
import sys

import pytest

from tests.sim.run import REPLAYED, play
from tests.sim.shape import draw_shape

SEEDS = 500
CHUNK = 25
MANY_SEEDS = 10_000
LARGE_CHUNK = 250
SOME_SEEDS = (3, 17, 101, 202)

PRINT_DIGESTS = f"""
from tests.sim.run import REPLAYED, play
from tests.sim.shape import draw_shape
print(*[play(draw_shape(seed)).digest for seed in {SOME_SEEDS}])
"""


def play_all(first: int, count: int) -> None:
    for seed in range(first, first + count):
        play(draw_shape(seed))


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_storage_keeps_its_promises(first: int) -> None:
    play_all(first, CHUNK)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MANY_SEEDS, LARGE_CHUNK))
def test_storage_keeps_its_promises_for_long(first: int) -> None:
    play_all(first, LARGE_CHUNK)


if REPLAYED is not None:

    def test_replay_of_one_seed() -> None:
        """A failing seed says how to run this."""
        print(play(draw_shape(int(REPLAYED or 0))))


def test_a_seed_is_played_the_same_way_twice() -> None:
    assert [play(draw_shape(s)) for s in SOME_SEEDS] == [play(draw_shape(s)) for s in SOME_SEEDS]


def test_a_seed_is_played_the_same_way_in_every_process() -> None:
    """Not even the order of sets and the addresses of objects have a say."""
    digests = {
        subprocess.check_output(
            [sys.executable, "-c", PRINT_DIGESTS],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def test_seeds_differ() -> None:
    assert len({play(draw_shape(seed)).digest for seed in SOME_SEEDS}) == len(SOME_SEEDS)
