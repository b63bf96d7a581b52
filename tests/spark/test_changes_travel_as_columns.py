"""Goal: many changes go from shard to task to shard in columns; the replica only passes them on.

Method: a worker with the task's service on a thread, behind a real socket. Whoever turns columns
into rows, or rows into columns, is noted down with its thread.
"""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.channel import Channel
from evertide.dataflow.description import DataflowDescription, Import, ShardExport
from evertide.expr.relation import Get
from evertide.persist.coding import batch as batch_module
from evertide.persist.coding.batch import UpdateBatch, from_payload, to_batch
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import UpperMismatch
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Committed, TableWrite, Txns, register_table
from evertide.spark.channel import BlockingChannel, Hello
from evertide.spark.engine import DriverEngine, Engine
from evertide.spark.evaluate import Evaluator
from evertide.spark.partitions.connection import Connection, Incoming
from evertide.spark.partitions.evaluator import TaskEvaluator
from evertide.spark.partitions.received import ReceivedFiles
from evertide.spark.resident import ResidentEngine
from evertide.spark.resident_task import Service
from evertide.spark.sink import ShardSink
from evertide.spark.tick_records import TickRecord
from evertide.spark.worker import Worker
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero, encode_error
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT8, NUMERIC, TEXT
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT8), ("b", TEXT), ("c", FLOAT8), ("d", NUMERIC))
TABLE, VIEW = GlobalId("u1"), GlobalId("u2")
ERROR = encode_error(DivisionByZero("division by zero"))


def row(number: int) -> Row:
    return (number, f"name {number}", number / 2, None)


def updates_at(moment: int, count: int) -> list[Update]:
    return [Update(row(i), Timestamp(moment), 1) for i in range(count)]


def same(found: Sequence[Update], expected: Sequence[Update]) -> bool:
    return sorted(map(repr, found)) == sorted(map(repr, expected))


@dataclass
class Noted:
    """Threads on which rows became columns, or columns rows."""

    threads: list[str] = field(default_factory=list)

    def noting(self, convert: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            self.threads.append(threading.current_thread().name)
            return convert(*arguments)

        return noted


@dataclass
class Site:
    """A table, a view of it, the process that writes one and the replica that keeps the other."""

    writer: PersistClient
    replica: PersistClient
    worker: Worker

    async def write(self, rows: Sequence[Row]) -> None:
        txns = Txns(self.writer, ShardId("txns"))
        write = {ShardId("t"): TableWrite(DESC, [(row, 1) for row in rows])}
        assert isinstance(await txns.commit(write, at=await txns.upper()), Committed)

    async def follow(self) -> Timestamp:
        """Rounds until the view is as far as its table."""
        wanted = await Txns(self.writer, ShardId("txns")).upper()
        while (await self.replica.state(ShardId("v"))).upper < wanted:
            await self.worker.round()
            await asyncio.sleep(0)
        return wanted

    def last_tick(self) -> TickRecord:
        return self.worker.tick_records[-1]


@asynccontextmanager
async def resident(directory: Path) -> AsyncIterator[Engine]:
    """The task's service on a thread named `task`."""
    ours, theirs = socket.socketpair()
    evaluator = TaskEvaluator(directory)
    task = Service(evaluator, ReceivedFiles(directory / "received"))
    service = threading.Thread(target=lambda: task.run(BlockingChannel(theirs)), name="task")
    service.start()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    channel = Channel(reader, writer, msgspec.msgpack.Decoder(Incoming))
    connection = Connection(channel, Hello(b"", 1, 1, 0))
    engine = ResidentEngine(connection)
    listening = asyncio.create_task(connection.listen())
    try:
        yield engine
    finally:
        connection.close()
        await listening
        await asyncio.to_thread(service.join)
        theirs.close()
        evaluator.close()


@asynccontextmanager
async def site(engine: Engine) -> AsyncIterator[Site]:
    store, blob = MemoryStore(), MemoryBlob()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, blob) as writer, PersistClient(consensus, blob) as replica:
        await Txns(writer, ShardId("txns")).ensure()
        await writer.append_all([], also=[register_table(ShardId("t"))])
        await writer.create_shard(ShardId("v"), writer=VIEW)
        await Txns(writer, ShardId("txns")).commit({}, at=Timestamp(1))
        storage = Storage(replica, Txns(replica, ShardId("txns")))
        worker = Worker(replica, storage, engine)
        table = Import(TABLE, ShardId("t"), DESC, True, None)
        relation, export = Get(TABLE, DESC.types), ShardExport(ShardId("v"), DESC)
        await worker.set_dataflows(
            {
                VIEW: DataflowDescription(
                    global_id=VIEW,
                    cluster_id=ClusterId("u1"),
                    imports=(table,),
                    relation=relation,
                    export=export,
                    as_of=Timestamp(1),
                )
            }
        )
        yield Site(writer, replica, worker)


