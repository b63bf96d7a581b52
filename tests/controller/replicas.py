"""Replicas that are sockets, and a test that speaks for them; the real client asks them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import ComputeClient, replica_processes, socket_path
from evertide.dataflow.channel import Channel
from evertide.dataflow.lookup import Lookup, point
from evertide.dataflow.protocol import (
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

C = TypeVar("C", bound=Command)

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

    async def hears(self, kind: type[C]) -> C:
        """The next thing it is sent, which must be this."""
        command = await asyncio.wait_for(self.heard.get(), 10)
        assert isinstance(command, kind), command
        return command

    async def asked(self) -> PeekIndexCommand:
        return await self.hears(PeekIndexCommand)

    async def tell(self, response: msgspec.Struct) -> None:
        await self._channels[-1].send(response)

    async def answer(self, request_id: int, value: int) -> None:
        rows = encode_inline([Update((value,), AS_OF, 1)])
        await self.tell(RowsResponse(request_id, rows))

    async def refuse(self, request_id: int) -> None:
        await self.tell(RefusedResponse(request_id, "not here"))

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
        self.names = replica_processes(self.snapshot, self.cluster_id)
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
    servers = [
        await asyncio.start_unix_server(replica.serve, str(socket_path(runtime, name)))
        for name, replica in zip(cluster.names, cluster.replicas, strict=True)
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
