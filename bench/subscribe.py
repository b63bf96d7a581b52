"""Subscriptions: how soon a change of a view is told, and what many idle ones cost."""

import datetime
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import pq

from bench.figure import RUNS, Figure, Runs
from bench.place import Place
from tests.support.server import descendants_of

REPETITIONS = 100
DELIVERY_MS = 5.0
SUBSCRIPTIONS = 1_000
IDLE_SECONDS = 10.0
# What the subscriptions' beginning leaves to be done is not what they cost.
SETTLE_SECONDS = 3.0
IDLE_PERCENT = 5.0
# Of those subscriptions.
BY_OPERATORS = 100
GROUPS = 10

# A tick ends before its output is appended, so no delivery is faster than it seems.
TICKS = """
SELECT t.upper, t.started_at, t.duration_ms FROM mz_internal.mz_tick_records t
JOIN mz_catalog.mz_materialized_views v ON v.id = t.object_id
WHERE v.name = 'followed_sums' AND t.rows_in > 0"""


def measure(place: Place) -> list[Figure]:
    """Makes its own tables, and drops them."""
    connection = place.connect()
    connection.execute("CREATE TABLE followed (id bigint NOT NULL, amount bigint)")
    connection.execute("CREATE TABLE unchanged (id bigint NOT NULL, amount bigint)")
    connection.execute("INSERT INTO unchanged VALUES (1, 1)")
    connection.execute(
        "CREATE MATERIALIZED VIEW followed_sums AS"
        f" SELECT id % {GROUPS} AS part, sum(amount) AS total FROM followed GROUP BY id % {GROUPS}"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW unchanged_sums AS SELECT sum(amount) AS total FROM unchanged"
    )
    figures = [_delivery(place, connection), *_idle(place)]
    connection.execute("DROP TABLE followed CASCADE")
    connection.execute("DROP TABLE unchanged CASCADE")
    return figures


def _delivery(place: Place, connection: "psycopg.Connection[tuple[object, ...]]") -> Figure:
    """From the end of the tick that made a change until a client has it, in milliseconds."""
    count = place.scaled(REPETITIONS, 10)
    groups = ", ".join(f"({number}, 1)" for number in range(GROUPS))
    connection.execute(f"INSERT INTO followed VALUES {groups}")
    runs = []
    with place.server.connect() as follower:
        told = _told(follower)
        for _ in range(GROUPS):
            next(told)
        for run in range(RUNS):
            arrived: dict[int, float] = {}
            for number in range(count):
                row = run * count + number
                connection.execute("INSERT INTO followed VALUES (%s, %s)", (row, row + 1))
                ts = next(told)
                arrived[ts] = time.time()
                assert next(told) == ts, "what a group showed goes when something else comes"
            runs.append(_waits(connection, arrived))
        told.close()
    return Figure(
        name="SUBSCRIBE: a change told after its tick",
        unit="ms",
        runs=Runs(tuple(runs)),
        target=DELIVERY_MS,
    )


def _told(follower: "psycopg.Connection[tuple[object, ...]]") -> Generator[int, None, None]:
    """The timestamps of the rows that come, one by one; closing it ends the subscription."""
    for row in follower.cursor().stream("SUBSCRIBE followed_sums"):
        yield int(str(row[0]))


def _waits(
    connection: "psycopg.Connection[tuple[object, ...]]", arrived: dict[int, float]
) -> list[float]:
    """Milliseconds between a change's tick and its arrival; one tick may bring several."""
    ended: list[tuple[int, float]] = []
    for upper, started_at, duration_ms in connection.execute(TICKS).fetchall():
        assert isinstance(started_at, datetime.datetime)
        seconds = started_at.timestamp() + float(str(duration_ms)) / 1_000
        ended.append((int(str(upper)), seconds))
    ended.sort()
    waits = []
    for ts, seconds in arrived.items():
        tick = next((end for upper, end in ended if upper > ts), None)
        assert tick is not None, f"no tick brought what was told at {ts}"
        waits.append((seconds - tick) * 1_000)
    return waits


def _idle(place: Place) -> list[Figure]:
    """CPU of all processes while nothing happens, with and without subscriptions."""
    count = place.scaled(SUBSCRIPTIONS)
    pid = place.server.process.pid
    seconds = 2.0 if place.quick else IDLE_SECONDS
    without = [[_percent(pid, seconds)] for _ in range(RUNS)]
    with _subscribed(place, count):
        time.sleep(SETTLE_SECONDS)
        beside = [[_percent(pid, seconds)] for _ in range(RUNS)]
    least = min(run[0] for run in without)
    cost = [[max(0.0, run[0] - least)] for run in beside]
    return [
        Figure(name=f"{count:,} idle subscriptions, share of a core", unit="%",
               runs=Runs(tuple(cost)), target=IDLE_PERCENT),
        Figure(name="  the idle server without them", unit="%", runs=Runs(tuple(without))),
    ]  # fmt: skip


@contextmanager
def _subscribed(place: Place, count: int) -> Iterator[None]:
    """Half of them follow a table, half a view, and none of these changes.

    Some come by the address for operators: the other has places for 1,000 in all, and the benchmark
    has a connection as well.
    """
    addresses = [*place.server.internal[:1] * BY_OPERATORS, *place.server.sql[:1] * count][:count]
    connections: list[psycopg.Connection[tuple[object, ...]]] = []
    try:
        for number, address in enumerate(addresses):
            host, port = address.rsplit(":", 1)
            connection = psycopg.connect(
                host=host, port=int(port), user="materialize", dbname="materialize", autocommit=True
            )
            connections.append(connection)
            name = "unchanged" if number % 2 else "unchanged_sums"
            result = connection.pgconn.exec_(f"COPY (SUBSCRIBE {name}) TO STDOUT".encode())
            assert result.status == pq.ExecStatus.COPY_OUT, result.error_message
        yield
    finally:
        for connection in connections:
            connection.pgconn.finish()
            connection.close()


def _percent(pid: int, seconds: float) -> float:
    """How much of a core a tree of processes used."""
    before, started = _cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (_cpu_seconds(pid) - before) / (time.monotonic() - started)


def _cpu_seconds(pid: int) -> float:
    ticks = 0
    for one in (pid, *descendants_of(pid)):
        try:
            with open(f"/proc/{one}/stat", errors="replace") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
