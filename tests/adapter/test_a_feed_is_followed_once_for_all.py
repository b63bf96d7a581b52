"""Goal: many subscriptions of one table cost one look at it, and a slow one costs the others
nothing and piles nothing up.

Method: a table in memory, written through txns; the feed's reads are counted, and listeners ask for
batches when the test lets them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest

from evertide.adapter.subscribe import feed as subscribe_feed
from evertide.adapter.subscribe.feed import Batch, Feed, Feeds, Listener
from evertide.controller.stillness import Look
from evertide.controller.storage import Storage
from evertide.dataflow.description import Import
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.vocab.datum import Row
from evertide.vocab.errors import InternalError
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp, step_back, step_forward
from evertide.vocab.update import Update

TABLE = ShardId("table")
DESC = relation_desc(("a", INT4))
COLLECTION = Import(GlobalId("u1"), TABLE, DESC, is_table=True)


class CountingStorage(Storage):
    """Counts how often changes are read; looks only while the gate is open."""

    reads = 0

    def __init__(self, client: PersistClient, txns: Txns) -> None:
        super().__init__(client, txns)
        self.gate = asyncio.Event()
        self.gate.set()

    async def look(self, collections: Sequence[Import]) -> Look:
        await self.gate.wait()
        return await super().look(collections)

    async def updates(self, collection: Import, lower: Timestamp, upper: Timestamp) -> list[Update]:
        self.reads += 1
        return await super().updates(collection, lower, upper)


class Place:
    """A table, and those who listen to it."""

    def __init__(self, client: PersistClient) -> None:
        self.client = client
        self.txns = Txns(client, ShardId("txns"))
        self.storage = CountingStorage(client, self.txns)
        self.feeds = Feeds(self.storage)
        self.now = 10

    async def write(self, *rows: tuple[int, int]) -> int:
        """Commit rows as (value, diff); none: time moves on. Returns the timestamp."""
        self.now += 10
        writes = {TABLE: TableWrite(DESC, [((a,), diff) for a, diff in rows])} if rows else {}
        await self.txns.commit(writes, at=Timestamp(self.now))
        return self.now

    async def listen(
        self, *, progress: bool = False, until: int | None = None
    ) -> tuple[Feed, Listener]:
        """From the last write on."""
        hold = await self.storage.hold([COLLECTION], Timestamp(self.now))
        end = None if until is None else Timestamp(until)
        listener = Listener(Timestamp(self.now + 1), hold, progress=progress, until=end)
        return self.feeds.join(COLLECTION, listener), listener

    async def holds(self) -> Counter[int]:
        await self.client.leases.look_after()
        state = await self.client.state(TABLE)
        return Counter(hold.hold_ts for hold in state.holds)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        made = Place(client)
        await made.txns.ensure()
        await client.append_all([], also=[register_table(TABLE)])
        await made.write((0, 1))
        yield made


def changes(batch: Batch) -> list[tuple[int, Row, int]]:
    return [(update.ts, update.row, update.diff) for update in batch.updates]


async def settle() -> None:
    """Let every task go as far as it can without news."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_a_commit_is_read_once_for_all(place: Place) -> None:
    joined = [await place.listen() for _ in range(50)]
    waiting = [asyncio.create_task(feed.next_batch(listener)) for feed, listener in joined]
    await settle()
    assert len(place.feeds) == 1
    at = await place.write((1, 1), (2, 1), (1, -1))
    batches = await asyncio.gather(*waiting)
    assert all(changes(batch) == [(at, (2,), 1)] for batch in batches)
    assert place.storage.reads == 1
    for feed, listener in joined:
        place.feeds.leave(feed, listener)
    assert len(place.feeds) == 0


async def test_time_that_passes_wakes_only_who_asked(place: Place) -> None:
    idle_feed, idle = await place.listen()
    feed, eager = await place.listen(progress=True)
    ending_feed, ending = await place.listen(until=place.now + 25)
    tasks = [
        asyncio.create_task(f.next_batch(w))
        for f, w in ((idle_feed, idle), (feed, eager), (ending_feed, ending))
    ]
    await settle()
    at = await place.write()
    assert (await tasks[1]) == Batch((), Timestamp(at + 1))
    await settle()
    assert [task.done() for task in tasks] == [False, True, False]
    await place.write()
    at = await place.write()
    assert (await tasks[2]).upper > at - 10
    await settle()
    assert not tasks[0].done()
    assert place.storage.reads == 0, "nothing changed, so nothing was read"
    at = await place.write((7, 1))
    assert changes(await tasks[0]) == [(at, (7,), 1)]


