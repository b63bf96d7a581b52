"""Storage under simulated processes, networks and clocks that fail in every way a seed draws.

Goal: nothing acknowledged is lost, nothing is done twice, every read is exact, time never goes
back. What exactly is checked stands in history.py, truth.py and checks.py. Method: real code on an
event loop with virtual time (loop.py) over stores whose network fails (network.py, store.py).
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

from tests.sim.run import play
from tests.sim.shape import draw_shape, on_feeds
from tests.sim.short_way import TROUBLES
from tests.support.seeds import seeds

SEEDS = 200
CHUNK = 25
SOME_SEEDS = (3, 17, 101, 202)

PRINT_DIGESTS = f"""
from tests.sim.run import play
from tests.sim.shape import draw_shape
print(*[play(draw_shape(seed)).digest for seed in {SOME_SEEDS}])
"""


@seeds(range(SEEDS), deep=range(SEEDS, 10_500), fresh=1_000, block=CHUNK)
def test_storage_keeps_its_promises(seeds: Sequence[int]) -> None:
    short_way: Counter[str] = Counter()
    for seed in seeds:
        short_way.update(play(draw_shape(seed)).short_way)
    if len(seeds) == CHUNK:
        # Else their silence would mean nothing for it, whether the store tells or not.
        for way in ("", "told: "):
            assert short_way[f"{way}done"] > 2 * CHUNK, short_way
            assert sum(short_way[way + trouble] for trouble in TROUBLES) > CHUNK // 4, short_way


def test_single_appends_meet_every_trouble_on_their_short_way() -> None:
    short_way: Counter[str] = Counter()
    for seed in range(CHUNK):
        short_way.update(play(on_feeds(draw_shape(seed))).short_way)
    assert all(short_way[f"told: {trouble}"] for trouble in ("done", *TROUBLES)), short_way


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
