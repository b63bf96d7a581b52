"""Whatever one client sends, the others are served."""

import socket
import struct
import time

import psycopg
import pytest

from evertide.adapter.client import RowsResponse
from evertide.pgwire.backends import Limits
from evertide.vocab.errors import InvalidAuthorization
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4, TEXT
from tests.pgwire.raw import (
    GSSENC_REQUEST,
    SSL_REQUEST,
    SYNC,
    RawClient,
    message,
    parse,
    query,
    startup,
    tags,
)
from tests.pgwire.scripted import RunningServer, running_server

ONE = RowsResponse(relation_desc(("one", INT4)), [(1,)])


@pytest.fixture(autouse=True)
def _script(server: RunningServer) -> None:
    server.say("SELECT 1", ONE)


def assert_serves(server: RunningServer) -> None:
    with psycopg.connect(server.dsn) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_of_10_mb_is_fine(server: RunningServer) -> None:
    text = "SELECT '" + "x" * 10_000_000 + "'"
    server.say(text, RowsResponse(relation_desc(("t", TEXT)), [("y" * 10_000_000,)]))
    with psycopg.connect(server.dsn) as connection:
        assert connection.execute(text).fetchone() == ("y" * 10_000_000,)


def test_a_message_of_2_gb_is_refused_before_it_arrives(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        client.send(b"Q" + struct.pack("!i", 2**31 - 1) + b"SELECT")
        replies = client.until_closed()
        assert replies[-1].fields["S"] == "FATAL"
        assert replies[-1].fields["C"] == "08P01"
        assert_serves(server)
    assert server.factory.sessions[0].closed.wait(5)


def test_a_client_still_sending_learns_why_it_is_refused(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        client.send(b"Q" + struct.pack("!i", 100_000_000), b"x" * 5_000_000)
        assert client.reply().fields["C"] == "08P01"


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"a\xc3"])
def test_text_that_is_not_utf8_fails_its_statement_only(server: RunningServer, bad: bytes) -> None:
    with RawClient(server) as client:
        client.start()
        replies = client.ask(message(b"Q", b"SELECT '" + bad + b"'\0"))
        assert tags(replies) == "EZ"
        assert replies[0].fields["C"] == "22021"
        replies = client.ask(message(b"P", b"\0SELECT " + bad + b"\0\0\0"), SYNC)
        assert tags(replies) == "EZ"
        assert replies[0].fields["C"] == "22021"
        assert tags(client.ask(query("SELECT 1"))) == "TDCZ"


def test_a_parameter_may_hold_neither_nul_nor_bad_utf8(server: RunningServer) -> None:
    server.say("SELECT $1", RowsResponse(ONE.desc, ONE.rows), TEXT)
    with RawClient(server) as client:
        client.start()
        for value in (b"a\0b", b"\xff"):
            for code in (0, 1):
                body = b"\0\0" + struct.pack("!hhhi", 1, code, 1, len(value)) + value + b"\0\0"
                replies = client.ask(parse("SELECT $1"), message(b"B", body), SYNC)
                assert replies[1].fields["C"] == "22021"