@pytest.mark.parametrize("sealed_before", [True, False])
async def test_the_end_of_all_changes_wakes_everyone(place: Place, sealed_before: bool) -> None:
    view = Import(GlobalId("u2"), ShardId("view"), DESC, is_table=False)
    await place.client.create_shard(view.shard_id)
    known = Timestamp(5)
    await place.client.compare_and_append(view.shard_id, DESC, [], MIN_TS, known)
    hold = await place.storage.hold([view], step_back(known))
    listener = Listener(known, hold, progress=False, until=None)
    feed = place.feeds.join(view, listener)
    waiting = None if sealed_before else asyncio.create_task(feed.next_batch(listener))
    await settle()
    await place.client.compare_and_append(view.shard_id, DESC, [], known, EMPTY_FRONTIER)
    await settle()
    batch = await asyncio.wait_for(waiting or feed.next_batch(listener), 5)
    assert (changes(batch), batch.upper) == ([], EMPTY_FRONTIER)
    place.feeds.leave(feed, listener)
    hold.release()


async def test_a_slow_listener_catches_up_in_stretches(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribe_feed, "STRETCH_ROWS", 4)
    feed, quick = await place.listen()
    _, slow = await place.listen()
    told = asyncio.create_task(feed.next_batch(slow))
    await settle()
    expected: list[tuple[int, Row, int]] = []
    for i in range(30):
        quickly = asyncio.create_task(feed.next_batch(quick))
        await settle()
        at = await place.write((i, 1), (-i - 1, 1))
        expected += [(at, (i,), 1), (at, (-i - 1,), 1)]
        assert changes(await quickly) == expected[-2:], "the slow one is not waited for"
    found = changes(await told)
    assert found == expected[:2]
    sizes = []
    while len(found) < len(expected):
        batch = await feed.next_batch(slow)
        sizes.append(len(batch.updates))
        found += changes(batch)
    assert found == expected
    assert max(sizes) <= 4, "what it reads at a time is bounded"


async def test_history_is_held_for_the_slow_and_let_go(place: Place) -> None:
    begun = place.now
    feed, quick = await place.listen()
    _, slow = await place.listen()
    for i in range(5):
        quickly = asyncio.create_task(feed.next_batch(quick))
        await settle()
        await place.write((i, 1))
        await quickly
    # Leases move when that frees enough; here time goes on by much more.
    place.now += 60_000
    at = await place.write((9, 1))
    await feed.next_batch(quick)
    assert set(await place.holds()) == {begun}
    place.feeds.leave(feed, slow)
    slow.close()
    assert set(await place.holds()) == {at}


async def test_who_begins_later_is_told_nothing_from_before(place: Place) -> None:
    feed, early = await place.listen()
    first = asyncio.create_task(feed.next_batch(early))
    await settle()
    hold = await place.storage.hold([COLLECTION], Timestamp(place.now))
    late = Listener(Timestamp(place.now + 15), hold, progress=False, until=None)
    assert place.feeds.join(COLLECTION, late) is feed
    waiting = asyncio.create_task(feed.next_batch(late))
    await settle()
    place.storage.gate.clear()
    await place.write((1, 1))
    at = await place.write((2, 1))
    place.storage.gate.set()
    assert len((await first).updates) == 2
    assert changes(await waiting) == [(at, (2,), 1)]


async def test_nothing_is_read_from_before_the_first_began(place: Place) -> None:
    """A view that was just made can be read at its since, where it is not known yet."""
    view = Import(GlobalId("u2"), ShardId("view"), DESC, is_table=False)
    since = Timestamp(10)
    await place.client.create_shard(view.shard_id, since=since)
    hold = await place.storage.hold([view], since)
    listener = Listener(step_forward(since), hold, progress=False, until=None)
    feed = place.feeds.join(view, listener)
    waiting = asyncio.create_task(feed.next_batch(listener))
    await settle()
    told = [Update((1,), since, 1), Update((2,), Timestamp(15), 1)]
    await place.client.compare_and_append(view.shard_id, DESC, told, since, Timestamp(20))
    assert changes(await asyncio.wait_for(waiting, 5)) == [(15, (2,), 1)]
    place.feeds.leave(feed, listener)
    hold.release()


async def test_a_cancelled_wait_loses_nothing(place: Place) -> None:
    feed, listener = await place.listen()
    first = asyncio.create_task(feed.next_batch(listener))
    await settle()
    at = await place.write((1, 1))
    first.cancel()  # the batch may have been handed over by now
    await settle()
    assert changes(await feed.next_batch(listener)) == [(at, (1,), 1)]


async def test_a_listener_can_be_failed(place: Place) -> None:
    feed, listener = await place.listen()
    waiting = asyncio.create_task(feed.next_batch(listener))
    await settle()
    listener.fail(ValueError("gone"))
    with pytest.raises(ValueError, match="gone"):
        await waiting


async def test_a_feed_that_fails_tells_everyone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, listener = await place.listen()
    waiting = asyncio.create_task(feed.next_batch(listener))
    await settle()

    async def broken(*_: object) -> Look:
        raise ZeroDivisionError

    monkeypatch.setattr(place.storage, "look", broken)
    await place.write((1, 1))
    with pytest.raises(InternalError):
        await waiting
    with pytest.raises(InternalError):
        await feed.next_batch(listener)
    monkeypatch.undo()
    other, again = await place.listen()
    assert other is not feed, "who comes later gets one that works"
    at_last = asyncio.create_task(other.next_batch(again))
    await settle()
    at = await place.write((2, 1))
    assert changes(await at_last) == [(at, (2,), 1)]
