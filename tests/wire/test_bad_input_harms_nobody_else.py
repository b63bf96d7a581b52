"""Goal: whatever one client sends, the server goes on serving the others."""

import socket
import struct

import psycopg
import pytest

from tests.support.server import Server


def _serves(server: Server) -> None:
    with server.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("statement", "sqlstate", "position"),
    [
        ("SELEC 1", "42601", "1"),
        ("SELECT 1 +", "42601", "11"),
        ("SELECT * FROM nowhere", "42P01", "15"),
        ("SELECT 1 + 'x'", "22P02", None),
        ("SELECT 1 + true", "42883", "10"),
        ("VACUUM FULL everything", "42601", "1"),
        ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, "54001", None),
    ],
)
def test_mistakes_are_told_with_code_and_position(
    server: Server, statement: str, sqlstate: str, position: str | None
) -> None:
    with server.connect() as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute(statement)
    assert refused.value.sqlstate == sqlstate
    if position is not None:
        assert refused.value.diag.statement_position == position
    _serves(server)


def test_a_statement_of_ten_megabytes_is_answered(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE large_values (t text)")
        connection.execute("INSERT INTO large_values VALUES ('" + "x" * 10_000_000 + "')")
        found = connection.execute("SELECT length(t) FROM large_values").fetchone()
        assert found == (10_000_000,)
    _serves(server)


def _startup(server: Server) -> socket.socket:
    host, port = server.sql[0].rsplit(":", 1)
    connected = socket.create_connection((host, int(port)))
    body = struct.pack("!I", 196608) + b"user\0materialize\0database\0materialize\0\0"
    connected.sendall(struct.pack("!I", len(body) + 4) + body)
    received = b""
    while b"Z\0\0\0\5I" not in received:
        received += connected.recv(65_536)
    return connected


def test_invalid_utf8_is_refused_and_the_session_goes_on(server: Server) -> None:
    with _startup(server) as connected:
        for text in (b"SELECT '\xff\xfe'\0", b"SELECT 41 + 1\0"):
            connected.sendall(b"Q" + struct.pack("!I", len(text) + 4) + text)
        received = b""
        while received.count(b"Z\0\0\0\5I") < 2:
            received += connected.recv(65_536)
    assert b"C22021\0" in received
    assert b"42" in received
    _serves(server)


def test_a_dropped_connection_leaves_others_alone(server: Server) -> None:
    for _ in range(20):
        with _startup(server) as connected:
            connected.sendall(b"Q\0\0\0\x0fSELECT ")  # half a message, then gone
    _serves(server)