@pytest.mark.parametrize(
    ("tag", "body"),
    [
        (b"Q", b"SELECT 1"),
        (b"Q", b"SELECT 1\0;\0"),
        (b"P", b"\0SELECT 1\0\0\x02"),
        (b"B", b"\0\0\0\0\0\x01\0\0\0\x09x"),
        (b"B", b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        (b"D", b"Xname\0"),
        (b"E", b"\0\0\0"),
        (b"C", b""),
    ],
)
def test_a_message_that_does_not_hold_together_is_an_error(
    server: RunningServer, tag: bytes, body: bytes
) -> None:
    with RawClient(server) as client:
        client.start()
        replies = client.ask(message(tag, body), b"" if tag == b"Q" else SYNC)
        assert tags(replies) == "EZ"
        assert replies[0].fields["C"] == "08P01"
        assert tags(client.ask(query("SELECT 1"))) == "TDCZ"


def test_an_unknown_message_ends_the_connection(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        client.send(message(b"?", b"x"), query("SELECT 1"))
        replies = client.until_closed()
        assert tags(replies) == "E"
        assert (replies[0].fields["V"], replies[0].fields["C"]) == ("FATAL", "08P01")
    assert_serves(server)


def test_leftovers_of_a_failed_copy_are_ignored(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        leftovers = [message(b"d", b"1\n"), message(b"c"), message(b"f", b"why\0")]
        assert tags(client.ask(*leftovers, query("SELECT 1"))) == "TDCZ"


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x00\x00\x00\x04\x00\x03\x00\x00",
        struct.pack("!ii", 20_000, 3 << 16) + b"x" * 5_000,
        startup(2 << 16, user="old"),
        startup(nobody="x"),
        startup(user="x", replication="database"),
        startup(user="x")[:-1] + b"x",
        SSL_REQUEST + startup(user="injected"),
        GSSENC_REQUEST + b"x",
    ],
)
def test_a_wrong_beginning_is_refused(server: RunningServer, first: bytes) -> None:
    with RawClient(server) as client:
        client.send(first)
        replies = client.until_closed()
        assert tags(replies) == "E"
        assert replies[0].fields["S"] == "FATAL"
        assert replies[0].fields["C"] in ("08P01", "0A000", "28000")
    assert server.factory.sessions == []
    assert_serves(server)


def test_a_refused_session_is_fatal(server: RunningServer) -> None:
    server.factory.refusal = InvalidAuthorization('role "tester" does not exist')
    with pytest.raises(psycopg.OperationalError, match='FATAL:  role "tester" does not exist'):
        psycopg.connect(server.dsn)
    server.factory.refusal = RuntimeError("a bug")
    with pytest.raises(psycopg.OperationalError, match="FATAL:  internal error"):
        psycopg.connect(server.dsn)


def test_encryption_is_declined_and_the_client_goes_on(server: RunningServer) -> None:
    with RawClient(server) as client:
        for ask in (GSSENC_REQUEST, SSL_REQUEST):
            client.send(ask)
            assert client.take(1) == b"N"
        assert client.start()[-1].body == b"I"


def test_a_newer_minor_protocol_is_negotiated_down(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.send(startup((3 << 16) | 2, user="u", **{"_pq_.wish": "1"}))
        replies = client.until_ready()
        assert tags(replies).startswith("vRS")
        assert replies[0].body == struct.pack("!ii", 3 << 16, 1) + b"_pq_.wish\0"
    assert "_pq_.wish" not in server.last_session.opened_with


def test_who_asks_without_reading_has_to_wait(server: RunningServer) -> None:
    """Goal: neither questions nor answers pile up. Method: ask until nothing more goes out."""
    answer = RowsResponse(relation_desc(("t", TEXT)), [("x" * 5_000,)])
    server.say("SELECT padded", answer)
    question = query("SELECT padded" + " " * 5_000)
    flood = question * 10
    with RawClient(server, receive_buffer=4_096) as client:
        client.start()
        client.socket.settimeout(1)
        sent = 0
        try:
            while sent < 100_000_000:
                sent += client.socket.send(flood[sent % len(flood) :])
        except TimeoutError:
            pass  # nothing more goes out
        assert sent < 100_000_000
        assert_serves(server)
        client.socket.settimeout(20)
        for _ in range(sent // len(question)):
            assert tags(client.until_ready()) == "TDCZ"


def test_connections_beyond_the_limit_are_refused_with_a_reason() -> None:
    with running_server(limits=Limits(max_connections=2)) as server:
        server.say("SELECT 1", ONE)
        first, second = psycopg.connect(server.dsn), psycopg.connect(server.dsn)
        with RawClient(server) as client:
            client.send(startup(user="third"))
            told = client.until_closed()[-1].fields
            assert (told["S"], told["C"]) == ("FATAL", "53300")
        second.close()
        assert server.factory.sessions[1].closed.wait(5)
        assert_serves(server)
        first.close()


def test_who_says_nothing_is_disconnected() -> None:
    with running_server(limits=Limits(startup_timeout_s=0.2)) as server:
        server.say("SELECT 1", ONE)
        with RawClient(server) as silent, psycopg.connect(server.dsn) as connection:
            assert silent.until_closed() == []
            time.sleep(0.3)
            assert connection.execute("SELECT 1").fetchone() == (1,), "only starting up is timed"


def test_half_a_message_waits_without_harm(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        whole = query("SELECT 1")
        for byte in whole:
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.send(bytes([byte]))
        assert tags(client.until_ready()) == "TDCZ"
