"""Goal: a view whose inputs stand still answers at once, whatever its replica does; one whose
inputs moved waits for its replica and is never read stale.

Method: the replica is frozen by SIGSTOP while a client reads and writes.
"""

import os
import signal
from pathlib import Path

import psycopg
import pytest

from tests.support.server import running_server


def test_beside_a_frozen_replica(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE still (a int)")
        connection.execute("CREATE TABLE busy (a int)")
        connection.execute("INSERT INTO still VALUES (1), (2)")
        connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(a) AS s FROM still")
        connection.execute("CREATE MATERIALIZED VIEW doubled AS SELECT s * 2 AS s FROM sums")
        assert connection.execute("SELECT s FROM doubled").fetchone() == (6,)
        (replica,) = server.pids_of("replica")
        os.kill(replica, signal.SIGSTOP)
        try:
            connection.execute("SET statement_timeout = '20s'")
            for number in range(20):
                connection.execute("INSERT INTO busy VALUES (%s)", (number,))
                assert connection.execute("SELECT s FROM sums").fetchone() == (3,)
                assert connection.execute("SELECT s FROM doubled").fetchone() == (6,)
            connection.execute("INSERT INTO still VALUES (10)")
            connection.execute("SET statement_timeout = '500ms'")
            for view in ("sums", "doubled"):
                with pytest.raises(psycopg.errors.QueryCanceled):
                    connection.execute(f"SELECT s FROM {view}")
        finally:
            os.kill(replica, signal.SIGCONT)
        connection.execute("SET statement_timeout = '30s'")
        assert connection.execute("SELECT s FROM doubled").fetchone() == (26,)
        assert connection.execute("SELECT s FROM sums").fetchone() == (13,)
