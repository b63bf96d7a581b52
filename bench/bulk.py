"""Work over much data: what Spark does for it here beside what PySpark takes by itself."""

import json
import time
from functools import partial
from pathlib import Path
from typing import TypeAlias

import psycopg
import pyarrow.parquet as pq

from bench.bulk_rows import CREATE, UPDATE, chunks, copy_text
from bench.figure import RUNS, Figure, Runs, milliseconds
from bench.place import Helper, Place, running_helper
from tests.support.server import Server

ROWS = 9_000_000
FIRST = "SELECT id, txt FROM bulk WHERE k >= 0 ORDER BY txt LIMIT 10"
COUNT = "SELECT k % 100 AS g, count(*) AS n FROM bulk GROUP BY k % 100"
# How many times as long as PySpark by itself it may take.
FIRST_TIMES = 2.0
UPDATED_TIMES = 4.0
GROWTH_MB = 256.0
# A client that reads slowly takes so much, then waits.
SLOW_ROWS = 20_000
SLOW_PAUSE_S = 0.1

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"


def measure(place: Place) -> list[Figure]:
    """Load once, then ask the same of both in turn."""
    rows, directory = place.scaled(ROWS), place.directory / "bulk"
    connection = place.connect()
    connection.execute("SET statement_timeout = '600s'")
    load_s = _load(connection, rows, directory)
    with running_helper("bulk_spark", str(directory)) as helper:
        assert helper.answer() == "ready"
        figures = _beside(connection, helper, FIRST, f"first 10 of {rows:,} rows", FIRST_TIMES)
        figures += _beside(connection, helper, COUNT, f"100 groups of {rows:,} rows", None)
        connection.execute(UPDATE)
        name = "first 10, a tenth updated"
        figures += _beside(connection, helper, FIRST, name, UPDATED_TIMES)
    loaded = Runs(([rows / load_s],), higher=True)
    figures.append(Figure(name="COPY FROM STDIN of those rows", unit="rows/s", runs=loaded))
    figures += _slow_reader(place)
    connection.execute("DROP TABLE bulk CASCADE")
    return figures


def _load(connection: Connection, rows: int, directory: Path) -> float:
    """The rows into a table, and into files for PySpark; seconds for the table."""
    (directory / "rows").mkdir(parents=True)
    connection.execute(CREATE)
    taken_s = 0.0
    for number, chunk in enumerate(chunks(rows)):
        pq.write_table(chunk, directory / "rows" / f"{number:04d}.parquet", compression="none")
        text = copy_text(chunk)
        taken_s += milliseconds(partial(_copy, connection, text)) / 1_000
    return taken_s


def _copy(connection: Connection, text: bytes) -> None:
    with connection.cursor().copy("COPY bulk FROM STDIN") as copy:
        copy.write(text)


def _beside(
    connection: Connection, helper: Helper, query: str, name: str, times: float | None
) -> list[Figure]:
    """The query here and there, run by run in turn; the first here starts what it needs."""
    started_s = milliseconds(lambda: connection.execute(query).fetchall()) / 1_000
    ours, theirs = [], []
    for _ in range(RUNS):
        _, timings = json.loads(helper.ask(json.dumps([query, 1])))
        theirs.append([timings[0] / 1_000])
        ours.append([milliseconds(lambda: connection.execute(query).fetchall()) / 1_000])
    baseline = Runs(tuple(theirs))
    return [
        Figure(
            name=name,
            unit="s",
            runs=Runs(tuple(ours)),
            target=None if times is None else times * baseline.median,
            baseline_name="PySpark by itself",
            baseline=baseline,
        ),
        Figure(name="  the first time", unit="s", runs=Runs(([started_s],))),
    ]


def _slow_reader(place: Place) -> list[Figure]:
    """How much the server's processes grow while a client reads a large result slowly."""
    server = place.server
    connection = place.connect()
    before = _memory_mb(server)
    most = before
    with connection.transaction():
        cursor = connection.cursor(name="slow")
        cursor.itersize = SLOW_ROWS
        cursor.execute("SELECT * FROM bulk")
        for _ in range(20):
            cursor.fetchmany(SLOW_ROWS)
            most = {name: max(most[name], mb) for name, mb in _memory_mb(server).items()}
            time.sleep(SLOW_PAUSE_S)
    return [
        Figure(
            name=f"growth of the {name}, slow SELECT *",
            unit="MB",
            runs=Runs(([most[name] - before[name]],)),
            target=GROWTH_MB,
        )
        for name in before
    ]


def _memory_mb(server: Server) -> dict[str, float]:
    """What the adapter's and the replica's own processes have that nobody else could use."""
    pids = {"adapter": server.pids_of("adapter"), "replica": server.pids_of("replica")}
    return {name: sum(map(_anonymous_mb, found)) for name, found in pids.items()}


def _anonymous_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("RssAnon:"))
    return int(found.split()[1]) / 1024
