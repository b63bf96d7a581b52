"""Goal: a subscription's dataflow tells every change once, goes no further than its reader has
taken, and leaves nothing behind.

Method: the replica's side alone, over a table in memory and an evaluator in this process; the test
is the adapter at the other end.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import Derived, Import
from evertide.dataflow.protocol import BatchResponse, SubscribeCommand
from evertide.expr.codec import encode_relation
from evertide.expr.relation import Distinct, Get
from evertide.persist.coding.inline import decode_inline
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.subscribe import Subscribes
from evertide.spark.worker import Worker
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update

TABLE = ShardId("table")
DESC = relation_desc(("a", INT4))
IMPORT = Import(GlobalId("u1"), TABLE, DESC, is_table=True)
RELATION = encode_relation(Distinct(Get(GlobalId("u1"), DESC.types)))


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

    def subscribe(self, reader: Any = None, **options: Any) -> "asyncio.Task[None]":
        command = SubscribeCommand(
            request_id=1,
            catalog_ts=0,
            relation=RELATION,
            imports=("u1",),
            as_of=self.now,
            **{"from_ts": self.now, **options},
        )
        serving = self.subscribes.serve(command, (IMPORT,), reader or self.reader)
        return asyncio.create_task(serving)

    def acknowledge(self, reader: Any = None) -> None:
        self.subscribes.acknowledge((reader or self.reader, 1))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        made = Place(client, tmp_path)
        await made.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        await made.write((1, 1), (1, 1), (2, 1))
        looking = asyncio.create_task(made.subscribes.run())
        yield made
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def test_a_view_that_changed_hands_is_known_by_its_new_definition(place: Place) -> None:
    """While its shard says nothing new, it stands still because what it follows from now does."""
    begun = Timestamp(place.now)
    shard, old, new = ShardId("v"), GlobalId("v0"), GlobalId("v1")
    await place.client.create_shard(shard, since=begun, writer=new)
    row = [Update((7,), begun, 1)]
    outcome = await place.client.compare_and_append(
        shard, DESC, row, begun, Timestamp(begun + 1), new
    )
    assert isinstance(outcome, Appended)
    stale = Import(
        GlobalId("u1"), shard, DESC, is_table=False, derived=Derived((IMPORT,), MIN_TS, old)
    )
    known = replace(stale, derived=Derived((IMPORT,), MIN_TS, new))
    command = SubscribeCommand(
        request_id=1, catalog_ts=0, relation=RELATION, imports=("u1",), as_of=begun,
        from_ts=begun, progress=True,
    )  # fmt: skip
    serving = asyncio.create_task(place.subscribes.serve(command, (stale,), place.reader))
    assert await place.reader.next() == (Counter({(begun, 7): 1}), begun + 1)
    place.acknowledge()
    at = await place.write()
    asked: list[GlobalId] = []

    def dropped(global_ids: Sequence[GlobalId]) -> None:
        asked.extend(global_ids)

    place.subscribes.look_again(dropped)
    assert asked == ["u1"]
    place.subscribes.look_again(lambda _: (known,))
    assert await place.reader.next() == (Counter(), at + 1), "concluded from what it follows from"
    await end(serving)


async def end(serving: "asyncio.Task[None]") -> None:
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_no_batch_before_the_last_is_taken(place: Place) -> None:
    slow, quick = place.reader, Reader()
    serving = [place.subscribe(), place.subscribe(quick)]
    begun = place.now
    assert await slow.next() == (Counter({(begun, 1): 1, (begun, 2): 1}), begun + 1)
    await quick.next()
    expected: Counter[tuple[int, object]] = Counter()
    for value in range(3, 20):
        place.acknowledge(quick)
        at = await place.write((value, 1))
        assert await quick.next() == (Counter({(at, value): 1}), at + 1)
        expected[at, value] += 1
    assert slow.batches == []
    place.acknowledge()
    assert await slow.next() == (expected, place.now + 1)
    for one in serving:
        await end(one)


async def test_changes_come_as_they_are_made(place: Place) -> None:
    serving = place.subscribe(from_ts=place.now + 1)
    assert (await place.reader.next())[0] == Counter(), "without its snapshot"
    for rows, told in (
        ([(1, -1)], {}),
        ([(1, -1), (5, 2)], {1: -1, 5: 1}),
        ([(5, -1), (1, 1)], {1: 1}),
    ):
        place.acknowledge()
        at = await place.write(*rows)
        if told:
            found, upper = await place.reader.next()
            assert {k: v for k, v in found.items() if v} == {(at, k): v for k, v in told.items()}
            assert upper == at + 1
        else:
            assert (await place.reader.next())[0] == Counter()
    await end(serving)


async def test_it_moves_to_another_engine_without_a_gap(place: Place) -> None:
    serving = place.subscribe()
    await place.reader.next()
    place.worker.use_engine(place.engine("second"))
    place.acknowledge()
    at = await place.write((7, 1), (1, -2))
    found, upper = await place.reader.next()
    assert found == Counter({(at, 7): 1, (at, 1): -1})
    assert upper == at + 1
    await end(serving)


async def test_it_ends_where_asked_and_leaves_nothing(place: Place) -> None:
    begun, last = place.now, place.now + 15
    serving = place.subscribe(up_to=last)
    await place.reader.next()
    place.acknowledge()
    await place.write((7, 1))
    assert (await place.reader.next())[1] == begun + 11
    place.acknowledge()
    await place.write((8, 1))
    found, upper = await place.reader.next()
    assert (found, upper) == (Counter(), last)
    place.acknowledge()
    await asyncio.wait_for(serving, 30)
    assert len(place.subscribes) == 0
    await place.client.leases.look_after()
    place.now += 60_000
    at = await place.write((9, 1))
    await place.client.leases.look_after()
    holds = (await place.client.state(TABLE)).holds
    assert {hold.hold_ts for hold in holds} <= {at}


async def test_a_cancelled_one_leaves_nothing(place: Place) -> None:
    serving = place.subscribe()
    await place.reader.next()
    await end(serving)
    assert len(place.subscribes) == 0
