"""What clients ask for most: keys by prepared statements, plans, many rows out, many rows in."""

import itertools
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from bench.figure import RUNS, Figure, Runs, alternating
from bench.place import Place
from tests.support.postgres import PGBENCH

CONNECTIONS: Final = 8
KEYS: Final = 10_000
LOOKUP_SECONDS: Final = 5
LOOKUPS_TARGET: Final = 5_000.0
# PostgreSQL answers at most so many times as often.
LOOKUPS_SHARE: Final = 6
PLANS: Final = 60
PLAN_TARGET_MS: Final = 5.0
ROWS_OUT: Final = 100_000
ROWS_OUT_TARGET: Final = 300_000.0
ROWS_IN: Final = 1_000_000
ROWS_IN_TARGET: Final = 150_000.0
BLOCK_ROWS: Final = 10_000
REPETITIONS_OUT: Final = 5

_SCRIPT: Final = "\\set id random(0, {last})\nSELECT score FROM best_scores WHERE id = :id;\n"
_RATE: Final = re.compile(r"tps = ([0-9.]+)")
_JOIN: Final = """
    SELECT a.id, b.v, c.v, d.v, e.v, count(*) AS n{number}
    FROM joined a JOIN joined b ON a.id = b.id JOIN joined c ON b.id = c.id
    JOIN joined d ON c.id = d.id JOIN joined e ON d.id = e.id JOIN joined f ON e.id = f.id
    WHERE a.v > 3 AND f.v < 100 GROUP BY a.id, b.v, c.v, d.v, e.v ORDER BY n{number} DESC LIMIT 10
"""


def measure(place: Place) -> list[Figure]:
    """Each beside a PostgreSQL whose commits reach the same disk."""
    return [_lookups(place), _plans(place), _rows_out(place), _rows_in(place)]


def _lookups(place: Place) -> Figure:
    """By pgbench: eight connections, each of which has prepared its statement."""
    keys = place.scaled(KEYS)
    ours, theirs = place.connect(), place.connect_postgres()
    values = ", ".join(f"({n}, {n * 7 % 1_000})" for n in range(keys))
    ours.execute("CREATE TABLE best_scores (id int NOT NULL, score int NOT NULL)")
    theirs.execute("CREATE TABLE best_scores (id int PRIMARY KEY, score int NOT NULL)")
    for connection in (ours, theirs):
        connection.execute(f"INSERT INTO best_scores VALUES {values}")
    ours.execute("CREATE INDEX best_scores_by_id ON best_scores (id)")
    plan = str(ours.execute("EXPLAIN SELECT score FROM best_scores WHERE id = 1").fetchall())
    assert "best_scores_by_id" in plan, f"the index is not used: {plan}"
    script = place.directory / "lookups.sql"
    script.write_text(_SCRIPT.format(last=keys - 1))
    seconds = 1 if place.quick else LOOKUP_SECONDS
    host, port = place.server.sql[0].rsplit(":", 1)
    here = {"host": host, "port": port, "user": "materialize", "dbname": "materialize"}
    there = {name: str(value) for name, value in conninfo_to_dict(place.postgres).items()}
    rounds = [[_rate(where, script, seconds) for where in (here, there)] for _ in range(RUNS)]
    found, baseline = (
        Runs(tuple([rate] for rate in rates), higher=True) for rates in zip(*rounds, strict=True)
    )
    ours.execute("DROP TABLE best_scores CASCADE")
    return Figure(
        name=f"prepared lookups, {CONNECTIONS} connections",
        unit="/s",
        runs=found,
        target=max(LOOKUPS_TARGET, baseline.median / LOOKUPS_SHARE),
        baseline_name="PostgreSQL primary key",
        baseline=baseline,
    )


