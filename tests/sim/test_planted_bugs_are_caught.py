"""The simulation notices bugs: each of those in mutations_of_*.py within some seeds.

The same seeds pass without the bug: those are among the seeds that
test_storage_survives_every_seed.py plays, and the one that caught it is played once more here.
"""

import pytest

from evertide.catalog.faults import CatalogFault
from evertide.persist.faults import PersistFault
from evertide.vocab.errors import InternalError
from tests.sim import mutations_of_appends, mutations_of_commits, mutations_of_shards
from tests.sim.history import Violation
from tests.sim.loop import Stuck
from tests.sim.planting import Mutation, seeds_for
from tests.sim.run import SeedFailed, play
from tests.sim.shape import Shape, draw_shape

SEEDS = 150
# A check of the simulation itself, or the code itself saying that it cannot go on.
NOTICED = (Violation, Stuck, PersistFault, CatalogFault)
MUTATIONS = [
    *mutations_of_appends.MUTATIONS,
    *mutations_of_commits.MUTATIONS,
    *mutations_of_shards.MUTATIONS,
]


def why_it_fails(mutation: Mutation, shape: Shape) -> BaseException | None:
    try:
        with mutation.planted():
            play(shape)
    except SeedFailed as failed:
        why = failed.__cause__
        # What a writer was told of something that was noticed while its rows were committed.
        return why.__cause__ if isinstance(why, InternalError) else why
    return None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_planted_bug_is_caught(mutation: Mutation) -> None:
    for seed in seeds_for(mutation, SEEDS):
        shape = mutation.focus(draw_shape(seed))
        failure = why_it_fails(mutation, shape)
        if failure is not None:
            # Not because what was planted does not even run.
            assert isinstance(failure, NOTICED), repr(failure)
            play(shape)
            return
    pytest.fail(f"{mutation.name} was not noticed")
