"""Large answers are made as fast as they are read, and nobody else waits for that."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import overload

import psycopg
import pytest

from evertide.adapter.client import CopyOutResponse, RowsResponse
from evertide.pgwire.backends import Limits
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4, TEXT
from tests.pgwire.raw import RawClient, query
from tests.pgwire.scripted import RunningServer, running_server

SHAPE = relation_desc(("n", INT4), ("t", TEXT))
COUNT = 200_000
PADDING = "x" * 500


class CountedRows(Sequence[Row]):
    """Rows that know how many of them have been asked for."""

    def __init__(self, count: int = COUNT) -> None:
        self.asked = 0
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Row]:
        for number in range(self._count):
            self.asked += 1
            yield (number, PADDING)


def wait_until_steady(rows: CountedRows) -> int:
    """How many rows were asked for when no more were for a while."""
    seen = -1
    while rows.asked != seen:
        seen = rows.asked
        time.sleep(0.3)
    return seen


@pytest.mark.parametrize("kind", [RowsResponse, CopyOutResponse])
def test_rows_are_made_only_as_they_are_read(
    server: RunningServer, kind: type[RowsResponse] | type[CopyOutResponse]
) -> None:
    rows = CountedRows()
    server.say("SELECT big", kind(SHAPE, rows))
    server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
    with RawClient(server, receive_buffer=4_096) as client:
        client.start()
        client.send(query("SELECT big"))
        asked = wait_until_steady(rows)
        assert asked < COUNT // 4, "the network's buffers hold some"
        with psycopg.connect(server.dsn) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        assert rows.asked == asked
        replies = client.until_ready()
        assert sum(reply.tag in (b"D", b"d") for reply in replies) == COUNT
        assert rows.asked == COUNT


def test_others_are_served_between_chunks(server: RunningServer) -> None:
    """Nobody would be answered before the end of these rows, which does not come."""
    rows = CountedRows(2_000_000_000)
    server.say("SELECT big", RowsResponse(SHAPE, rows))
    server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
    with RawClient(server) as big, psycopg.connect(server.dsn) as small:
        big.start()
        big.send(query("SELECT big"))
        reading = threading.Thread(target=_discard, args=(big,))
        reading.start()
        for _ in range(20):
            before = rows.asked
            while rows.asked == before:
                time.sleep(0.001)
            small.execute("SELECT 1")
        big.socket.shutdown(socket.SHUT_RDWR)
        reading.join()


def _discard(client: RawClient) -> None:
    with contextlib.suppress(ConnectionError):  # it ends while rows are on their way
        while client.socket.recv(65_536):
            pass


def test_a_reader_that_never_reads_is_gone() -> None:
    with running_server(limits=Limits(drain_timeout_s=0.5)) as server:
        server.say("SELECT big", RowsResponse(SHAPE, CountedRows()))
        with RawClient(server, receive_buffer=4_096) as client:
            client.start()
            client.send(query("SELECT big"))
            assert server.last_session.closed.wait(10)
