"""Goal: a peek goes to every replica of a cluster; the first that answers is believed, the others
are told to forget it, and one that is frozen, away or refuses costs nobody anything.

Method: replicas are sockets that a test speaks for; the real client asks them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from evertide.catalog.snapshot import Snapshot
from evertide.controller import compute
from evertide.controller.compute import ComputeClient, Unanswered, replica_processes, socket_path
from evertide.dataflow.channel import Channel
from evertide.dataflow.lookup import Lookup, point
from evertide.dataflow.protocol import (
    CancelCommand,
    Command,
    PeekIndexCommand,
    RefusedResponse,
    RowsResponse,
)
from evertide.persist.coding.inline import encode_inline
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.sql.database import new_database

DESC = relation_desc(("a", INT4))
AS_OF = Timestamp(7)
LOOKUP = Lookup((point(b"\x01key"),), exact=True, most=5)


class Replica:
    """Reads what it is sent, unless it is frozen; says what the test says."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Command] = asyncio.Queue()
        self.frozen = asyncio.Event()
        self._channels: list[Channel[Command]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(Command))
        self._channels.append(channel)
        self._writers.append(writer)
        while not self.frozen.is_set() and (command := await channel.receive()) is not None:
            self.heard.put_nowait(command)

    async def asked(self) -> PeekIndexCommand:
        command = await asyncio.wait_for(self.heard.get(), 10)
        assert isinstance(command, PeekIndexCommand)
        return command

    async def answer(self, request_id: int, value: int) -> None:
        rows = encode_inline([Update((value,), AS_OF, 1)])
        await self._channels[-1].send(RowsResponse(request_id, rows))

    async def refuse(self, request_id: int) -> None:
        await self._channels[-1].send(RefusedResponse(request_id, "not here"))

    async def go_away(self) -> None:
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def two_replicas() -> tuple[Snapshot, ClusterId]:
    database = new_database()
    database.run("CREATE CLUSTER two (SIZE '1', REPLICATION FACTOR 2)")
    cluster = database.snapshot.cluster_named("two")
    assert cluster is not None
    return database.snapshot, cluster.cluster_id


class Cluster:
    """A cluster of two replicas and an adapter's client of it."""

    def __init__(self, runtime: Path) -> None:
        self.snapshot, self.cluster_id = two_replicas()
        self.client = ComputeClient(runtime)
        self.replicas = (Replica(), Replica())

    async def leave(self) -> None:
        """Returns once no connection is left; those to replicas that went away are closed by then,
        or the test fails for a socket that nobody closed."""
        self.client.close()
        for connection in self.client._connections.values():
            with suppress(ConnectionError):
                await connection._channel._writer.wait_closed()

    async def peek(self, lookup: Lookup = LOOKUP) -> list[Update]:
        index = GlobalId("i")
        return await self.client.peek_index(
            self.snapshot, self.cluster_id, index, DESC, lookup, AS_OF
        )


@asynccontextmanager
async def cluster_of_two(runtime: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(runtime)
    names = replica_processes(cluster.snapshot, cluster.cluster_id)
    assert len(names) == 2
    servers = [
        await asyncio.start_unix_server(replica.serve, str(socket_path(runtime, name)))
        for name, replica in zip(names, cluster.replicas, strict=True)
    ]
    try:
        yield cluster
    finally:
        for replica in cluster.replicas:
            await replica.go_away()
        await cluster.leave()
        for server in servers:
            server.close()
            await server.wait_closed()


@pytest.mark.parametrize("first", [0, 1])
async def test_the_first_answer_is_taken_and_the_other_cancelled(
    first: int, tmp_path: Path
) -> None:
    async with cluster_of_two(tmp_path) as cluster:
        winner, loser = cluster.replicas[first], cluster.replicas[1 - first]
        peek = asyncio.create_task(cluster.peek())
        won, lost = await winner.asked(), await loser.asked()
        assert won.lookup == lost.lookup == LOOKUP
        await winner.answer(won.request_id, 1)
        assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(1,)]
        told = await asyncio.wait_for(loser.heard.get(), 10)
        assert told == CancelCommand(lost.request_id)
        # What it says all the same is nobody's answer: neither to this peek nor to the next.
        await loser.answer(lost.request_id, 2)
        again = asyncio.create_task(cluster.peek())
        await winner.answer((await winner.asked()).request_id, 3)
        assert [u.row for u in await asyncio.wait_for(again, 10)] == [(3,)]


async def test_a_refusal_or_a_lost_connection_waits_for_the_other(tmp_path: Path) -> None:
    async with cluster_of_two(tmp_path) as cluster:
        one, other = cluster.replicas
        peek = asyncio.create_task(cluster.peek())
        await one.refuse((await one.asked()).request_id)
        await other.answer((await other.asked()).request_id, 1)
        assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(1,)]
        peek = asyncio.create_task(cluster.peek())
        await other.asked()
        asked = await one.asked()
        await other.go_away()
        await one.answer(asked.request_id, 2)
        assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(2,)]
        peek = asyncio.create_task(cluster.peek())
        await one.refuse((await one.asked()).request_id)
        await other.refuse((await other.asked()).request_id)
        with pytest.raises(Unanswered):
            await asyncio.wait_for(peek, 10)


async def test_a_frozen_replica_holds_nobody_up_and_fills_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked until so much lies unread that it is clear that nobody reads."""
    monkeypatch.setattr(compute, "MAX_UNSENT_BYTES", 10_000)
    async with cluster_of_two(tmp_path) as cluster:
        live, frozen = cluster.replicas
        frozen.frozen.set()
        key = b"\x01" + b"k" * 20_000
        large = Lookup((point(key),), exact=True)
        for value in range(200):
            peek = asyncio.create_task(cluster.peek(large))
            await live.answer((await live.asked()).request_id, value)
            assert [u.row for u in await asyncio.wait_for(peek, 10)] == [(value,)]
        name = replica_processes(cluster.snapshot, cluster.cluster_id)[1]
        unsent = cluster.client._connections[name]._channel.unsent_bytes
        assert unsent < 100_000
