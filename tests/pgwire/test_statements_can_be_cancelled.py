"""A cancel request with the right key ends the running statement, and only that."""

import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import psycopg
import pytest

from evertide.adapter.client import Response, RowsResponse
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from tests.pgwire.raw import RawClient, query, tags
from tests.pgwire.scripted import RunningServer, ScriptedSession
from tests.support.postgres import PSQL


@pytest.fixture
def started(server: RunningServer) -> threading.Event:
    """Set when the sleeping statement runs."""
    event = threading.Event()

    async def sleep(session: ScriptedSession, _parameters: Sequence[Datum]) -> Response:
        event.set()
        return await session.wait_for_cancel()

    server.say("SELECT sleep", sleep)
    server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
    return event


def test_the_running_statement_ends_with_57014(
    server: RunningServer, started: threading.Event
) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:

        def cancel() -> None:
            started.wait(10)
            connection.cancel_safe()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT sleep")
        thread.join()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_ctrl_c_in_psql(server: RunningServer, started: threading.Event) -> None:
    process = subprocess.Popen(
        [PSQL, "-X", server.dsn, "-c", "SELECT sleep"], stderr=subprocess.PIPE, text=True
    )
    assert started.wait(10)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert "canceling statement due to user request" in told


def test_a_wrong_key_does_nothing(server: RunningServer, started: threading.Event) -> None:
    with RawClient(server) as client:
        key = next(reply.body for reply in client.start() if reply.tag == b"K")
        client.send(query("SELECT sleep"))
        assert started.wait(10)
        pid, secret = struct.unpack("!II", key)
        for wrong in [(pid, secret ^ 1), (pid + 1, secret), (0, 0)]:
            send_cancel(server, struct.pack("!II", *wrong))
        time.sleep(0.1)
        assert not server.last_session.cancelled.is_set()
        send_cancel(server, key)
        assert tags(client.until_ready()) == "EZ"


def send_cancel(server: RunningServer, key: bytes) -> None:
    with socket.create_connection((server.host, server.port), timeout=10) as other:
        other.sendall(struct.pack("!ii", 16, (1234 << 16) | 5678) + key)
        assert other.recv(1) == b"", "no answer, so that a guess learns nothing"


def test_keys_differ(server: RunningServer) -> None:
    keys = set()
    for _ in range(20):
        with RawClient(server) as client:
            keys |= {reply.body for reply in client.start() if reply.tag == b"K"}
    assert len({key[4:] for key in keys}) == 20


def test_sending_rows_can_be_cancelled(server: RunningServer) -> None:
    rows = [(n,) for n in range(1_000_000)]
    server.say("SELECT big", RowsResponse(relation_desc(("n", INT4)), rows))
    with RawClient(server, receive_buffer=4_096) as client:
        key = next(reply.body for reply in client.start() if reply.tag == b"K")
        client.send(query("SELECT big"))
        assert client.reply().tag == b"T"
        time.sleep(0.5)
        send_cancel(server, key)
        replies = client.until_ready()
        assert tags(replies[-2:]) == "EZ"
        assert replies[-2].fields["C"] == "57014"
        assert len(replies) < len(rows)
        assert tags(client.ask(query("BEGIN"))) == "CZ"


class EndlessRows(Sequence[Row]):
    """More rows than anyone reads: only a cancel ends them."""

    def __len__(self) -> int:
        return 2**40

    def __getitem__(self, at: object) -> Any:
        raise NotImplementedError("a simple query asks for all of them")

    def __iter__(self) -> Iterator[Row]:
        return zip(count())


def test_sending_rows_to_a_fast_reader_can_be_cancelled(server: RunningServer) -> None:
    """Goal: no moment between two chunks at which a cancel is lost. Method: many tries."""
    server.say("SELECT big", RowsResponse(relation_desc(("n", INT4)), EndlessRows()))
    for _ in range(10):
        with RawClient(server) as client:
            key = next(reply.body for reply in client.start() if reply.tag == b"K")
            client.send(query("SELECT big"))
            last = client.socket.recv(65_536)
            cancel = threading.Thread(target=send_cancel, args=(server, key))
            cancel.start()
            received = 0
            while not last.endswith(b"Z\0\0\0\x05I"):
                piece = client.socket.recv(1_000_000)
                received += len(piece)
                assert piece, "the server hung up"
                assert received < 2**31, "the cancel was lost"
                last = (last + piece)[-200:]
            cancel.join()
            assert b"C57014\0" in last
