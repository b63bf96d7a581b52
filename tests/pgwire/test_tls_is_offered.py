"""With a certificate the server speaks TLS to those who ask; without, it says no."""

import socket
import ssl
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest

from evertide.adapter.client import RowsResponse
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4, TEXT
from tests.pgwire.raw import SSL_REQUEST, RawClient, startup
from tests.pgwire.scripted import RunningServer, running_server
from tests.support.certificate import server_context, write_certificate


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    return server_context(write_certificate(tmp_path_factory.mktemp("tls")))


@pytest.fixture
def tls_server(context: ssl.SSLContext) -> Iterator[RunningServer]:
    with running_server(tls=context) as server:
        server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
        yield server


def test_psycopg_requires_it(tls_server: RunningServer) -> None:
    with psycopg.connect(tls_server.dsn, sslmode="require") as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with psycopg.connect(tls_server.dsn) as connection:
        assert not connection.pgconn.ssl_in_use


def test_large_answers_go_through_it(tls_server: RunningServer) -> None:
    rows = [(n, "x" * 100) for n in range(20_000)]
    tls_server.say("SELECT big", RowsResponse(relation_desc(("n", INT4), ("t", TEXT)), rows))
    with psycopg.connect(tls_server.dsn, sslmode="require") as connection:
        assert connection.execute("SELECT big").fetchall() == rows


async def test_asyncpg(tls_server: RunningServer) -> None:
    connection = await asyncpg.connect(
        host=tls_server.host, port=tls_server.port, user="u", ssl="require"
    )
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


def test_what_is_sent_in_clear_behind_the_request_is_not_taken(tls_server: RunningServer) -> None:
    with RawClient(tls_server) as client:
        client.send(SSL_REQUEST + startup(user="injected"))
        assert client.reply().fields["C"] == "08P01"
    assert tls_server.factory.sessions == []


def test_a_failed_handshake_harms_nobody_else(tls_server: RunningServer) -> None:
    with RawClient(tls_server) as client:
        client.send(SSL_REQUEST)
        assert client.take(1) == b"S"
        client.send(b"this is no handshake at all")
        client.socket.shutdown(socket.SHUT_WR)
        while client.socket.recv(100):
            pass
    with psycopg.connect(tls_server.dsn, sslmode="require") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
