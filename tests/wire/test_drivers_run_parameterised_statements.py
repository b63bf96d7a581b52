"""Goal: the usual drivers connect and run parameterised statements against a real server."""

import datetime
import decimal
import json
import subprocess
import sys
import uuid
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import pytest

from tests.support.postgres import PSQL
from tests.support.server import Server

NODE_SCRIPT = Path(__file__).parent / "node" / "parameterised.js"
NODE = Path(sys.executable).parent / "node"


def test_psycopg_sends_and_receives_text_and_binary(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE pg3 (a int, b text, c numeric, d timestamptz, e uuid)")
        moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
        row = (1, "it's", decimal.Decimal("12.5"), moment, uuid.UUID(int=7))
        connection.execute("INSERT INTO pg3 VALUES (%s, %s, %s, %s, %s)", row)
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute("SELECT * FROM pg3 WHERE a = %s AND b = %s", (1, "it's"))
            assert cursor.fetchall() == [row]


def test_psycopg_fetches_in_parts_through_a_server_side_cursor(server: Server) -> None:
    with server.connect(autocommit=False) as connection:
        connection.execute("SELECT 1")
        connection.rollback()
        with connection.cursor("parts") as cursor:
            cursor.execute("SELECT column1 FROM (VALUES (1), (2), (3)) AS v ORDER BY 1")
            assert cursor.fetchmany(2) == [(1,), (2,)]
            assert cursor.fetchmany(2) == [(3,)]


async def test_asyncpg_prepares_and_pages(server: Server) -> None:
    connection = await asyncpg.connect(server.dsn())
    try:
        await connection.execute("CREATE TABLE apg (a int8, b text, c float8)")
        await connection.executemany(
            "INSERT INTO apg VALUES ($1, $2, $3)", [(i, f"row {i}", i / 2) for i in range(10)]
        )
        rows = await connection.fetch("SELECT * FROM apg WHERE a < $1 ORDER BY a", 3)
        assert [tuple(row) for row in rows] == [
            (0, "row 0", 0.0), (1, "row 1", 0.5), (2, "row 2", 1.0),
        ]  # fmt: skip
        async with connection.transaction():
            pages = [row["a"] async for row in connection.cursor("SELECT a FROM apg ORDER BY a",
                                                                 prefetch=3)]  # fmt: skip
        assert pages == list(range(10))
    finally:
        await connection.close()


def test_psycopg2_runs_in_transactions(server: Server) -> None:
    connection = psycopg2.connect(server.dsn())
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE pg2 (a int, b text)")
        connection.autocommit = False
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO pg2 VALUES (%s, %s)", (1, "one"))
            cursor.execute("INSERT INTO pg2 VALUES (%s, %s)", (2, "two"))
        connection.commit()
        with connection.cursor() as cursor:
            cursor.execute("SELECT b FROM pg2 WHERE a = %s", (2,))
            assert cursor.fetchall() == [("two",)]
        connection.rollback()
    finally:
        connection.close()


def test_node_pg_runs_parameterised_statements(server: Server) -> None:
    answer = subprocess.run(
        [str(NODE), str(NODE_SCRIPT), server.dsn()],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {
        "rows": [{"a": 2, "b": "zwei"}],
        "count": 1,
        "error": "22012",
    }


def test_psql_lists_tables_and_views(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE shown (a int NOT NULL, b text)")
        connection.execute("CREATE VIEW shown_view AS SELECT b FROM shown")
    listed = _psql(server, r"\dt")
    assert "shown" in listed
    assert "shown_view" not in listed
    assert "shown_view" in _psql(server, r"\dv")
    everything = _psql(server, r"\d")
    assert "shown_view" in everything
    assert "materialize" in everything, "the owner's name"
    assert "mz_catalog" not in everything, "users' objects only"


def _psql(server: Server, command: str) -> str:
    answer = subprocess.run(
        [str(PSQL), "-X", "-v", "ON_ERROR_STOP=1", server.dsn(), "-c", command],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_failing_statement_reports_its_position(server: Server) -> None:
    with server.connect() as connection, pytest.raises(psycopg.errors.UndefinedColumn) as refused:
        connection.execute("SELECT 1 + nowhere FROM (VALUES (1)) AS v")
    assert refused.value.diag.statement_position == "12"
