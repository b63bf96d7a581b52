"""Clusters: how soon one is there, and how little it feels of another."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

import psycopg

from bench.figure import RUNS, Figure, Runs, alternating, milliseconds
from bench.place import Place, wait_until_resident
from tests.support.server import Server, eventually, running_server

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]

CREATED_PER_RUN = 10
VIEWS_PER_RUN = 5
REPETITIONS = 300
# So many that a replica's Spark runs a query over them, not the adapter.
ROWS = 250_000
CREATE_TARGET_MS = 20.0
FIRST_VIEW_TARGET_MS = 1_000.0
# A lookup beside a busy cluster may take this many times its idle time.
TARGET_RATIO = 2.0
# Less may be all that a machine with other work leaves to it.
BUSY_PERCENT = 10.0
# No equality to join by: every pair is looked at.
BUSY = "SELECT count(*) FROM busy x, busy y WHERE (x.id + y.id) % 1003 = 7"


def measure(place: Place) -> list[Figure]:
    """On a server of its own: virtual clusters need a flag."""
    with (
        running_server(place.directory / "clusters", ["--experimental"]) as server,
        server.connect() as connection,
    ):
        wait_until_resident(connection)
        connection.execute("CREATE TABLE t (id int NOT NULL, amount int)")
        connection.execute("INSERT INTO t SELECT n, n % 10 FROM generate_series(1, 1000) g(n)")
        figures = [_created(place, connection), _first_views(place, connection)]
        return [*figures, _isolated(place, server, connection)]


def _created(place: Place, connection: Connection) -> Figure:
    """With a replica that has a process of its own, which starts behind the answer."""
    runs = []
    for run in range(RUNS):
        observed = []
        for number in range(place.scaled(CREATED_PER_RUN, 3)):
            name = f"created_{run}_{number}"
            create = f"CREATE CLUSTER {name} (SIZE '1')".encode()
            observed.append(milliseconds(partial(connection.execute, create)))
            connection.execute(f"DROP CLUSTER {name}".encode())
        runs.append(observed)
    return Figure(
        name="CREATE CLUSTER acknowledged", unit="ms", runs=Runs(tuple(runs)),
        target=CREATE_TARGET_MS,
    )  # fmt: skip


def _first_views(place: Place, connection: Connection) -> Figure:
    """From CREATE CLUSTER VIRTUAL to the first rows of its first view, the pool being there."""
    runs = []
    for run in range(RUNS):
        observed = []
        for number in range(place.scaled(VIEWS_PER_RUN, 2)):
            name = f"virtual_{run}_{number}"
            observed.append(milliseconds(partial(_first_view, connection, name)))
            connection.execute(f"DROP CLUSTER {name} CASCADE".encode())
        runs.append(observed)
    return Figure(
        name="VIRTUAL cluster: its first view", unit="ms", runs=Runs(tuple(runs)),
        target=FIRST_VIEW_TARGET_MS,
    )  # fmt: skip


def _first_view(connection: Connection, name: str) -> None:
    connection.execute(f"CREATE CLUSTER {name} VIRTUAL".encode())
    query = "SELECT amount, count(*) AS n FROM t GROUP BY amount"
    connection.execute(
        f"CREATE MATERIALIZED VIEW first_{name} IN CLUSTER {name} AS {query}".encode()
    )
    rows = connection.execute(f"SELECT n FROM first_{name} WHERE amount = 3".encode()).fetchall()
    assert rows == [(100,)], rows


def _isolated(place: Place, server: Server, connection: Connection) -> Figure:
    """A lookup in one cluster's index, idle and beside a query that keeps another cluster busy."""
    connection.execute("CREATE TABLE busy (id int NOT NULL)")
    connection.execute(f"INSERT INTO busy SELECT * FROM generate_series(1, {ROWS})".encode())
    for name in ("a", "b"):
        connection.execute(f"CREATE CLUSTER {name} (SIZE '1')".encode())
    connection.execute("CREATE VIEW sums AS SELECT id, sum(amount) AS n FROM t GROUP BY id")
    connection.execute("CREATE INDEX sums_by_id IN CLUSTER b ON sums (id)")
    eventually(lambda: server.log_text().count("resident task is up") >= 3, seconds=240)
    wanted = itertools.cycle(range(1, 1_000, 37))
    with server.connect() as reader:
        reader.prepare_threshold = 0
        reader.execute("SET cluster = b")

        def lookup() -> None:
            key = next(wanted)
            found = reader.execute("SELECT n FROM sums WHERE id = %s", (key,)).fetchall()
            assert found == [(key % 10,)], found

        eventually(lambda: _indexed(reader))
        (idle,) = alternating(place.scaled(REPETITIONS, 50), lookup)
        with _busy(server):
            (beside,) = alternating(place.scaled(REPETITIONS, 50), lookup)
    return Figure(
        name="lookup on cluster b, a being busy",
        unit="ms",
        runs=beside,
        target=TARGET_RATIO * idle.median,
        baseline_name="the same while a is idle",
        baseline=idle,
    )


def _indexed(reader: Connection) -> bool:
    plan = str(reader.execute("EXPLAIN SELECT n FROM sums WHERE id = 1").fetchall())
    assert "sums_by_id" in plan, f"the index is not used: {plan}"
    query = "SELECT bool_and(hydrated) FROM mz_internal.mz_hydration_statuses"
    return reader.execute(query).fetchone() == (True,)


@contextmanager
def _busy(server: Server) -> Iterator[None]:
    """A query that computes on cluster a for as long as this lasts."""
    with server.connect() as connection:
        connection.execute("SET cluster = a")
        ended: list[str] = []

        def run() -> None:
            try:
                connection.execute(BUSY.encode())
                ended.append("it was over before the measurement")
            except psycopg.errors.QueryCanceled:
                return
            except psycopg.Error as error:
                ended.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        try:
            eventually(lambda: ended or _cpu_percent(server) > BUSY_PERCENT, pause=0.5)
            yield
        finally:
            connection.cancel_safe()
            thread.join()
        assert not ended, ended


def _cpu_percent(server: Server) -> float:
    with server.connect() as connection:
        row = connection.execute(
            "SELECT u.cpu_percent FROM mz_internal.mz_cluster_cpu_usage u"
            " JOIN mz_clusters c ON c.id = u.cluster_id WHERE c.name = 'a'"
        ).fetchone()
    return float(row[0]) if row is not None and isinstance(row[0], float) else 0.0
