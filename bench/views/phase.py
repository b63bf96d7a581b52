"""One view at one scale: hydration, freshness in turn with the baselines, sustained changes."""

import sys
import time
from dataclasses import dataclass, field
from functools import partial

import psycopg

from bench.figure import RUNS, Runs, milliseconds
from bench.place import Place
from bench.views.baselines import Baselines
from bench.views.changes import inserts_of
from bench.views.definitions import VIEWS, View
from bench.views.follow import SUSTAINED_BATCH, Connection, Follower, Timings
from bench.views.model import Model
from bench.views.tables import TABLES

SIZES = (1, 100, 10_000)
# Per run; a run also ends by time.
REPETITIONS = {1: 40, 100: 20, 10_000: 5}
SUSTAINED_BATCHES = 20
# A batch is left out, with a note, if smaller ones say that it takes longer than this: it is far
# from every target, and its statements might run into their timeout.
BATCH_SECONDS = 20.0
SUSTAINED_BATCH_SECONDS = 1.0
TRIED_SIZES = (100,)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to measure: everything, unless a developer wants less."""

    views: tuple[str, ...] = tuple(VIEWS)
    sizes: tuple[int, ...] = SIZES
    inserts: bool = False
    baselines: bool = True


@dataclass
class Observed:
    """What one view's phase gave."""

    view: View
    input_rows: int
    hydrations: Runs
    # Batches of nothing but inserts are not what targets are about.
    inserts: bool
    timings: dict[int, list[Timings]] = field(default_factory=dict)
    baselines: dict[str, Runs] = field(default_factory=dict)
    sustained: Runs | None = None


def load(connection: Connection, model: Model) -> float:
    """Makes and fills all tables; rows per second."""
    rows = 0
    started = time.perf_counter()
    for table in TABLES.values():
        connection.execute(table.create)
        for literals in model.stored_literals(table.name):
            for statement in inserts_of(table.name, literals):
                connection.execute(statement, prepare=False)
            rows += len(literals)
    return rows / (time.perf_counter() - started)


def unload(connection: Connection) -> None:
    """Drops them, and what is left above them."""
    for table in TABLES:
        connection.execute(f"DROP TABLE {table} CASCADE")


def observe(
    place: Place, follower: Follower, chosen: Chosen, baselines: Baselines | None
) -> Observed:
    """Leaves no view behind, and the tables as the model has them."""
    view = follower.view
    hydrations = Runs(tuple([follower.hydrate()] for _ in range(RUNS)))
    input_rows = follower.model.count(view.reads)
    observed = Observed(view, input_rows, hydrations, follower.inserts)
    follower.require_all()
    sizes = [size for size in chosen.sizes if _affordable(follower, size, BATCH_SECONDS)]
    if baselines is not None:
        baselines.prepare(view)
    recomputed: list[dict[str, list[float]]] = []
    for run in range(RUNS):
        if baselines is not None:
            recomputed.append(baselines.run(view))
        for size in sizes:
            if run == 0:
                follower.run(size, 2)
            timings = follower.run(size, place.scaled(REPETITIONS.get(size, 5), 3))
            observed.timings.setdefault(size, []).append(timings)
            _progress(observed, size)
    for name in recomputed[0] if recomputed else ():
        observed.baselines[name] = Runs(tuple(run[name] for run in recomputed))
    if _affordable(follower, SUSTAINED_BATCH, SUSTAINED_BATCH_SECONDS):
        batches = place.scaled(SUSTAINED_BATCHES, 3)
        rates = tuple([follower.sustained(batches)] for _ in range(RUNS))
        observed.sustained = Runs(rates, higher=True)
    follower.require_all()
    follower.connection.execute(f"DROP MATERIALIZED VIEW {view.name}")
    return observed


def _affordable(follower: Follower, size: int, limit_seconds: float) -> bool:
    """Whether a batch of this size ends in bearable time, going by smaller ones that are sent."""
    if follower.inserts:
        return True
    for tried in TRIED_SIZES:
        if tried >= size:
            break
        seconds = min(_handed_over(follower, tried) for _ in range(2)) * size / tried
        if seconds > limit_seconds:
            name = follower.view.name
            print(f"{name}: no batches of {size:,}, {tried} changes in proportion take"
                  f" {seconds:.1f} s", flush=True)  # fmt: skip
            return False
    return True


def _handed_over(follower: Follower, size: int) -> float:
    """Seconds. The first of its kind pays for what the server keeps from then on."""
    batch = follower.batch(size)
    seconds = milliseconds(partial(follower.hand_over, batch)) / 1_000
    follower.require_shown(batch)
    return seconds


def _progress(observed: Observed, size: int) -> None:
    timings = observed.timings[size][-1]
    parts = (timings.both, timings.writes, timings.waits, timings.ticks)
    both, writes, waits, ticks = (Runs((part,)).median for part in parts)
    print(
        f"  {observed.view.name}, {size:,}: {both:.1f} ms = write {writes:.1f} + wait {waits:.1f}"
        f" (tick {ticks:.1f})",
        file=sys.stderr,
        flush=True,
    )


def connected(place: Place) -> "psycopg.Connection[tuple[object, ...]]":
    """A connection whose long statements are waited for."""
    connection = place.connect()
    connection.execute("SET statement_timeout = '300s'")
    return connection
