"""One replica's subscriptions over a table in memory and an evaluator in this process; the test is
the adapter at the other end.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evertide.controller.storage import Storage
from evertide.dataflow.description import Import
from evertide.dataflow.protocol import BatchResponse, SubscribeCommand
from evertide.expr.codec import encode_relation
from evertide.expr.relation import Distinct, Get, Relation
from evertide.persist.coding.inline import decode_inline
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.subscribe import Subscribes
from evertide.spark.worker import Worker
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from evertide.vocab.timestamp import Timestamp

TABLE = ShardId("table")
DESC = relation_desc(("a", INT4))
IMPORT = Import(GlobalId("u1"), TABLE, DESC, is_table=True)
VALUES = Distinct(Get(GlobalId("u1"), DESC.types))


class Reader:
    """The adapter's end: keeps what is sent."""

    def __init__(self) -> None:
        self.batches: list[BatchResponse] = []
        self._came = asyncio.Event()

    async def send(self, message: BatchResponse) -> None:
        self.batches.append(message)
        self._came.set()

    async def next(self) -> tuple[Counter[tuple[int, object]], int]:
        """The changes of the next batch, and its upper."""
        while not self.batches:
            self._came.clear()
            await asyncio.wait_for(self._came.wait(), 30)
        batch = self.batches.pop(0)
        found: Counter[tuple[int, object]] = Counter()
        for update in decode_inline(DESC, batch.updates).updates():
            found[update.ts, update.row[0]] += update.diff
        return found, batch.upper


class Place:
    def __init__(self, client: PersistClient, scratch: Path) -> None:
        self.client = client
        self.scratch = scratch
        self.txns = Txns(client, ShardId("txns"))
        self.storage = Storage(client, self.txns)
        self.worker = Worker(client, self.storage, self.engine("first"))
        self.subscribes = Subscribes(self.worker, self.storage, self.storage.following)
        self.reader: Any = Reader()
        self.now = 10

    def engine(self, name: str) -> DriverEngine:
        return DriverEngine(Evaluator(self.scratch / name))

    async def write(self, *rows: tuple[int, int]) -> int:
        self.now += 10
        writes = {TABLE: TableWrite(DESC, [((a,), diff) for a, diff in rows])} if rows else {}
        await self.txns.commit(writes, at=Timestamp(self.now))
        return self.now

    def subscribe(
        self,
        reader: Any = None,
        *,
        relation: Relation = VALUES,
        collection: Import = IMPORT,
        **options: Any,
    ) -> "asyncio.Task[None]":
        command = SubscribeCommand(
            request_id=1,
            catalog_ts=0,
            relation=encode_relation(relation),
            imports=("u1",),
            as_of=self.now,
            **{"from_ts": self.now, **options},
        )
        serving = self.subscribes.serve(command, (collection,), reader or self.reader)
        return asyncio.create_task(serving)

    def acknowledge(self, reader: Any = None) -> None:
        self.subscribes.acknowledge((reader or self.reader, 1))


@asynccontextmanager
async def opened(scratch: Path) -> AsyncIterator[Place]:
    """A place whose table holds 1 twice and 2 once."""
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        made = Place(client, scratch)
        await made.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        await made.write((1, 1), (1, 1), (2, 1))
        looking = asyncio.create_task(made.subscribes.run())
        yield made
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def end(serving: "asyncio.Task[None]") -> None:
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