@pytest.mark.parametrize("count", [300, 3_000, 12_000])
async def test_a_replica_passes_columns_on(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with resident(tmp_path) as engine, site(engine) as here:
        await here.write([row(-1)])
        await here.follow()
        await here.write([row(i) for i in range(count)])
        noted = Noted()
        for name in ("table_to_columns", "columns_to_table"):
            convert = getattr(batch_module, name)
            monkeypatch.setattr(batch_module, name, noted.noting(convert))
        upper = await here.follow()
        monkeypatch.undo()
        assert set(noted.threads) <= {"task"}, "only the evaluator may want rows"
        tick = here.last_tick()
        assert (tick.rows_in, tick.rows_out, tick.executor) == (count, count, "resident")
        found = await here.writer.snapshot(ShardId("v"), DESC, Timestamp(upper - 1))
        assert same([u._replace(ts=Timestamp(0)) for u in found], [
            Update(row(i), Timestamp(0), 1) for i in range(-1, count)
        ])  # fmt: skip


@pytest.mark.parametrize("count", [1, 50])
async def test_a_few_changes_travel_as_rows(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with resident(tmp_path) as engine, site(engine) as here:
        await here.write([row(-1)])
        await here.follow()
        noted = Noted()
        for name in ("table_to_columns", "columns_to_table"):
            convert = getattr(batch_module, name)
            monkeypatch.setattr(batch_module, name, noted.noting(convert))
        await here.write([row(i) for i in range(count)])
        upper = await here.follow()
        assert noted.threads == []
        assert here.last_tick().rows_out == count
        found = await here.writer.snapshot(ShardId("v"), DESC, Timestamp(upper - 1))
        assert len(found) == count + 1


async def test_the_driver_s_own_evaluator_takes_columns_too(tmp_path: Path) -> None:
    async with site(DriverEngine(Evaluator(tmp_path))) as here:
        await here.write([row(-1)])
        await here.follow()
        await here.write([row(i) for i in range(700)])
        upper = await here.follow()
        tick = here.last_tick()
        assert (tick.rows_in, tick.rows_out, tick.executor) == (700, 700, "driver")
        found = await here.writer.snapshot(ShardId("v"), DESC, Timestamp(upper - 1))
        assert len(found) == 701


FORMS: dict[str, Callable[[list[Update]], Sequence[Update]]] = {
    "updates": lambda updates: updates,
    "rows": lambda updates: to_batch(DESC, updates),
    "columns": lambda updates: UpdateBatch(DESC, table=to_batch(DESC, updates).table),
    "bytes": lambda updates: from_payload(DESC, to_batch(DESC, updates).payload),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_sink_drops_what_the_shard_has_already(
    form: Callable[[list[Update]], Sequence[Update]],
) -> None:
    updates = [u for moment in (3, 5, 7) for u in updates_at(moment, 100)]
    updates.append(Update((), Timestamp(5), 1, ERROR))
    sink = ShardSink(VIEW, ShardExport(ShardId("v"), DESC), Timestamp(4))
    sink.stage(form(updates), Timestamp(8))
    sink.stage(form(updates_at(9, 2)), Timestamp(10))
    append = sink.due()
    assert append is not None
    assert (append.lower, append.upper) == (4, 10)
    assert same(append.updates, [*(u for u in updates if u.ts >= 4), *updates_at(9, 2)])
    sink.settle(append, UpperMismatch(Timestamp(6)))
    append = sink.due()
    assert append is not None
    assert same(append.updates, [*updates_at(7, 100), *updates_at(9, 2)])
    assert sink.due() is not None
    sink.settle(append, Appended(Timestamp(10)))
    assert sink.due() is None
    assert sink.due(still_too=False) is None


def test_a_sink_hands_bytes_on_unread() -> None:
    payload = to_batch(DESC, updates_at(7, 500)).payload
    span = (Timestamp(7), Timestamp(7))
    reply = UpdateBatch(DESC, payload=payload, count=500, span=span)
    sink = ShardSink(VIEW, ShardExport(ShardId("v"), DESC), Timestamp(4))
    sink.stage(reply, EMPTY_FRONTIER)
    append = sink.due()
    assert append is not None
    assert append.updates is reply
