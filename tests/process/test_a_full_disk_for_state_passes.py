"""Goal: without room for what a replica keeps beside the stores, views are late or as before, never
wrong, say why, and go on once there is room.

Method: the directory for temporary files, where state lies, is a small file system, which is filled
with ballast. Few megabytes of state may be in memory, so that it wants to be written all the time.
"""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from evertide.spark.arrangements.memory import MEMORY_VARIABLE
from tests.support.fault_injection import full, mounting, small_disk
from tests.support.server import Server, eventually, running_server

Connection = psycopg.Connection[tuple]
PADDED = 2_000
NUMBERS = itertools.count()
QUERY = "SELECT t.k, count(*) AS n, max(t.pad) AS pad FROM t JOIN u ON t.k = u.k GROUP BY t.k"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """For what a test opens by itself, because it may have to run elsewhere (see mounting)."""
    with ExitStack() as opened:
        yield opened


def started(stack: ExitStack, directory: Path, engine: str) -> tuple[Server, Path]:
    # Sockets lie there: their names may not be long.
    disk = stack.enter_context(small_disk(directory.parent / f"d{next(NUMBERS)}", 256))
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setenv("TMPDIR", str(disk))
    patch.setenv(MEMORY_VARIABLE, "2")
    server = stack.enter_context(running_server(directory / "data", ["--tick-engine", engine]))
    return server, disk


def insert(connection: Connection, first: int, count: int) -> None:
    connection.execute(
        f"INSERT INTO t SELECT i % 50, repeat('p', {PADDED}) || i::text"
        f" FROM generate_series({first}, {first + count - 1}) AS i"
    )


def check(connection: Connection, view: str) -> None:
    found = connection.execute(f"SELECT * FROM {view} ORDER BY k").fetchall()
    assert found == connection.execute(f"{QUERY} ORDER BY t.k").fetchall()


def reason(connection: Connection, name: str) -> str:
    rows = connection.execute(
        "SELECT h.reason FROM mz_internal.mz_hydration_statuses h JOIN mz_catalog.mz_objects o"
        " ON o.id = h.object_id WHERE o.name = %s AND h.reason IS NOT NULL",
        (name,),
    ).fetchall()
    return " ".join(str(row[0]) for row in rows)


def untroubled(connection: Connection, name: str) -> None:
    """Statuses are told from time to time, so the last trouble may still be shown for a while."""
    eventually(lambda: not reason(connection, name))


@mounting
def test_state_that_cannot_be_written_stays_in_memory(tmp_path: Path, stack: ExitStack) -> None:
    server, disk = started(stack, tmp_path, "auto")
    connection = stack.enter_context(server.connect())
    connection.execute("CREATE TABLE t (k int, pad text)")
    connection.execute("CREATE TABLE u (k int)")
    connection.execute("INSERT INTO u SELECT i FROM generate_series(0, 20) AS i")
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    eventually(lambda: "resident task is up" in server.log_text(), seconds=120)
    insert(connection, 0, 3_000)
    check(connection, "v")
    with full(disk):
        for number in range(4):
            insert(connection, 10_000 * number, 1_000)
            check(connection, "v")
        eventually(lambda: "merge failed" in server.log_text())
        connection.execute(f"CREATE MATERIALIZED VIEW late AS {QUERY}")
        connection.execute("DELETE FROM t WHERE k = 3")
        check(connection, "v")
    connection.execute("DELETE FROM t WHERE k = 4")
    for view in ("v", "late"):
        check(connection, view)
    untroubled(connection, "late")
    assert "dataflow stopped" not in server.log_text()


@mounting
def test_a_tick_that_finds_no_room_is_done_later(tmp_path: Path, stack: ExitStack) -> None:
    """As a job of Spark, a tick writes files whatever the memory is."""
    server, disk = started(stack, tmp_path, "spark")
    connection = stack.enter_context(server.connect())
    connection.execute("SET statement_timeout = '120s'")
    connection.execute("CREATE TABLE t (k int, pad text)")
    connection.execute("CREATE TABLE u (k int)")
    connection.execute("INSERT INTO u VALUES (1), (2)")
    insert(connection, 0, 100)
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    check(connection, "v")
    with full(disk):
        insert(connection, 100, 100)
        eventually(lambda: reason(connection, "v"), seconds=120)
        assert "up to date failed" in server.log_text()
        connection.execute(f"CREATE MATERIALIZED VIEW late AS {QUERY}")
        eventually(lambda: reason(connection, "late"), seconds=120)
        found = connection.execute("SELECT count(*) FROM t").fetchall()
        assert found == [(200,)]
    for view in ("v", "late"):
        check(connection, view)
        untroubled(connection, view)
    assert "dataflow stopped" not in server.log_text()
