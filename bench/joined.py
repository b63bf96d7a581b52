"""A join of three tables, grouped: how long until a write shows in the view that follows it."""

import itertools
import json
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from bench.figure import RUNS, WARM_UP, Figure, Runs, in_runs, milliseconds
from bench.joined_rows import COLUMNS, QUERY, Rows, batches, create_table, insert
from bench.place import Helper, Place, running_helper

ITEMS = 100_000
BATCH = 5_000
NEW_ITEMS = 100
REPETITIONS = 60
RECOMPUTATIONS = 10
RECOMPUTE_WARM_UP = 10
TARGET_MS = 25.0

NAME = "100 rows until a join shows them"
RECOMPUTED = "Spark recomputes it"
VIEW = "by_day"
READ = f"SELECT day, items, total FROM {VIEW}"
TICKS = f"""
SELECT t.duration_ms FROM mz_internal.mz_tick_records t
JOIN mz_catalog.mz_materialized_views v ON v.id = t.object_id
WHERE v.name = '{VIEW}' AND t.executor = 'resident' AND t.rows_in = {NEW_ITEMS}"""

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"


@dataclass
class Timings:
    """Milliseconds of one run: the INSERT, the SELECT behind it, and both."""

    inserts: list[float] = field(default_factory=list)
    selects: list[float] = field(default_factory=list)
    both: list[float] = field(default_factory=list)


def measure(place: Place) -> list[Figure]:
    """Load, hydrate, then write and read in turn with recomputing the same."""
    rows = Rows.generate(place.scaled(ITEMS))
    connection = place.connect()
    bulk = _load(place, connection, rows)
    directory = place.directory / "recompute"
    _write_parquet(rows, directory)
    with running_helper("recompute", str(directory)) as helper:
        answer = json.loads(helper.answer())
        first = Runs(([_hydrate(connection)],))
        hydrations = Runs(tuple([_hydrate(connection)] for _ in range(RUNS)))
        shown = sorted(list(row) for row in connection.execute(READ).fetchall())
        assert shown == answer, "Evertide and Spark do not give the same rows"
        timings, recomputed = _follow(place, connection, rows, helper)
    ticks = [float(str(row[0])) for row in connection.execute(TICKS).fetchall()]
    connection.execute("DROP TABLE customer, orders, lineitem CASCADE")
    return [*_followed(timings, recomputed, ticks), *_loaded(first, hydrations, recomputed, bulk)]


def _followed(timings: list[Timings], recomputed: Runs, ticks: list[float]) -> list[Figure]:
    """How long until the view shows a write, and the parts of it."""
    return [
        Figure(name=NAME, unit="ms", target=TARGET_MS, runs=Runs(tuple(t.both for t in timings)),
               baseline_name=RECOMPUTED, baseline=recomputed),
        Figure(name="  INSERT", unit="ms", runs=Runs(tuple(t.inserts for t in timings))),
        Figure(name="  SELECT", unit="ms", runs=Runs(tuple(t.selects for t in timings))),
        Figure(name="  resident tick within it", unit="ms", runs=Runs(in_runs(ticks))),
    ]  # fmt: skip


def _loaded(first: Runs, hydrations: Runs, recomputed: Runs, bulk: list[Runs]) -> list[Figure]:
    """What it takes to have the rows and the view at all."""
    seconds = Runs(tuple([ms / 1_000 for ms in run] for run in recomputed.observed))
    return [
        Figure(name="hydration of that view", unit="s", runs=hydrations,
               baseline_name=RECOMPUTED, baseline=seconds),
        Figure(name="  the first since the start", unit="s", runs=first),
        Figure(name="bulk INSERT of literals", unit="rows/s", runs=bulk[0],
               baseline_name="PostgreSQL, the same text", baseline=bulk[1]),
    ]  # fmt: skip


def _load(place: Place, connection: Connection, rows: Rows) -> list[Runs]:
    """All rows into Evertide and PostgreSQL: rows per second of the largest table in each."""
    theirs = place.connect_postgres()
    observed: tuple[list[float], list[float]] = ([], [])
    for table in COLUMNS:
        for target in (connection, theirs):
            target.execute(create_table(table))
        for batch in batches(rows.tables[table], place.scaled(BATCH)):
            text = insert(table, batch)
            for target, rates in zip((connection, theirs), observed, strict=True):
                elapsed_ms = milliseconds(partial(target.execute, text, prepare=False))
                rates.append(len(batch) / elapsed_ms * 1_000)
    count = len(rows.tables["lineitem"]) // place.scaled(BATCH)
    return [Runs(in_runs(rates[-count:]), higher=True) for rates in observed]


def _write_parquet(rows: Rows, directory: Path) -> None:
    directory.mkdir()
    for table, columns in COLUMNS.items():
        values = zip(*rows.tables[table], strict=True)
        arrays = {c: pa.array(v, pa.int32()) for c, v in zip(columns, values, strict=True)}
        pq.write_table(pa.table(arrays), directory / f"{table}.parquet")


def _hydrate(connection: Connection) -> float:
    """Seconds from CREATE until the view answers. The last one made is kept."""
    connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {VIEW}")
    started = time.perf_counter()
    connection.execute(f"CREATE MATERIALIZED VIEW {VIEW} AS {QUERY}")
    connection.execute(READ).fetchall()
    return time.perf_counter() - started


def _follow(
    place: Place, connection: Connection, rows: Rows, helper: Helper
) -> tuple[list[Timings], Runs]:
    """Runs of both, in turn. Every SELECT must have every row that was written before it."""
    seeds = itertools.count()
    helper.ask(str(place.scaled(RECOMPUTE_WARM_UP)))
    recomputed = []
    timings = []
    for run in range(RUNS):
        recomputed.append(json.loads(helper.ask(str(place.scaled(RECOMPUTATIONS)))))
        if run == 0:
            _run(connection, rows, seeds, WARM_UP)
        timings.append(_run(connection, rows, seeds, place.scaled(REPETITIONS)))
    return timings, Runs(tuple(recomputed))


def _run(
    connection: Connection, rows: Rows, seeds: "itertools.count[int]", repetitions: int
) -> Timings:
    timings = Timings()
    shown = _items(connection.execute(READ).fetchall())
    for _ in range(repetitions):
        added = rows.more_items(NEW_ITEMS, next(seeds))
        text = insert("lineitem", added)
        started = time.perf_counter()
        connection.execute(text, prepare=False)
        inserted = time.perf_counter()
        answer = connection.execute(READ).fetchall()
        ended = time.perf_counter()
        timings.inserts.append((inserted - started) * 1_000)
        timings.selects.append((ended - inserted) * 1_000)
        timings.both.append((ended - started) * 1_000)
        expected = shown + rows.count_in_view(added)
        shown = _items(answer)
        assert shown == expected, f"the view shows {shown} items, not {expected}"
    return timings


def _items(answer: "list[tuple[object, ...]]") -> int:
    return sum(int(str(items)) for _, items, _ in answer)
