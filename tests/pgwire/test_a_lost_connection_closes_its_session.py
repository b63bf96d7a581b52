"""However a connection ends, its session ends with it."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from evertide.adapter.client import CommandResponse, Response
from evertide.pgwire.backends import Limits
from evertide.vocab.datum import Datum
from tests.pgwire.raw import TERMINATE, RawClient, query
from tests.pgwire.scripted import RunningServer, ScriptedSession, running_server
from tests.support.server import eventually


def test_a_polite_end(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.start()
        client.send(TERMINATE)
        assert client.until_closed() == []
        assert server.last_session.closed.wait(5)


def test_a_closed_socket_cancels_the_running_statement(server: RunningServer) -> None:
    started, ended = threading.Event(), threading.Event()

    async def sleep(session: ScriptedSession, _parameters: Sequence[Datum]) -> Response:
        started.set()
        try:
            return await session.wait_for_cancel()
        finally:
            ended.set()

    server.say("SELECT sleep", sleep)
    with RawClient(server) as client:
        client.start()
        client.send(query("SELECT sleep"))
        assert started.wait(5)
    assert ended.wait(5)
    assert server.last_session.closed.wait(5)


def test_a_statement_that_does_not_hear_its_cancel_is_stopped() -> None:
    started, stopped = threading.Event(), threading.Event()

    async def deaf(_session: ScriptedSession, _parameters: Sequence[Datum]) -> Response:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()
        raise AssertionError

    with running_server(limits=Limits(grace_s=0.2)) as server:
        server.say("SELECT deaf", deaf)
        with RawClient(server) as client:
            client.start()
            client.send(query("SELECT deaf"))
            assert started.wait(5)
        assert stopped.wait(5)
        assert server.last_session.closed.wait(5)


def test_queued_messages_of_a_lost_client_do_not_run(server: RunningServer) -> None:
    ran: list[int] = []
    started = threading.Event()

    async def sleep(session: ScriptedSession, _parameters: Sequence[Datum]) -> Response:
        ran.append(1)
        started.set()
        return await session.wait_for_cancel()

    server.say("SELECT sleep", sleep)
    with RawClient(server) as client:
        client.start()
        client.send(query("SELECT sleep") * 3)
        assert started.wait(5)
    assert server.last_session.closed.wait(5)
    assert ran == [1]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_stopping_server_says_so(busy: bool) -> None:
    started = threading.Event()

    async def sleep(session: ScriptedSession, _parameters: Sequence[Datum]) -> Response:
        started.set()
        return await session.wait_for_cancel()

    with running_server() as server:
        server.say("SELECT sleep", sleep)
        with RawClient(server) as client:
            client.start()
            if busy:
                client.send(query("SELECT sleep"))
                assert started.wait(5)
            server.run(server.server.stop())
            told = client.until_closed()[-1].fields
            assert (told["S"], told["C"]) == ("FATAL", "57P01")
            assert server.last_session.closed.is_set()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.dsn)


def test_who_is_silent_for_too_long_is_told_why_and_gone(server: RunningServer) -> None:
    async def limit(session: ScriptedSession, _parameters: Sequence[Datum]) -> Response:
        session.names.idle_limit_s = 0.05
        return CommandResponse("BEGIN")

    server.say("SELECT open", limit)
    with RawClient(server) as client:
        client.start()
        client.send(query("SELECT open"))
        *_, last = client.until_closed()
        assert last.tag == b"E"
        assert b"C25P03" in last.body
        assert b"FATAL" in last.body
        assert server.last_session.closed.wait(5)


def test_a_client_that_vanished_is_asked_for(server: RunningServer) -> None:
    """By the system, for a quiet subscription never writes."""
    with RawClient(server) as client:
        client.start()
        ports = (server.port, client.socket.getsockname()[1])
        ends = [f"0100007F:{port:04X}" for port in ports]

        def is_kept_alive() -> bool:
            sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
            (timer,) = [fields[5] for fields in sockets if fields[1:3] == ends]
            return timer.startswith("02:")

        eventually(is_kept_alive)
