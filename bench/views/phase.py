"""One view at one scale: hydration, freshness in turn with the baselines, sustained changes.

Views take turns with their runs, so that the runs of one lie minutes apart: a shared machine may be
slow for as long.
"""

import sys
import time
from dataclasses import dataclass, field
from functools import partial

import psycopg

from bench.figure import Runs, milliseconds
from bench.place import Place
from bench.views.baselines import Baselines
from bench.views.changes import inserts_of
from bench.views.control import control
from bench.views.definitions import VIEWS, View
from bench.views.follow import SUSTAINED_BATCH, Connection, Follower, Timings
from bench.views.model import Model
from bench.views.tables import TABLES

SIZES = (1, 100, 10_000)
# Growth is looked at for batches of at most so many changes.
GROWTH_SIZES = (1, 100)
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
    """What one view's runs gave so far, one sequence for each."""

    follower: Follower
    timings: dict[int, list[Timings]] = field(default_factory=dict)
    recomputed: list[dict[str, list[float]]] = field(default_factory=list)
    hydration_seconds: list[list[float]] = field(default_factory=list)
    rates: list[list[float]] = field(default_factory=list)
    # Batches that are sent: others would take too long. Known from the first run on.
    sizes: tuple[int, ...] = ()
    sustains: bool = False
    input_rows: int = 0
    # What the fixed piece of work took beside each run, by size of batch.
    controls: dict[int, list[list[float]]] = field(default_factory=dict)

    @property
    def view(self) -> View:
        return self.follower.view

    @property
    def inserts(self) -> bool:
        """Batches of nothing but inserts are not what targets are about."""
        return self.follower.inserts

    @property
    def hydrations(self) -> Runs:
        return Runs(tuple(self.hydration_seconds))

    @property
    def sustained(self) -> Runs | None:
        return Runs(tuple(self.rates), higher=True) if self.rates else None

    @property
    def baselines(self) -> dict[str, Runs]:
        names = self.recomputed[0] if self.recomputed else {}
        return {name: Runs(tuple(run[name] for run in self.recomputed)) for name in names}


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


def observe(place: Place, observed: Observed, chosen: Chosen, baselines: Baselines | None) -> None:
    """One run. Leaves no view behind, and the tables as the model has them."""
    follower, view = observed.follower, observed.view
    first = not observed.hydration_seconds
    observed.hydration_seconds.append([follower.hydrate()])
    follower.require_all()
    if first:
        _look_ahead(observed, chosen)
    if baselines is not None:
        if first:
            baselines.prepare(view)
        observed.recomputed.append(baselines.run(view))
    for size in observed.sizes:
        follower.run(size, 2)
        timings = follower.run(size, place.scaled(REPETITIONS.get(size, 5), 3))
        observed.timings.setdefault(size, []).append(timings)
        if size in GROWTH_SIZES:
            observed.controls.setdefault(size, []).append(control(size))
        _progress(observed, size)
    if observed.sustains:
        observed.rates.append([follower.sustained(place.scaled(SUSTAINED_BATCHES, 3))])
    follower.require_all()
    follower.connection.execute(f"DROP MATERIALIZED VIEW {view.name}")


def _look_ahead(observed: Observed, chosen: Chosen) -> None:
    """Which batches are worth to be sent."""
    follower = observed.follower
    observed.input_rows = follower.model.count(observed.view.reads)
    affordable = [size for size in chosen.sizes if _affordable(follower, size, BATCH_SECONDS)]
    observed.sizes = tuple(affordable)
    observed.sustains = _affordable(follower, SUSTAINED_BATCH, SUSTAINED_BATCH_SECONDS)


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
