"""The simulation of the catalog notices bugs: each of mutations_of_catalog.py within some seeds."""

import pytest

from evertide.catalog.faults import CatalogFault
from evertide.persist.faults import PersistFault
from tests.sim import mutations_of_catalog
from tests.sim.catalog_scenario import draw_catalog_shape, play_catalog
from tests.sim.loop import Stuck
from tests.sim.planting import Mutation, seeds_for
from tests.sim.run import SeedFailed
from tests.sim.shape import Shape

SEEDS = 100
# A check of the simulation (an AssertionError), or the code itself saying that it cannot go on.
NOTICED = (AssertionError, Stuck, PersistFault, CatalogFault)


def why_it_fails(mutation: Mutation, shape: Shape) -> BaseException | None:
    try:
        with mutation.planted():
            play_catalog(shape)
    except SeedFailed as failed:
        return failed.__cause__
    return None


@pytest.mark.parametrize("mutation", mutations_of_catalog.MUTATIONS, ids=lambda one: one.name)
def test_a_planted_bug_of_the_catalog_is_caught(mutation: Mutation) -> None:
    for seed in seeds_for(mutation, SEEDS):
        shape = mutation.focus(draw_catalog_shape(seed))
        failure = why_it_fails(mutation, shape)
        if failure is not None:
            # Not because what was planted does not even run.
            assert isinstance(failure, NOTICED), repr(failure)
            play_catalog(shape)
            return
    pytest.fail(f"{mutation.name} was not noticed")
