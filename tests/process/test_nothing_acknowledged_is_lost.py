"""Goal: kill -9 of the whole process tree at any moment loses nothing acknowledged.

Method: writers and DDL run against a real server; at a random moment every process of the tree is
killed; after a restart on the same data every acknowledged row and object is there, and views equal
their queries.
"""

import os
import random
import signal
import threading
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server, eventually, running_server, start_server

pytestmark = pytest.mark.wire


class Writer(threading.Thread):
    """Inserts numbered rows until the server goes; keeps what was acknowledged."""

    def __init__(self, server: Server, start: int) -> None:
        super().__init__()
        self._server = server
        self._next = start
        self.acknowledged: list[int] = []
        self.tables: list[str] = []

    def run(self) -> None:
        try:
            with self._server.connect() as connection:
                while True:
                    self._step(connection)
        except psycopg.Error:
            return  # the server was killed

    def _step(self, connection: "psycopg.Connection[tuple]") -> None:
        number = self._next
        self._next += 1
        connection.execute("INSERT INTO t VALUES (%s, %s)", (number, number % 10))
        self.acknowledged.append(number)
        if number % 25 == 0:
            name = f"made_{number}"
            connection.execute(f"CREATE TABLE {name} (a int)")
            self.tables.append(name)


def _check(server: Server, acknowledged: set[int], tables: set[str]) -> None:
    with server.connect() as connection:
        stored = {row[0] for row in connection.execute("SELECT a FROM t").fetchall()}
        assert acknowledged <= stored
        assert tables <= {row[0] for row in connection.execute("SHOW TABLES").fetchall()}
        view = connection.execute("SELECT * FROM v ORDER BY b").fetchall()
        query = connection.execute("SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY b")
        assert view == query.fetchall()


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_of_the_whole_tree_loses_nothing_acknowledged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: set[int] = set()
    tables: set[str] = set()
    server = start_server(tmp_path / "data")
    try:
        with server.connect() as connection:
            connection.execute("CREATE TABLE t (a int, b int)")
            connection.execute(
                "CREATE MATERIALIZED VIEW v AS SELECT b, count(*), sum(a) FROM t GROUP BY b"
            )
        for _ in range(3):
            writer = Writer(server, start=max(acknowledged, default=0) + 1)
            writer.start()
            writer.join(chance.uniform(0.3, 1.5))
            server.kill_all()
            writer.join(30)
            acknowledged |= set(writer.acknowledged)
            tables |= set(writer.tables)
            server = start_server(tmp_path / "data")
            _check(server, acknowledged, tables)
        assert acknowledged, f"seed {seed} wrote nothing"
    finally:
        server.kill_all()


def test_a_killed_replica_is_started_again_and_resumes(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        assert connection.execute("SELECT n FROM v").fetchone() == (2,)
        replica = eventually(lambda: server.pids_of("replica"))[0]
        os.kill(replica, signal.SIGKILL)
        connection.execute("INSERT INTO t VALUES (3)")
        assert connection.execute("SELECT n FROM v").fetchone() == (3,)
        assert server.pids_of("replica") != [replica]
