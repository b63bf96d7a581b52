"""Goal: what a view was to show or hide later is not lost with the replica that knew it."""

import os
import signal
from pathlib import Path

import psycopg
import pytest

from tests.support.server import eventually, running_server

Connection = psycopg.Connection[tuple[object, ...]]


def seen(connection: Connection) -> tuple[int, list[int]]:
    found = connection.execute(
        "SELECT mz_now()::text, coalesce(string_agg(id::text, ',' ORDER BY id::text), '') FROM v"
    ).fetchone()
    assert found is not None
    return int(str(found[0])), [int(part) for part in str(found[1]).split(",") if part]


def test_kill_9_between_a_row_s_coming_and_going(tmp_path: Path) -> None:
    """Method: of three rows one is there, one comes and one goes while no replica lives."""
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (id int, valid_from bigint, valid_to bigint)")
        connection.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM t"
            " WHERE mz_now() >= valid_from AND mz_now() < valid_to"
        )
        connection.execute("INSERT INTO t VALUES (0, 0, 0)")  # from here on there is a time
        start = seen(connection)[0]
        stays = {
            1: (0, start + 2_000),
            2: (start + 2_000, start + 900_000),
            3: (start, start + 900_000),
        }
        for number, (first, last) in stays.items():
            connection.execute("INSERT INTO t VALUES (%s, %s, %s)", (number, first, last))
        assert 3 in seen(connection)[1]
        (replica,) = server.pids_of("replica")
        os.kill(replica, signal.SIGKILL)

        def the_second_has_come() -> bool:
            at, found = seen(connection)
            assert found == [n for n, (first, last) in stays.items() if first <= at < last]
            return found == [2, 3]

        eventually(the_second_has_come, seconds=120, pause=0.05)
        assert server.pids_of("replica") != [replica]


def read_for_ever(connection: Connection, relation: str) -> None:
    """Until the frozen replica's last word is too old."""
    while True:
        connection.execute(f"SELECT * FROM {relation}")


def test_nobody_takes_such_a_view_for_still(tmp_path: Path) -> None:
    """Method: its replica is frozen; a reader must wait rather than see rows whose time is over."""
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (id int, valid_to bigint)")
        connection.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() < valid_to"
        )
        connection.execute("INSERT INTO t VALUES (0, 0)")  # from here on there is a time
        connection.execute("INSERT INTO t VALUES (1, %s)", (seen(connection)[0] + 1_500,))
        connection.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v")
        assert connection.execute("SELECT n FROM w").fetchone() is not None
        (replica,) = server.pids_of("replica")
        os.kill(replica, signal.SIGSTOP)
        try:
            connection.execute("SET statement_timeout = '3s'")
            for relation in ("v", "w"):
                with pytest.raises(psycopg.errors.QueryCanceled):
                    read_for_ever(connection, relation)
        finally:
            os.kill(replica, signal.SIGCONT)
        connection.execute("SET statement_timeout = '60s'")
        eventually(lambda: seen(connection)[1] == [], seconds=60, pause=0.05)
        assert connection.execute("SELECT n FROM w").fetchone() == (0,)
