"""Replacing a view under load: how long a reader waits at the cut-over, and how long the apply."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import psycopg

from bench.figure import RUNS, Figure, Runs
from bench.place import Place, wait_until_resident
from tests.support.server import Server, eventually, running_server

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]

ROWS = 1_000_000
DIFFERING = 1_000
UPDATES_PER_S = 1_000
WRITES_PER_S = 50
# How much longer than without a cut-over a reader may wait.
PAUSE_TARGET_MS = 100.0
# Readers are watched so long before and after.
BESIDE_S = 3.0


@dataclass
class Reader:
    """Asks for one row after the other, and notes when and how long each took."""

    connection: Connection
    rows: int
    stopped: threading.Event = field(default_factory=threading.Event)
    # (when it was asked, how long it took), in seconds.
    asked: list[tuple[float, float]] = field(default_factory=list)
    failure: BaseException | None = None

    def run(self) -> None:
        try:
            for key in itertools.cycle(range(1, self.rows, 997)):
                started = time.monotonic()
                found = self.connection.execute("SELECT amount FROM mv WHERE id = %s", (key,))
                assert len(found.fetchall()) == 1
                self.asked.append((started, time.monotonic() - started))
                if self.stopped.wait(0.002):
                    return
        except BaseException as failure:  # noqa: BLE001 - told to whoever started it
            self.failure = failure

    def longest_ms(self, start: float, end: float) -> float:
        """The longest that a reader waited who was waiting between these times."""
        return max(1_000 * took for at, took in self.asked if at < end and at + took > start)


@contextmanager
def _load(server: Server, rows: int) -> Iterator[None]:
    """Rows come and go, so many in a second, in as many statements as a client may send."""
    stopped = threading.Event()
    each = UPDATES_PER_S // WRITES_PER_S // 2

    def write() -> None:
        with server.connect() as connection:
            for number in itertools.count():
                started = time.monotonic()
                first = rows + 1 + number * each
                gone = first - 100 * each
                connection.execute(
                    f"INSERT INTO t SELECT n, n % 10 FROM generate_series({first},"
                    f" {first + each - 1}) g(n)".encode()
                )
                if gone > rows:
                    connection.execute(
                        f"DELETE FROM t WHERE id BETWEEN {gone} AND {gone + each - 1}".encode()
                    )
                if stopped.wait(max(0.0, 1 / WRITES_PER_S - (time.monotonic() - started))):
                    return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(60)


def measure(place: Place) -> list[Figure]:
    """On a server of its own, whose clusters have nothing else to do."""
    rows = place.scaled(ROWS, 50_000)
    with (
        running_server(place.directory / "replacements") as server,
        server.connect() as connection,
    ):
        wait_until_resident(connection)
        connection.execute("CREATE CLUSTER other (SIZE '1')")
        connection.execute("CREATE TABLE t (id int NOT NULL, amount int)")
        for first in range(1, rows + 1, 100_000):
            last = min(first + 99_999, rows)
            numbers = f"generate_series({first}, {last}) g(n)"
            connection.execute(f"INSERT INTO t SELECT n, n % 10 FROM {numbers}".encode())
        connection.execute("CREATE MATERIALIZED VIEW mv AS SELECT id, amount FROM t")
        assert connection.execute("SELECT count(*) FROM mv").fetchone() == (rows,)
        with _load(server, rows):
            return _replaced(place, server, connection, rows)


def _replaced(place: Place, server: Server, connection: Connection, rows: int) -> list[Figure]:
    usual: list[float] = []
    pauses: list[float] = []
    applies: list[float] = []
    differing = place.scaled(DIFFERING, 50)
    with server.connect() as own:
        reader = Reader(own, rows)
        own.prepare_threshold = 0
        thread = threading.Thread(target=reader.run)
        thread.start()
        try:
            for run in range(RUNS):
                _stage(connection, run, rows, differing)
                time.sleep(BESIDE_S)
                started = time.monotonic()
                connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
                ended = time.monotonic()
                time.sleep(BESIDE_S)
                usual.append(reader.longest_ms(started - BESIDE_S, started))
                pauses.append(reader.longest_ms(started, ended))
                applies.append(1_000 * (ended - started))
        finally:
            reader.stopped.set()
            thread.join(60)
    if reader.failure is not None:
        raise reader.failure
    # One observation in each: no run is better than the others.
    before = Runs((usual,))
    return [
        Figure(
            name=f"longest wait of a reader at a cut-over, {differing:,} of {rows:,} rows differ",
            unit="ms",
            runs=Runs((pauses,)),
            target=before.median + PAUSE_TARGET_MS,
            baseline_name="the same before it",
            baseline=before,
        ),
        Figure(name="APPLY REPLACEMENT acknowledged", unit="ms", runs=Runs((applies,))),
    ]


def _stage(connection: Connection, run: int, rows: int, differing: int) -> None:
    """Another amount in every so many rows than the view has by now."""
    every = rows // differing
    cluster = ("other", "default")[run % 2]
    connection.execute(
        f"CREATE MATERIALIZED VIEW r REPLACING mv IN CLUSTER {cluster} AS SELECT id,"
        f" CASE WHEN id % {every} = 0 AND id <= {rows} THEN {run} - 1000 ELSE amount END AS amount"
        " FROM t".encode()
    )

    def compared() -> bool:
        found = connection.execute(
            "SELECT inserted_records, deleted_records FROM mz_internal.mz_replacement_changes"
        ).fetchall()
        assert all(row == (differing, differing) for row in found), found
        return bool(found)

    eventually(compared, seconds=600, pause=0.5)
