"""A server whose catalog holds many objects, beside one whose catalog holds few."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import psycopg

from bench.figure import RUNS, Figure, Runs, alternating, milliseconds
from bench.filled import fill
from bench.place import Place, running_helper, wait_until_resident
from bench.ready import TARGET_SECONDS as READY_SECONDS
from tests.support.server import running_server

FEW, MANY = 10, 10_000
CREATIONS = 50
REPETITIONS = 300
OPENINGS = 3
STARTS = 2
# CREATE TABLE among many objects may cost this many times what it costs among few.
CREATE_RATIO = 2.0
OPEN_SECONDS = 1.0

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"


def measure(place: Place) -> list[Figure]:
    """Opening, starting, and statements of clients."""
    few, many = place.directory / "objects-few", place.directory / "objects-many"
    fill(few, FEW)
    fill(many, place.scaled(MANY))
    named = f"{place.scaled(MANY):,} objects"
    figures = [_opening(place, few, many, named), _ready(place, many, named)]
    with ExitStack() as stack:
        among_few, among_many = (stack.enter_context(_connected(data)) for data in (few, many))
        figures += _statements(place, among_few, among_many, named)
    return figures


def _opening(place: Place, few: Path, many: Path, named: str) -> Figure:
    """In a new process each time, as a server does it: nothing is known from before."""
    opened: list[list[float]] = []
    baseline: list[list[float]] = []
    openings = range(1 if place.quick else OPENINGS)
    for _ in range(RUNS):
        opened.append([_open(many) for _ in openings])
        baseline.append([_open(few) for _ in openings])
    return Figure(
        name=f"open the catalog, {named}",
        unit="s",
        runs=Runs(tuple(opened)),
        target=OPEN_SECONDS,
        baseline_name=f"{FEW} objects",
        baseline=Runs(tuple(baseline)),
    )


def _open(data: Path) -> float:
    """Seconds, without the start of the process."""
    with running_helper("opening") as helper:
        return float(helper.ask(str(data)))


def _ready(place: Place, many: Path, named: str) -> Figure:
    """Beside an environment that is new each time."""
    started: list[list[float]] = []
    empty: list[list[float]] = []
    starts = range(1 if place.quick else STARTS)
    for run in range(RUNS):
        started.append([_start(many) for _ in starts])
        empty.append([_start(place.directory / f"objects-none-{run}-{n}") for n in starts])
    return Figure(
        name=f"serve: ready, {named}",
        unit="s",
        runs=Runs(tuple(started)),
        target=READY_SECONDS,
        baseline_name="a new environment",
        baseline=Runs(tuple(empty)),
    )


def _start(data: Path) -> float:
    """Seconds until the ready line."""
    started = time.perf_counter()
    with running_server(data):
        return time.perf_counter() - started


@contextmanager
def _connected(data: Path) -> Iterator[Connection]:
    """To a server of its own, whose replica has come to rest."""
    with running_server(data) as server, server.connect() as connection:
        connection.prepare_threshold = 0
        wait_until_resident(connection)
        connection.execute("CREATE TABLE points (id int NOT NULL, amount int)")
        connection.execute("INSERT INTO points VALUES (1, 10), (2, 20)")
        yield connection


def _statements(place: Place, few: Connection, many: Connection, named: str) -> list[Figure]:
    created, created_few = _creations(place.scaled(CREATIONS), many, few)
    count = place.scaled(REPETITIONS)
    constant, constant_few = alternating(count, _asking(many, "1"), _asking(few, "1"))
    query = "amount FROM points WHERE id = 2"
    point, point_few = alternating(count, _asking(many, query), _asking(few, query))
    return [
        Figure(name=f"CREATE TABLE, {named}", unit="ms", runs=created,
               target=CREATE_RATIO * created_few.median,
               baseline_name=f"{FEW} objects", baseline=created_few),
        Figure(name=f"SELECT 1, {named}", unit="ms", runs=constant,
               baseline_name=f"{FEW} objects", baseline=constant_few),
        Figure(name=f"point SELECT, {named}", unit="ms", runs=point,
               baseline_name=f"{FEW} objects", baseline=point_few),
    ]  # fmt: skip


def _asking(connection: Connection, what: str) -> Callable[[], object]:
    return lambda: connection.execute(f"SELECT {what}").fetchall()


def _creations(count: int, *connections: Connection) -> list[Runs]:
    """CREATE TABLE of each connection in turn; each table is dropped, so that few stay few."""
    names = (f"created_{number}" for number in itertools.count())
    rounds = [[_created(count, c, names) for c in connections] for _ in range(RUNS)]
    return [Runs(tuple(observed)) for observed in zip(*rounds, strict=True)]


def _created(count: int, connection: Connection, names: Iterator[str]) -> list[float]:
    observed = []
    for name in itertools.islice(names, count):
        statement = f"CREATE TABLE {name} (id int NOT NULL, name text, amount int)"
        observed.append(milliseconds(partial(connection.execute, statement)))
        connection.execute(f"DROP TABLE {name}")
    return observed
