"""Statements that take a moment: one row written, a constant read, a key looked up."""

import itertools
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.figure import RUNS, Figure, Runs, alternating
from bench.place import Place

REPETITIONS = 300
KEYS = 10_000
BATCH = 5_000
CONNECTIONS = 8
SUSTAINED_SECONDS = 3.0
INSERT_TARGET_MS = 5.0
SELECT_TARGET_MS = 1.0
LOOKUP_TARGET_MS = 3.0


def measure_insert(place: Place) -> list[Figure]:
    """One row, alone and with a view that follows; then as many as eight connections can."""
    connection = place.connect()
    connection.execute("CREATE TABLE written (id int NOT NULL, amount int)")
    connection.execute("CREATE TABLE followed (id int NOT NULL, amount int)")
    ids = itertools.count()
    insert = "INSERT INTO {} VALUES (%s, %s)"
    count = place.scaled(REPETITIONS)
    commit = _sqlite_commit(place.directory / "baseline.sqlite")
    alone, committed = alternating(
        count, lambda: connection.execute(insert.format("written"), (next(ids), 1)), commit
    )
    connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(amount) AS s FROM followed")
    with_view, committed_again = alternating(
        count, lambda: connection.execute(insert.format("followed"), (next(ids), 1)), commit
    )
    connection.execute("DROP TABLE followed CASCADE")
    sustained = Runs(tuple([_sustained(place)] for _ in range(RUNS)), higher=True)
    commits = Runs(tuple([1_000 / ms for ms in run] for run in committed.observed), higher=True)
    connection.execute("DROP TABLE written")
    named = "SQLite commit, WAL, FULL"
    return [
        Figure(name="INSERT of one row", unit="ms", runs=alone, target=INSERT_TARGET_MS,
               baseline_name=named, baseline=committed),
        Figure(name="  with a view following", unit="ms", runs=with_view, target=INSERT_TARGET_MS,
               baseline_name=named, baseline=committed_again),
        Figure(name="INSERTs, 8 connections", unit="/s", runs=sustained,
               baseline_name="SQLite commits, one thread", baseline=commits),
    ]  # fmt: skip


def _sqlite_commit(path: Path) -> Callable[[], object]:
    """One durable commit of one row, as cheap as this file system and SQLite allow."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE written (id INTEGER PRIMARY KEY, amount INTEGER)")
    return lambda: connection.execute("INSERT INTO written (amount) VALUES (1)")


def _sustained(place: Place) -> float:
    """Acknowledged one-row INSERTs per second over all connections."""
    counts = [0] * CONNECTIONS
    deadline = time.perf_counter() + (0.5 if place.quick else SUSTAINED_SECONDS)

    def write(number: int) -> None:
        with place.server.connect() as connection:
            connection.prepare_threshold = 0
            while time.perf_counter() < deadline:
                connection.execute("INSERT INTO written VALUES (%s, %s)", (number, 1))
                counts[number] += 1

    threads = [threading.Thread(target=write, args=(n,)) for n in range(CONNECTIONS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def measure_select(place: Place) -> list[Figure]:
    """The way through parser, planner and wire, with nothing to read."""
    ours, theirs = place.connect(), place.connect_postgres()
    selected, baseline = alternating(
        place.scaled(REPETITIONS),
        lambda: ours.execute("SELECT 1").fetchall(),
        lambda: theirs.execute("SELECT 1").fetchall(),
    )
    return [
        Figure(
            name="SELECT 1",
            unit="ms",
            runs=selected,
            target=SELECT_TARGET_MS,
            baseline_name="PostgreSQL SELECT 1",
            baseline=baseline,
        )
    ]


def measure_lookup(place: Place) -> list[Figure]:
    """A key of an indexed view; the plan is asked first whether that is what will be measured."""
    keys = place.scaled(KEYS)
    ours, theirs = place.connect(), place.connect_postgres()
    ours.execute("CREATE TABLE scores (id int NOT NULL, score int NOT NULL)")
    theirs.execute("CREATE TABLE best (id int PRIMARY KEY, score int NOT NULL)")
    for start in range(0, keys, BATCH):
        values = ", ".join(
            f"({n}, {n * 7 % 1_000})" for n in range(start, min(start + BATCH, keys))
        )
        ours.execute(f"INSERT INTO scores VALUES {values}")
        theirs.execute(f"INSERT INTO best VALUES {values}")
    ours.execute("CREATE VIEW best AS SELECT id, max(score) AS score FROM scores GROUP BY id")
    ours.execute("CREATE INDEX best_by_id ON best (id)")
    query = "SELECT score FROM best WHERE id = %s"
    plan = str(ours.execute(f"EXPLAIN {query}", (1,)).fetchall())
    assert "best_by_id" in plan, f"the index is not used: {plan}"
    assert ours.execute(query, (9,)).fetchall() == theirs.execute(query, (9,)).fetchall()
    wanted = itertools.cycle(range(0, keys, 37))
    found, baseline = alternating(
        place.scaled(REPETITIONS),
        lambda: ours.execute(query, (next(wanted),)).fetchall(),
        lambda: theirs.execute(query, (next(wanted),)).fetchall(),
    )
    ours.execute("DROP TABLE scores CASCADE")
    return [
        Figure(
            name="index lookup",
            unit="ms",
            runs=found,
            target=LOOKUP_TARGET_MS,
            baseline_name="PostgreSQL primary key",
            baseline=baseline,
        )
    ]
