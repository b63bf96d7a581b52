"""COPY ... TO STDOUT in the text format, as PostgreSQL writes it."""

import io
import struct
import subprocess

import psycopg
import psycopg2
import pytest

from evertide.adapter.client import CopyOutResponse
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import BOOL, BYTEA, INT4, TEXT
from tests.pgwire.raw import SYNC, RawClient, bind, describe, execute, parse, query, tags
from tests.pgwire.scripted import RunningServer
from tests.support.postgres import PSQL

SHAPE = relation_desc(("n", INT4), ("t", TEXT), ("b", BOOL), ("y", BYTEA))
ROWS = [
    (1, "plain", True, b"\x00\xff"),
    (2, "tab\tline\nreturn\rback\\slash", False, b""),
    (None, None, None, None),
    (3, "\b\f\v", None, b"\\"),
    (4, "\\N", None, None),
    (5, "", None, None),
]


@pytest.fixture(autouse=True)
def _script(server: RunningServer) -> None:
    server.say("COPY t TO STDOUT", CopyOutResponse(SHAPE, ROWS))


def expected_from(dsn: str) -> bytes:
    """What PostgreSQL itself writes for the same rows."""
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TEMP TABLE t (n int, t text, b bool, y bytea)")
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", ROWS)
        with connection.cursor().copy("COPY t TO STDOUT") as copy:
            return b"".join(bytes(block) for block in copy)


def test_psycopg_gets_the_bytes_postgres_writes(server: RunningServer, postgres_dsn: str) -> None:
    with psycopg.connect(server.dsn) as connection:
        cursor = connection.cursor()
        with cursor.copy("COPY t TO STDOUT") as copy:
            assert b"".join(bytes(block) for block in copy) == expected_from(postgres_dsn)
        with cursor.copy("COPY t TO STDOUT") as copy:
            copy.set_types(["int4", "text", "bool", "bytea"])
            assert list(copy.rows()) == ROWS


def test_both_protocols_frame_it_alike(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        simple = client.ask(query("COPY t TO STDOUT"))
        assert tags(simple) == "H" + "d" * len(ROWS) + "cCZ"
        assert simple[0].body == b"\0" + struct.pack("!h4h", 4, 0, 0, 0, 0)
        assert simple[-2].body == b"COPY 6\0"
        extended = client.ask(parse("COPY t TO STDOUT"), bind(), describe(b"P"), execute(), SYNC)
        assert tags(extended[:3]) == "12n"
        assert extended[3:] == simple


def test_psycopg2(server: RunningServer) -> None:
    connection = psycopg2.connect(server.dsn)
    with connection, connection.cursor() as cursor:
        target = io.BytesIO()
        cursor.copy_expert("COPY t TO STDOUT", target)
        assert target.getvalue().count(b"\n") == len(ROWS)
    connection.close()


def test_psql(server: RunningServer) -> None:
    command = [str(PSQL), "-X", server.dsn, "-c", "COPY t TO STDOUT"]
    output = subprocess.run(command, capture_output=True, timeout=30, check=True).stdout
    assert output.startswith(b"1\tplain\tt\t\\\\x00ff\n2\ttab\\tline\\n")
