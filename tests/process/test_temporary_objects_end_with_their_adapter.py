"""Goal: a server that is killed leaves nothing of temporary objects in any store.

Method: kill everything while two sessions have some; start again on the same directory.
"""

from pathlib import Path

import psycopg
import pytest

from tests.support.server import running_server


def test_a_killed_server_leaves_nothing_of_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shards = "SELECT count(*) FROM mz_internal.mz_storage_shards"
    objects = "SELECT id, name FROM mz_objects WHERE id LIKE 'u%' ORDER BY id"
    with running_server(data) as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE outlives (a int)")
            listed = connection.execute(objects).fetchall()
            stored = connection.execute(shards).fetchone()
        one, other = server.connect(), server.connect()
        for session in (one, other):
            session.execute("CREATE TEMP TABLE dies (a int)")
            session.execute("INSERT INTO dies VALUES (1)")
            session.execute("CREATE TEMP VIEW dies_too AS SELECT o.a FROM outlives o, dies")
        one.execute("INSERT INTO outlives SELECT a FROM dies")
        server.kill_all()
        for session in (one, other):
            session.close()
    with running_server(data) as server, server.connect() as connection:
        assert connection.execute("SELECT a FROM outlives").fetchall() == [(1,)]
        for name in ("dies", "dies_too"):
            with pytest.raises(psycopg.errors.UndefinedTable):
                connection.execute(f"SELECT * FROM {name}".encode())
        assert connection.execute(objects).fetchall() == listed
        assert connection.execute(shards).fetchone() == stored
        # Nothing keeps what a view of a session that is gone depended upon.
        connection.execute("DROP TABLE outlives")
