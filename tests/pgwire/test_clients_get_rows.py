"""Real clients connect, ask, and get the values they would get from PostgreSQL."""

import subprocess
from collections.abc import Sequence

import asyncpg
import psycopg
import psycopg2
import pytest

from evertide.adapter.client import CommandResponse, Response, RowsResponse
from evertide.vocab.datum import Datum
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import BOOL, FLOAT8, INT4, INT8, TEXT
from tests.pgwire.scripted import Line, RunningServer, ScriptedSession
from tests.support.postgres import PSQL

SHAPE = relation_desc(("id", INT8), ("name", TEXT), ("share", FLOAT8), ("open", BOOL))
ROWS = [(1, "eins", 0.5, True), (-2, "zwei ✓", None, False), (3, None, 1e300, None)]


@pytest.fixture(autouse=True)
def _script(server: RunningServer) -> None:
    server.say("SELECT * FROM t", RowsResponse(SHAPE, ROWS))
    server.say("INSERT INTO t VALUES (1)", CommandResponse("INSERT 0 1"))
    server.factory.script["SELECT $1, $2"] = echo_line(("n", INT4), ("t", TEXT))


def echo_line(*columns: tuple[str, object]) -> Line:
    """A statement that answers with its parameters."""
    desc: RelationDesc = relation_desc(*columns)  # type: ignore[arg-type]

    async def echo(_session: ScriptedSession, parameters: Sequence[Datum]) -> Response:
        return RowsResponse(desc, [tuple(parameters)])

    return Line(echo, desc.types, desc)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg(server: RunningServer, binary: bool) -> None:
    with psycopg.connect(server.dsn) as connection:
        cursor = connection.execute("SELECT * FROM t", binary=binary)
        assert cursor.fetchall() == ROWS
        assert [column.name for column in cursor.description or []] == list(SHAPE.names)
        assert cursor.statusmessage == "SELECT 3"
        cursor = connection.execute("SELECT %s, %s", (7, "sieben"), binary=binary)
        assert cursor.fetchall() == [(7, "sieben")]
        assert connection.execute("INSERT INTO t VALUES (1)").rowcount == 1


def test_psycopg_in_a_pipeline(server: RunningServer) -> None:
    with psycopg.connect(server.dsn) as connection, connection.pipeline():
        cursors = [connection.execute("SELECT %s, %s", (n, str(n))) for n in range(500)]
        assert [cursor.fetchone() for cursor in cursors] == [(n, str(n)) for n in range(500)]


def test_psycopg_prepares_after_some_runs(server: RunningServer) -> None:
    with psycopg.connect(server.dsn, prepare_threshold=2) as connection:
        for n in range(10):
            assert connection.execute("SELECT %s, %s", (n, "x")).fetchone() == (n, "x")
    assert server.last_session.texts.count("SELECT $1, $2") < 10


def test_psycopg2(server: RunningServer) -> None:
    connection = psycopg2.connect(server.dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM t")
        assert cursor.fetchall() == ROWS
        cursor.execute("INSERT INTO t VALUES (1)")
        assert cursor.statusmessage == "INSERT 0 1"
    connection.close()
    assert server.last_session.closed.wait(5)


async def test_asyncpg(server: RunningServer) -> None:
    connection = await asyncpg.connect(host=server.host, port=server.port, user="u", ssl=False)
    try:
        assert [tuple(row) for row in await connection.fetch("SELECT * FROM t")] == ROWS
        assert tuple(await connection.fetchrow("SELECT $1, $2", 7, None)) == (7, None)
        assert await connection.execute("INSERT INTO t VALUES (1)") == "INSERT 0 1"
    finally:
        await connection.close()


def test_psql(server: RunningServer) -> None:
    command = [str(PSQL), "-X", "-A", "-t", server.dsn, "-c", "SELECT * FROM t"]
    output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    assert output == "1|eins|0.5|t\n-2|zwei ✓||f\n3||1e+300|\n"


def test_the_startup_parameters_reach_the_session(server: RunningServer) -> None:
    options = "--welcome_message=off"
    with psycopg.connect(server.dsn, options=options, application_name="app") as connection:
        assert connection.info.parameter_status("mz_version") == "v0.130.0 (scripted)"
    opened_with = server.last_session.opened_with
    assert opened_with["user"] == "tester"
    assert opened_with["database"] == "test"
    assert opened_with["options"] == options
    assert opened_with["application_name"] == "app"
    assert server.last_session.internal is False
