"""Replicas that compute large queries without Spark: sockets behind which the interpreter sits.

They tell results as dataflow/protocol.py says, rows beyond the limit among them, and remember what
they were asked. A test says when one refuses, waits, or dies.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

import asyncpg
import msgspec
import psycopg

from evertide.controller.compute import ComputeClient, replica_processes, socket_path
from evertide.controller.storage import collection_of
from evertide.dataflow.channel import Channel
from evertide.dataflow.protocol import (
    AcknowledgeCommand,
    BatchResponse,
    CancelCommand,
    Command,
    FailedResponse,
    RefusedResponse,
    ResultResponse,
    SelectCommand,
)
from evertide.expr.codec import decode_relation
from evertide.expr.functions.table import by_signature
from evertide.expr.group_rows import consolidated
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import OrderKey
from evertide.expr.row_key import in_order
from evertide.persist.coding.arrow_inline import encode_arrow
from evertide.persist.coding.parts import columns_to_table
from evertide.persist.coding.updates import to_columns
from evertide.persist.txn import Committed, TableWrite
from evertide.pgwire.server import PgServer
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlError, decode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.timestamp import Timeline, Timestamp
from evertide.vocab.update import Update
from tests.adapter.staged import World, new_world
from tests.catalog.environment import Environment

# So many rows beyond the last that is wanted are told.
MORE_THAN_WANTED = 3
DATABASE = "materialize"


@dataclass
class Telling:
    """One result on its way."""

    batches: list[BatchResponse]
    told: int = 0
    acknowledged: int = 0
    cancelled: bool = False


@dataclass
class ComputingReplica:
    """One replica; knows its world's tables."""

    world: World
    batch_rows: int = 100
    refuses: bool = False
    # None of its results is told before this is set.
    let: asyncio.Event = field(default_factory=asyncio.Event)
    # It goes away instead of telling more batches.
    dies_after: int | None = None
    asked: asyncio.Queue[SelectCommand] = field(default_factory=asyncio.Queue)
    results: dict[int, Telling] = field(default_factory=dict)
    forgotten: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(Command))
        running: set[asyncio.Task[None]] = set()
        while (command := await channel.receive()) is not None:
            match command:
                case SelectCommand():
                    self.asked.put_nowait(command)
                    running.add(asyncio.create_task(self._select(command, channel)))
                case AcknowledgeCommand(request_id=request_id):
                    telling = self.results[request_id]
                    telling.acknowledged += 1
                    await self._tell(telling, channel)
                case CancelCommand(request_id=request_id):
                    if request_id in self.results:
                        self.results[request_id].cancelled = True
                    self.forgotten.put_nowait(request_id)
                case _:
                    raise AssertionError(f"nobody asks for {command}")
        for task in running:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _select(self, command: SelectCommand, channel: Channel[Command]) -> None:
        if self.refuses:
            await channel.send(RefusedResponse(command.request_id, "not here"))
            return
        await self.let.wait()
        try:
            batches, rows = await self._computed(command)
        except SqlError as error:
            failed = FailedResponse(command.request_id, error.code, error.message, "of the replica")
            await channel.send(failed)
            return
        telling = self.results[command.request_id] = Telling(batches)
        size = sum(len(batch.updates) for batch in batches)
        await channel.send(ResultResponse(command.request_id, len(batches), rows, size))
        await self._tell(telling, channel)

    async def _tell(self, telling: Telling, channel: Channel[Command]) -> None:
        assert telling.acknowledged == telling.told, "only what was told is acknowledged"
        if telling.told == self.dies_after:
            channel.close()
        elif telling.told < len(telling.batches) and not telling.cancelled:
            telling.told += 1
            await channel.send(telling.batches[telling.told - 1])

    async def _computed(self, command: SelectCommand) -> tuple[list[BatchResponse], int]:
        relation = decode_relation(command.relation, by_signature)
        read = {GlobalId(g): await self._contents(GlobalId(g), command) for g in command.imports}
        found = evaluate(relation, read.__getitem__)
        if found.errors:
            raise decode_error(min(error for error, _ in found.errors))
        types = relation.types
        order = tuple(OrderKey(*key) for key in command.order)
        counted = in_order(consolidated(found.rows, types), itemgetter(0), types, order)
        if command.most is not None:
            ends = accumulate(count for _, count in counted)
            enough = sum(end < command.most for end in ends) + 1
            counted = counted[: enough + MORE_THAN_WANTED]
        desc = RelationDesc(tuple(ColumnDesc(f"c{i}", t) for i, t in enumerate(types)))
        as_of = Timestamp(command.as_of)
        updates = [Update(row, as_of, count) for row, count in counted]
        batches = [
            BatchResponse(
                command.request_id,
                encode_arrow(columns_to_table(desc, to_columns(updates[i : i + self.batch_rows]))),
                command.as_of,
            )
            for i in range(0, len(updates), self.batch_rows)
        ]
        return batches, sum(count for _, count in counted)

    async def _contents(self, global_id: GlobalId, command: SelectCommand) -> Collection:
        snapshot = self.world.catalog.newest
        item = snapshot.item_of(global_id)
        assert item is not None
        collection = collection_of(item, snapshot)
        assert collection is not None
        contents = await self.world.storage.contents(collection, Timestamp(command.as_of))
        return Collection(list(contents.rows), list(contents.errors))

    @property
    def told(self) -> int:
        return sum(telling.told for telling in self.results.values())


