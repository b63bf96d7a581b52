"""Goal: clients that have proved nothing cannot keep operators out, nor make the server keep much.

Method: a real server with few places; its inbox fed by hand.
"""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from evertide.adapter.client import RowsResponse
from evertide.pgwire import backends
from evertide.pgwire.backends import Limits
from evertide.pgwire.channel import Channel
from evertide.pgwire.codec import Decoder
from evertide.pgwire.inbox import MAX_STRANGER_BYTES, MAX_STRANGER_MESSAGES, Inbox
from evertide.pgwire.messages import BrokenStream
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.scram import make_verifier
from evertide.vocab.sql_type import INT4
from tests.pgwire.raw import RawClient, message, query, startup
from tests.pgwire.scripted import RunningServer, running_server

ONE = RowsResponse(relation_desc(("one", INT4)), [(1,)])


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RunningServer, str]]:
    """A server with room for two clients and three sockets, and the address of operators."""
    monkeypatch.setattr(backends, "_SPARE_SOCKETS", 1)
    with running_server(limits=Limits(max_connections=2)) as server:
        server.say("SELECT 1", ONE)
        found: list[tuple[str, int]] = []

        async def listen() -> None:
            found.append(await server.server.start("127.0.0.1", 0, server.factory, internal=True))

        server.run(listen())
        ((host, port),) = found
        yield server, f"host={host} port={port} user=mz_system dbname=test sslmode=disable"


def asks(dsn: str) -> bool:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def test_silent_sockets_do_not_shut_operators_out(crowded: tuple[RunningServer, str]) -> None:
    server, internal = crowded
    silent = [RawClient(server) for _ in range(3)]
    try:
        with RawClient(server) as one_more:
            assert one_more.until_closed() == [], "there is no place left"
        assert asks(internal)
    finally:
        for client in silent:
            client.socket.close()


def test_operators_take_no_place_of_a_client(crowded: tuple[RunningServer, str]) -> None:
    server, internal = crowded
    operators = [psycopg.connect(internal) for _ in range(4)]
    clients = [psycopg.connect(server.dsn) for _ in range(2)]
    for connection in (*operators, *clients):
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="too many clients"):
        psycopg.connect(server.dsn)
    for connection in (*operators, *clients):
        connection.close()


def test_operators_have_a_bound_too(
    crowded: tuple[RunningServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, internal = crowded
    monkeypatch.setattr(backends, "_INTERNAL_SOCKETS", 1)
    with psycopg.connect(internal):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(internal)
        assert asks(server.dsn)
    for _ in range(50):
        try:
            assert asks(internal), "places are given back"
        except psycopg.OperationalError:
            continue
        break
    else:
        pytest.fail("the place was not given back")


def test_who_floods_before_the_proof_is_refused() -> None:
    with running_server(passwords=True) as server:
        server.say("SELECT 1", ONE)
        server.factory.verifiers["tester"] = make_verifier("open sesame")
        flood = message(b"Q", b"x" * 8_000 + b"\0") * 100
        with RawClient(server) as client:
            client.send(startup(user="tester"))
            assert client.reply().tag == b"R"
            client.send(flood)
            told = client.until_closed()[-1].fields
            assert (told["S"], told["C"]) == ("FATAL", "08P01")
        assert server.factory.sessions == []


def test_some_messages_may_be_sent_ahead(crowded: tuple[RunningServer, str]) -> None:
    server, _ = crowded
    with RawClient(server) as client:
        client.send(startup(user="u"), *[query("SELECT 1")] * 50)
        for _ in range(51):
            client.until_ready()


@pytest.mark.parametrize(
    "pieces",
    [
        [message(b"p", b"x" * 9_000)] * 10,
        [message(b"p", b"x" * 9_000) * 30],
        [message(b"p") * (MAX_STRANGER_MESSAGES + 1)],
        [message(b"p")] * (MAX_STRANGER_MESSAGES + 1),
    ],
)
async def test_what_a_stranger_sends_is_not_kept(pieces: list[bytes]) -> None:
    inbox = Inbox(Channel(drain_timeout_s=1), Decoder())
    inbox.feed(startup(user="u"))
    most = 0
    for piece in pieces:
        inbox.feed(piece)
        kept = [one for one in inbox._messages if not isinstance(one, BrokenStream)]
        most = max(most, sum(len(getattr(one, "payload", b"")) for one in kept))
        assert len(kept) <= MAX_STRANGER_MESSAGES + 1
    assert most <= MAX_STRANGER_BYTES
    async with asyncio.timeout(5):
        assert isinstance(await inbox.next_message(), BrokenStream)


async def test_a_client_with_a_session_sends_ahead_what_it_likes() -> None:
    inbox = Inbox(Channel(drain_timeout_s=1), Decoder())
    inbox.feed(startup(user="u"))
    await inbox.next_message()
    inbox.let_in()
    inbox.feed(query("x" * 100_000))
    inbox.feed(query("SELECT 1") * 500)
    assert len(inbox._messages) == 501
