"""Goal: over a damaged part there is an error that names it, and everything else goes on.

Method: a real server; one byte of a stored part is changed under it, and changed back. The table is
large enough for queries over it, and views of it, to be Spark jobs.
"""

from pathlib import Path

import psycopg
import pytest

from tests.support.parts import flip_a_byte
from tests.support.server import Server, eventually, running_server

ROWS = 600_000


@pytest.mark.slow
def test_a_damaged_part_is_an_error_and_nothing_worse(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, connect(server) as connection:
        connection.execute("CREATE TABLE small (a int)")
        connection.execute("INSERT INTO small VALUES (1)")
        connection.execute("CREATE MATERIALIZED VIEW small_sum AS SELECT sum(a) FROM small")
        connection.execute("CREATE TABLE large (a bigint, b text)")
        connection.execute(
            f"INSERT INTO large SELECT g, 'row ' || g FROM generate_series(1, {ROWS}) g"
        )
        eventually(lambda: "spark is up" in server.log_text())
        assert total(connection, "large") == ROWS
        processes = sorted(server.pids_of("adapter") + server.pids_of("replica"))

        damaged = max((tmp_path / "data").rglob("*.parquet"), key=lambda path: path.stat().st_size)
        sound = damaged.read_bytes()
        flip_a_byte(damaged)
        for _ in range(2):
            with pytest.raises(psycopg.Error) as refused:
                total(connection, "large")
            assert refused.value.sqlstate == "XX001", refused.value
            assert damaged.stem in str(refused.value)
            assert "shard" in str(refused.value)
            everything_else_goes_on(connection)

        connection.execute("CREATE MATERIALIZED VIEW large_max AS SELECT max(a) m FROM large")
        connection.execute("SET statement_timeout = '5s'")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT m FROM large_max")
        connection.execute("SET statement_timeout = '60s'")
        everything_else_goes_on(connection)
        eventually(lambda: damaged.stem in server.log_text())

        damaged.write_bytes(sound)
        assert total(connection, "large") == ROWS
        assert connection.execute("SELECT m FROM large_max").fetchall() == [(ROWS,)]
        assert sorted(server.pids_of("adapter") + server.pids_of("replica")) == processes


def connect(server: Server) -> "psycopg.Connection[tuple]":
    return server.connect(options="-c statement_timeout=60s")


def total(connection: "psycopg.Connection[tuple]", table: str) -> int:
    (row,) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(row[0])


def everything_else_goes_on(connection: "psycopg.Connection[tuple]") -> None:
    before = total(connection, "small")
    connection.execute("INSERT INTO small VALUES (1)")
    assert total(connection, "small") == before + 1
    assert connection.execute("SELECT * FROM small_sum").fetchall() == [(before + 1,)]
