"""Rows of a stream go out when they come, no faster than they are read, until somebody ends it."""

import asyncio
import threading
from collections.abc import Sequence

import asyncpg
import psycopg
import pytest

from evertide.adapter.client import CopyKind, CopyLayout, StreamResponse
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4, TEXT
from tests.pgwire.raw import RawClient, query
from tests.pgwire.scripted import RunningServer
from tests.support.server import eventually

SHAPE = relation_desc(("n", INT4), ("t", TEXT))


class Script:
    """A stream that a test feeds: rows, then an end or an error. Counts what was asked of it."""

    def __init__(self, server: RunningServer) -> None:
        self._loop = server.loop
        self._queue: asyncio.Queue[Sequence[Row] | Exception | None] = asyncio.Queue()
        self._left: list[Row] = []
        self.taken = 0

    def put(self, *items: Sequence[Row] | Exception | None) -> None:
        for item in items:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    @property
    def ready(self) -> bool:
        return bool(self._left)

    async def take(self, most: int | None) -> Sequence[Row] | None:
        if not self._left:
            item = await self._queue.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                return None
            self._left = list(item)
        rows, self._left = self._left[:most], self._left[len(self._left[:most]) :]
        self.taken += len(rows)
        return rows

    def close(self) -> None:
        pass


class Endless:
    """As many rows as anybody takes."""

    ready = True

    def __init__(self) -> None:
        self.taken = 0

    async def take(self, most: int | None) -> Sequence[Row] | None:
        assert most is None
        self.taken += 100
        return [(self.taken, "x" * 1_000)] * 100

    def close(self) -> None:
        pass


@pytest.fixture
def stream(server: RunningServer) -> Script:
    made = Script(server)
    server.say("follow", StreamResponse(SHAPE, made))
    server.say("copy", StreamResponse(SHAPE, made, CopyLayout()))
    return made


def test_each_row_arrives_before_the_next_is_there(server: RunningServer, stream: Script) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        rows = connection.cursor().stream("follow")
        stream.put([(1, "a")])
        assert next(rows) == (1, "a")
        stream.put([(2, "b"), (3, "c")])
        assert [next(rows), next(rows)] == [(2, "b"), (3, "c")]
        stream.put(None)
        assert list(rows) == []
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def test_copy_sends_lines(server: RunningServer, stream: Script) -> None:
    with (
        psycopg.connect(server.dsn, autocommit=True) as connection,
        connection.cursor().copy("copy") as lines,
    ):
        stream.put([(1, "a")])
        assert lines.read_row() == ("1", "a")
        stream.put([(2, None)])
        assert lines.read_row() == ("2", None)
        stream.put(None)
        assert lines.read_row() is None


def test_an_error_ends_it_after_its_rows(server: RunningServer, stream: Script) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        rows = connection.cursor().stream("follow")
        stream.put([(1, "a")], DivisionByZero("division by zero"))
        assert next(rows) == (1, "a")
        with pytest.raises(psycopg.errors.DivisionByZero):
            next(rows)
        assert server.last_session.ends[-1] is True


def test_a_cancel_ends_the_wait(server: RunningServer, stream: Script) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        rows = connection.cursor().stream("follow")
        stream.put([(1, "a")])
        assert next(rows) == (1, "a")
        connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            next(rows)


def test_a_client_that_leaves_ends_it(server: RunningServer, stream: Script) -> None:
    connection = psycopg.connect(server.dsn, autocommit=True)
    rows = connection.cursor().stream("follow")
    stream.put([(1, "a")])
    assert next(rows) == (1, "a")
    connection.pgconn.finish()
    assert server.last_session.closed.wait(10)


@pytest.mark.parametrize("layout", [None, CopyLayout(), CopyLayout(CopyKind.BINARY)])
def test_rows_are_taken_only_as_they_are_read(
    server: RunningServer, layout: CopyLayout | None
) -> None:
    endless = Endless()
    server.say("flood", StreamResponse(SHAPE, endless, layout))
    with RawClient(server, receive_buffer=4_096) as client:
        client.start()
        client.send(query("flood"))
        seen = -1

        def steady() -> bool:
            nonlocal seen
            before, seen = seen, endless.taken
            return before == seen > 0

        eventually(steady, pause=0.3)
        # What fits into the network's buffers and one chunk, of an answer that has no end.
        assert seen < 20_000
        for _ in range(seen + 100):
            client.reply()
        eventually(lambda: endless.taken > seen)


async def _some_at_a_time(server: RunningServer, stream: Script) -> list[list[tuple[int, str]]]:
    connection = await asyncpg.connect(
        host=server.host, port=server.port, user="tester", database="test", ssl=False
    )
    try:
        async with connection.transaction():
            cursor = await connection.cursor("follow")
            stream.put([(1, "a"), (2, "b"), (3, "c")])
            first = await cursor.fetch(2)
            stream.put([(4, "d")])
            second = await cursor.fetch(2)
            stream.put(None)
            return [[tuple(r) for r in part] for part in (first, second, await cursor.fetch(2))]
    finally:
        await connection.close(timeout=5)


def test_a_portal_gives_some_at_a_time(server: RunningServer, stream: Script) -> None:
    parts: list[list[tuple[int, str]]] = []

    def run() -> None:
        parts.extend(asyncio.run(_some_at_a_time(server, stream)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert parts == [[(1, "a"), (2, "b")], [(3, "c"), (4, "d")], []]
