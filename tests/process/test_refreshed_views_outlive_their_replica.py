"""Goal: between refreshes nobody needs the replica of a view that is refreshed at times, and one
that dies in between misses no refresh."""

import os
import signal
from pathlib import Path
from typing import Any

import psycopg

from tests.support.server import eventually, running_server

Connection = psycopg.Connection[tuple[Any, ...]]


def seen(connection: Connection) -> tuple[int, int]:
    """When a read happened, and how many rows the view counted."""
    found = connection.execute("SELECT mz_now()::text::int8, n FROM v").fetchone()
    assert found is not None
    return found[0], found[1]


def test_a_frozen_replica_keeps_nobody_waiting(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute(
            "CREATE MATERIALIZED VIEW v WITH (REFRESH EVERY '1 day') AS SELECT count(*) AS n FROM t"
        )
        assert seen(connection)[1] == 1
        (replica,) = server.pids_of("replica")
        os.kill(replica, signal.SIGSTOP)
        try:
            connection.execute("SET statement_timeout = '20s'")
            for number in range(5):
                connection.execute("INSERT INTO t VALUES (%s)", (number,))
                assert seen(connection)[1] == 1
        finally:
            os.kill(replica, signal.SIGCONT)


def test_kill_9_between_refreshes(tmp_path: Path) -> None:
    """Method: every read tells its time. Rows are written before the replica dies; the refreshes
    that come while none lives are done by the next one."""
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute(
            "CREATE MATERIALIZED VIEW v WITH (REFRESH EVERY '2 s' ALIGNED TO 0)"
            " AS SELECT count(*) AS n FROM t"
        )
        assert seen(connection)[1] == 1
        connection.execute("INSERT INTO t VALUES (2), (3)")
        (replica,) = server.pids_of("replica")
        os.kill(replica, signal.SIGKILL)
        counts: dict[int, int] = {}

        def refreshed() -> bool:
            at, count = seen(connection)
            refresh = at // 2_000
            assert counts.setdefault(refresh, count) == count, "it changed between two refreshes"
            return count == 3

        eventually(refreshed, seconds=120, pause=0.05)
        assert server.pids_of("replica") != [replica]
        assert sorted(set(counts.values())) in ([1, 3], [3])
