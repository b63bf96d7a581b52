"""The groups `views` and `views-large`."""

import sys
from contextlib import nullcontext

from bench.figure import RUNS, Figure, Runs
from bench.memory import anonymous_mb
from bench.place import QUICK_DIVISOR, Place
from bench.views import many
from bench.views.baselines import running_baselines
from bench.views.definitions import VIEWS
from bench.views.follow import Connection, Follower, takes_blocks
from bench.views.model import Model
from bench.views.phase import GROWTH_SIZES, Chosen, Observed, connected, load, observe, unload
from bench.views.report import figures_of, growth_figures

SCALES = {"S": 1.0, "M": 10.0}
MEMORY_MB = 2_000.0


def measure_small(place: Place, chosen: Chosen) -> list[Figure]:
    """Scale S, all baselines, and many small views."""
    observed, more = _scale(place, "S", chosen, memory=False)
    form = _form(place, chosen)
    figures = [figure for o in observed for figure in figures_of(o, "S", form)]
    many_small = many.measure(place) if chosen == Chosen() else []
    return [*figures, *more, *many_small]


def measure_large(place: Place, chosen: Chosen) -> list[Figure]:
    """Scale M, and how much a tick grows from S, which is measured first for that."""
    sizes = tuple(size for size in GROWTH_SIZES if size in chosen.sizes)
    fewer = Chosen(chosen.views, sizes, chosen.inserts, baselines=False)
    small, _ = _scale(place, "S", fewer, memory=False)
    large, more = _scale(place, "M", chosen, memory=True)
    form = _form(place, chosen)
    figures = [figure for o in large for figure in figures_of(o, "M", form)]
    return [*figures, *more, *growth_figures(small, large)]


def _form(place: Place, chosen: Chosen) -> str:
    """How batches were handed over, if not as they should be."""
    if chosen.inserts:
        return ", inserts only"
    with place.server.connect() as connection:
        return "" if takes_blocks(connection) else ", one by one"


def _scale(
    place: Place, name: str, chosen: Chosen, *, memory: bool
) -> tuple[list[Observed], list[Figure]]:
    """Runs of every chosen view in turn over one set of tables, which are dropped at the end."""
    model = Model(SCALES[name] / (QUICK_DIVISOR if place.quick else 1))
    connection = connected(place)
    rate = load(connection, model)
    print(f"  scale {name} loaded, {rate:,.0f} rows/s", file=sys.stderr, flush=True)
    # INSERTs by themselves may always stand in a block.
    blocks = chosen.inserts or takes_blocks(connection)
    observed = [
        Observed(Follower(connection, model, VIEWS[view], blocks, chosen.inserts))
        for view in chosen.views
    ]
    wanted = running_baselines(place, model, name) if chosen.baselines else nullcontext()
    with wanted as baselines:
        for _ in range(RUNS):
            for one in observed:
                observe(place, one, chosen, baselines)
    figures = [Figure(name=f"load of {name}", unit="rows/s", runs=Runs(([rate],), higher=True))]
    if memory:
        figures.append(_memory(place, connection, model, chosen))
    unload(connection)
    connection.close()
    model.close()
    return observed, figures


def _memory(place: Place, connection: Connection, model: Model, chosen: Chosen) -> Figure:
    """Anonymous memory of the replica with all the views; mapped runs are not counted."""
    for view in chosen.views:
        Follower(connection, model, VIEWS[view], False, False).hydrate()
    (pid,) = place.server.pids_of("replica")
    samples = [[sum(anonymous_mb(pid).values())] for _ in range(RUNS)]
    return Figure(name="replica memory, M, all views", unit="MB", runs=Runs(tuple(samples)),
                  target=MEMORY_MB)  # fmt: skip