def _rate(where: dict[str, str], script: Path, seconds: int) -> float:
    told = subprocess.run(
        [
            str(PGBENCH), "-n", "-M", "prepared", "-c", str(CONNECTIONS), "-T", str(seconds),
            "-f", str(script), "-h", where["host"], "-p", where.get("port", "5432"),
            "-U", where["user"], where["dbname"],
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = _RATE.search(told.stdout)
    assert found is not None, told.stdout
    return float(found[1])


def _plans(place: Place) -> Figure:
    """A statement that was never seen is parsed and planned; its way there and back counts too."""
    ours, theirs = place.connect(), place.connect_postgres()
    for connection in (ours, theirs):
        connection.execute("CREATE TABLE joined (id int NOT NULL, v int)")
    numbers = itertools.count()
    planned, baseline = alternating(
        place.scaled(PLANS), _preparing(ours, numbers), _preparing(theirs, numbers)
    )
    ours.execute("DROP TABLE joined")
    return Figure(
        name="parse and plan five joins, cold",
        unit="ms",
        runs=planned,
        target=PLAN_TARGET_MS,
        baseline_name="PostgreSQL parse",
        baseline=baseline,
    )


def _preparing(
    connection: "psycopg.Connection[tuple[object, ...]]", numbers: "itertools.count[int]"
) -> Callable[[], object]:
    def prepare() -> None:
        text = _JOIN.format(number=next(numbers)).encode()
        result = connection.pgconn.prepare(b"", text)
        assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, result.error_message

    return prepare


def _rows_out(place: Place) -> Figure:
    """As the client's library takes them, not as Python's objects."""
    count = place.scaled(ROWS_OUT)
    ours, theirs = place.connect(), place.connect_postgres()
    rates = []
    for connection in (ours, theirs):
        connection.execute("CREATE TABLE many (id int8, t text, f float8)")
        _copy(connection, "many", [f"{n}\tname {n}\t{n / 4}\n" for n in range(count)])
        rates.append(_taking(connection, count))
    repetitions = place.scaled(REPETITIONS_OUT, 2)
    taken, baseline = (
        Runs(tuple([count / (ms / 1_000) for ms in run] for run in runs.observed), higher=True)
        for runs in alternating(repetitions, *rates)
    )
    ours.execute("DROP TABLE many")
    return Figure(
        name=f"{count:,} rows out",
        unit="rows/s",
        runs=taken,
        target=ROWS_OUT_TARGET,
        baseline_name="PostgreSQL",
        baseline=baseline,
    )


def _taking(
    connection: "psycopg.Connection[tuple[object, ...]]", count: int
) -> Callable[[], object]:
    def take() -> None:
        result = connection.pgconn.exec_(b"SELECT id, t, f FROM many")
        assert result.ntuples == count, result.error_message

    return take


def _rows_in(place: Place) -> Figure:
    """Durable when COPY is answered, in both."""
    count = place.scaled(ROWS_IN)
    ours, theirs = place.connect(), place.connect_postgres()
    lines = [f"{n}\t{n % 97}\n" for n in range(count)]
    numbers = itertools.count()
    rounds: list[list[float]] = []
    for _ in range(RUNS):
        rounds.append([])
        for connection in (ours, theirs):
            table = f"narrow_{next(numbers)}"
            connection.execute(f"CREATE TABLE {table} (a int8, b int4)")
            started = time.perf_counter()
            _copy(connection, table, lines)
            rounds[-1].append(count / (time.perf_counter() - started))
            connection.execute(f"DROP TABLE {table}")
    copied, baseline = (
        Runs(tuple([rate] for rate in rates), higher=True) for rates in zip(*rounds, strict=True)
    )
    return Figure(
        name=f"COPY FROM of {count:,} rows",
        unit="rows/s",
        runs=copied,
        target=ROWS_IN_TARGET,
        baseline_name="PostgreSQL, fsync on",
        baseline=baseline,
    )


def _copy(
    connection: "psycopg.Connection[tuple[object, ...]]", table: str, lines: list[str]
) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for start in range(0, len(lines), BLOCK_ROWS):
            copy.write("".join(lines[start : start + BLOCK_ROWS]))
