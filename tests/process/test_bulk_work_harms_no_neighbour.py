"""Goal: work over much data may die, be given up or be left in the middle; nobody else notices.

Method: one server; its bulk process's JVM is killed under queries and builds, and clients leave
while results are told. A view beside them must follow its table all the time, by the same process.
"""

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server, command_line, descendants_of, eventually, running_server

Connection = psycopg.Connection[tuple]
ROWS = 210_000
FIRST = "SELECT id, txt FROM t WHERE k >= 0 ORDER BY txt DESC, id LIMIT 3"
# Takes some seconds and no memory.
PAIRS = "SELECT count(*) FROM t a JOIN t b ON a.k % 100 = b.k % 100"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("bulk")
    sizes = directory / "sizes.json"
    sizes.write_text(json.dumps({"by_spark": {"hydrate_records": 1}}))
    with running_server(directory / "data", ["--sizes", str(sizes)]) as running:
        with running.connect() as connection:
            connection.execute("CREATE TABLE t (id bigint, k bigint, txt text)")
            with connection.cursor().copy("COPY t FROM STDIN") as copy:
                for n in range(ROWS):
                    copy.write_row((n, n % 1_000, f"{n % 97:03d}-{n}"))
            connection.execute("CREATE TABLE small (a bigint)")
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM small")
            connection.execute("INSERT INTO small VALUES (0)")
            connection.execute("SELECT n FROM v")
        yield running


def bulk_jvms(server: Server) -> dict[int, Path]:
    """The JVMs of bulk processes, and where each of them works."""
    found = {}
    for bulk in server.pids_of("bulk"):
        for pid in descendants_of(bulk):
            where = re.search(r"java\.io\.tmpdir=(\S+?)/spark/tmp", command_line(pid))
            if where is not None:
                found[pid] = Path(where[1])
    return found


@contextmanager
def neighbour_follows(server: Server) -> Iterator[None]:
    """A view beside follows its table, and its replica stays the process that it was."""
    (before,) = server.pids_of("replica")[:1]
    ended, faults = threading.Event(), []

    def follow() -> None:
        with server.connect() as connection:
            while not ended.wait(0.05):
                connection.execute("INSERT INTO small VALUES (1)")
                (counted,) = connection.execute("SELECT count(*) FROM small").fetchall()
                (shown,) = connection.execute("SELECT n FROM v").fetchall()
                if shown[0] < counted[0]:
                    faults.append((shown, counted))

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(60)
    assert not faults
    assert server.pids_of("replica")[:1] == [before]


def kill_a_jvm_soon(server: Server, seen: set[int]) -> int:
    """Kills the first that was not there before and has a job."""

    def at_work() -> list[int]:
        running = bulk_jvms(server)
        return [p for p, where in running.items() if p not in seen and list(where.glob("job-*"))]

    (pid, *_) = eventually(at_work, seconds=120)
    os.kill(pid, signal.SIGKILL)
    seen.add(pid)
    return pid


def test_the_first_rows_of_many(server: Server) -> None:
    with server.connect() as connection, neighbour_follows(server):
        explained = str(connection.execute(f"EXPLAIN {FIRST}").fetchall())
        assert "Spark SQL job on a replica" in explained
        assert f"{ROWS:,} records of about" in explained
        rows = [(n, f"{n % 97:03d}-{n}") for n in range(ROWS)]
        expected = sorted(rows, key=lambda row: row[1], reverse=True)
        assert connection.execute(FIRST).fetchall() == expected[:3]
        last = expected[0][0]
        connection.execute("DELETE FROM t WHERE id = %s", (last,))
        assert connection.execute(FIRST).fetchall() == expected[1:4]
        connection.execute("INSERT INTO t VALUES (%s, %s, %s)", (last, last % 1_000, rows[last][1]))
        with connection.cursor().copy("COPY (SELECT id FROM t) TO STDOUT") as copy:
            assert sorted(int(row[0]) for row in copy.rows()) == list(range(ROWS))
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / (id - 7) FROM t ORDER BY 1 LIMIT 1")


def test_a_query_outlives_one_death_and_is_refused_after_two(server: Server) -> None:
    seen: set[int] = set()
    with server.connect() as connection, neighbour_follows(server):
        killer = threading.Thread(target=kill_a_jvm_soon, args=(server, seen))
        killer.start()
        assert connection.execute(PAIRS).fetchall() == [(ROWS * ROWS // 100,)]
        killer.join()
        assert seen

        def kill_twice() -> None:
            kill_a_jvm_soon(server, seen)
            kill_a_jvm_soon(server, seen)

        killer = threading.Thread(target=kill_twice)
        killer.start()
        with pytest.raises(psycopg.errors.OutOfMemory) as refused:
            connection.execute(PAIRS)
        killer.join()
        assert refused.value.diag.message_hint
        assert len(connection.execute(FIRST).fetchall()) == 3


def test_a_view_is_built_though_its_build_was_killed(server: Server) -> None:
    with server.connect() as connection, neighbour_follows(server):
        connection.execute("CREATE CLUSTER c (SIZE 'by_spark', REPLICATION FACTOR 1)")
        connection.execute(
            "CREATE MATERIALIZED VIEW joined IN CLUSTER c AS"
            " SELECT a.id, b.txt FROM t a JOIN t b ON a.id = b.id WHERE a.k < 500"
        )
        kill_a_jvm_soon(server, set())
        query = "SELECT count(*), min(txt), max(id) FROM joined"
        expected = connection.execute(query.replace("joined", "t") + " WHERE k < 500").fetchall()
        assert connection.execute(query).fetchall() == expected
        connection.execute("DELETE FROM t WHERE id = 3")
        connection.execute("SET cluster = c")
        assert connection.execute("SELECT * FROM joined WHERE id = 3").fetchall() == []
        connection.execute("INSERT INTO t VALUES (3, 3, '003-3')")
        assert connection.execute("SELECT txt FROM joined WHERE id = 3").fetchall() == [("003-3",)]
        connection.execute("DROP CLUSTER c CASCADE")


def test_what_nobody_reads_any_more_is_gone(server: Server) -> None:
    def jobs() -> list[Path]:
        return [job for where in bulk_jvms(server).values() for job in where.glob("job-*")]

    with neighbour_follows(server):
        leaving = server.connect()
        leaving.execute("BEGIN")
        leaving.execute("DECLARE c CURSOR FOR SELECT * FROM t ORDER BY txt")
        assert len(leaving.execute("FETCH 10 FROM c").fetchall()) == 10
        assert jobs(), "the result lies there"
        leaving.close()
        eventually(lambda: not jobs(), seconds=30)
        cancelled = server.connect()
        timer = threading.Timer(1.0, cancelled.cancel)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            cancelled.execute(PAIRS)
        cancelled.close()
        eventually(lambda: not jobs(), seconds=30)