@dataclass
class Place:
    """An adapter, two replicas of its cluster, and an address."""

    world: World
    replicas: tuple[ComputingReplica, ComputingReplica]
    client: ComputeClient
    port: int

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=materialize dbname={DATABASE} sslmode=disable"

    async def psycopg(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        return await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)

    async def asyncpg(self) -> asyncpg.Connection:
        return await asyncpg.connect(
            host="127.0.0.1", port=self.port, user="materialize", database=DATABASE, ssl=False
        )

    async def write(self, name: str, rows: Sequence[Row], counts: Sequence[int]) -> None:
        """Rows come into a table."""
        item = self.world.item(name)
        assert item.shard_id is not None
        upper = await self.world.txns.upper()
        written = {item.shard_id: TableWrite(item.desc, list(zip(rows, counts, strict=True)))}
        assert isinstance(await self.world.txns.commit(written, at=upper), Committed)
        await self.world.oracle.apply_write(Timeline.EPOCH_MS, upper)


@asynccontextmanager
async def computing(runtime: Path) -> AsyncIterator[Place]:
    """Sessions begin in a cluster `two` of two replicas, which compute at once."""
    environment, client = Environment(), ComputeClient(runtime)
    world = await new_world(environment, client)
    await world.run("CREATE CLUSTER two (SIZE '1', REPLICATION FACTOR 2)")
    await world.run("ALTER SYSTEM SET cluster = two")
    snapshot = world.catalog.newest
    cluster = snapshot.cluster_named("two")
    assert cluster is not None
    replicas = ComputingReplica(world), ComputingReplica(world)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(environment.close)
        names = replica_processes(snapshot, cluster.cluster_id)
        for name, replica in zip(names, replicas, strict=True):
            replica.let.set()
            path = str(socket_path(runtime, name))
            stack.push_async_callback(_stop, await asyncio.start_unix_server(replica.serve, path))
        server = PgServer()
        _, port = await server.start("127.0.0.1", 0, world.connections(), internal=False)
        stack.push_async_callback(_leave, client, replicas)
        stack.push_async_callback(server.stop)
        yield Place(world, replicas, client, port)


async def _leave(client: ComputeClient, replicas: tuple[ComputingReplica, ...]) -> None:
    client.close()
    for replica in replicas:
        for writer in replica.writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def _stop(server: asyncio.Server) -> None:
    server.close()
    await server.wait_closed()
