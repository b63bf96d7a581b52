"""Goal: whoever knows a shard's state knows the next one by being told, and never a wrong one.

Method: two processes in one over a file and real sockets, where decoding a state is counted; and
random changes whose news come late, twice, out of order or not at all, each known state compared
with the one that truly had its seqno.
"""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from evertide.persist import machine as machines
from evertide.persist import read
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.machine import Known, Machine
from evertide.persist.news import Heard, News, decode_message, encode_message, news_of
from evertide.persist.push.attention import Attention
from evertide.persist.push.doorbell import Doorbell
from evertide.persist.push.hub import HubClient
from evertide.persist.state import (
    Batch,
    InlinePart,
    ShardChange,
    ShardState,
    append,
    compact,
    initial_state,
    release_hold,
    set_hold,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import AllSet, CompareAndSet, Head
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import Kind, SqlType
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update

S1, S2 = ShardId("s1"), ShardId("s2")
DESC = RelationDesc((ColumnDesc("a", SqlType(Kind.INT4)),))
LARGE = 1024 * 1024


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


def row(number: int, ts: int) -> Update:
    return Update((number,), Timestamp(ts), 1)


async def add(client: PersistClient, shard_id: ShardId, at: int, *updates: Update) -> None:
    outcome = await client.compare_and_append(
        shard_id, DESC, list(updates), Timestamp(at), Timestamp(at + 1)
    )
    assert isinstance(outcome, Appended), outcome


@asynccontextmanager
async def two_processes(directory: Path) -> AsyncIterator[tuple[PersistClient, PersistClient]]:
    """There is no hub at this path: what is heard has come directly."""
    notifiers = [HubClient(directory / "hub.sock") for _ in range(2)]
    stores = [SqliteStore(directory / "c.db") for _ in range(2)]
    epoch = await stores[0].raise_epoch()
    clients = []
    for notifier, store in zip(notifiers, stores, strict=True):
        await notifier.start()
        store.writer.ring = notifier.ring
        clients.append(PersistClient(store.consensus(epoch), MemoryBlob(), notifier=notifier))
    first, second = clients
    yield first, second
    for client, notifier, store in zip(clients, notifiers, stores, strict=True):
        await client.__aexit__()
        await notifier.close()
        await store.close()


async def test_a_state_that_was_told_of_is_not_read(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (ours, theirs):
        await ours.create_shard(S1)
        with theirs.watch.on((S1,)):
            await theirs.state(S1)
            with mock.patch.object(machines, "decode_state", side_effect=AssertionError("read")):
                for ts in range(5):
                    await add(ours, S1, ts, row(ts, ts))
                    await until(lambda ts=ts: _upper(theirs) == ts + 1)  # type: ignore[misc]
                    assert await theirs.state(S1) == await ours.state(S1)
                found = await theirs.read_updates(S1, DESC, Timestamp(1), Timestamp(4))
        assert found == [row(ts, ts) for ts in (1, 2, 3)]


async def test_what_was_missed_is_read(tmp_path: Path) -> None:
    """Who does not wait for a shard is not told of it, and takes none of the later news for true
    before having read it again."""
    async with two_processes(tmp_path) as (ours, theirs):
        await ours.create_shard(S1)
        await theirs.state(S1)
        await add(ours, S1, 0, row(1, 0))  # nobody hears this
        with theirs.watch.on((S1,)) as signal:
            await add(ours, S1, 1, row(2, 1))
            await signal.wait(10)
            assert _upper(theirs) == 0
            assert await theirs.state(S1) == await ours.state(S1)
            await add(ours, S1, 2, row(3, 2))
            await until(lambda: _upper(theirs) == 3)


def _upper(client: PersistClient) -> Timestamp:
    state = client.machine.known_state(S1)
    assert state is not None
    return state.upper


async def test_of_what_lost_a_race_nothing_is_told(tmp_path: Path) -> None:
    """Neither of the set that was refused, nor of others of the same request."""
    store, rung = SqliteStore(tmp_path / "c.db"), list[tuple[list[ShardId], list[News]]]()

    def ring(shard_ids: Collection[ShardId], news: Sequence[News]) -> None:
        rung.append((list(shard_ids), list(news)))

    store.writer.ring = ring
    consensus = store.consensus(await store.raise_epoch())
    state = initial_state()
    news = {shard: News(shard, 2, state) for shard in (S1, S2)}
    for shard in (S1, S2):
        await consensus.compare_and_set_each([CompareAndSet(shard, None, b"1")])
    rung.clear()
    right, wrong = CompareAndSet(S1, 1, b"2", news[S1]), CompareAndSet(S2, 7, b"8", news[S2])
    await consensus.compare_and_set_all([right, wrong])
    await consensus.compare_and_set_each([right, wrong])
    assert all(not told for _, told in rung), "one of them was not done"
    outcome = await consensus.compare_and_set_each([CompareAndSet(S2, 1, b"2", news[S2])])
    assert isinstance(outcome, AllSet)
    assert rung[-1] == ([S2], [news[S2]])
    await store.close()


async def test_more_than_a_message_holds_is_not_told(tmp_path: Path) -> None:
    heard: list[Sequence[Heard]] = []
    named: list[Collection[ShardId] | None] = []
    ours, theirs = Doorbell(tmp_path / "b"), Doorbell(tmp_path / "b")
    theirs.attention.want(None)
    ours.start(lambda _: None, lambda _: None)
    theirs.start(named.append, heard.append)
    part = InlinePart(bytes(200_000), 1)
    large = initial_state(since=Timestamp(1))
    large = msgspec.structs.replace(large, batches=(Batch(MIN_TS, Timestamp(1), MIN_TS, (part,)),))
    assert ours.ring([S1], [News(S1, 2, large)])
    await until(lambda: named == [[S1]])
    assert heard == []
    ours.close()
    theirs.close()


async def test_news_that_make_no_sense_change_nothing() -> None:
    store, state = MemoryStore(), initial_state()
    machine = Machine(store.consensus(await store.raise_epoch()), lambda _: None)
    machine._known[S1] = Known(3, state)
    machine.hear([Heard(S1, 4, msgspec.Raw(b"\xc1"))])
    assert machine.known_state(S1) is state


async def test_a_known_state_does_not_go_back() -> None:
    """Answers of the store, too, may overtake each other."""
    store = MemoryStore()
    machine = Machine(store.consensus(await store.raise_epoch()), lambda _: None)
    old, new = initial_state(), initial_state(since=Timestamp(5))
    machine._known[S1] = Known(7, new)
    learned = machine._learn(S1, Known(None, None), Head(6, machine._encoder.encode(S1, old)))
    assert learned == Known(6, old), "whoever asked then is told what was so then"
    assert machine.known_state(S1) is new


async def test_what_a_store_has_lost_is_not_known_any_more() -> None:
    """As after a failover to a copy that lacks the last commits: they must not come back when the
    store gets to their seqnos again."""
    store = MemoryStore()
    machine = Machine(store.consensus(await store.raise_epoch()), lambda _: None)

    async def put(tag: bytes) -> None:
        def grow(state: ShardState | None) -> ShardState:
            assert state is not None
            part, upper = InlinePart(tag, 1), Timestamp(state.upper + 1)
            after = append(state, lower=state.upper, upper=upper, writer=None, parts=(part,))
            assert isinstance(after, ShardState)
            return after

        assert isinstance(await machine.apply_one(ShardChange(S1, grow)), ShardState)

    await machine.apply_all([ShardChange(S1, lambda _: initial_state())])
    await put(b"kept")
    kept = dict(store._cells.heads)
    await put(b"lost 1")
    await put(b"lost 2")
    store._cells.heads.clear()
    store._cells.heads.update(kept)
    for number in range(3):
        await put(b"new %d" % number)
    state = (await Machine(store.consensus(store._cells.epoch), lambda _: None).read(S1)).state
    assert state is not None
    parts = [part for batch in state.batches for part in batch.parts]
    expected = [b"kept", b"new 0", b"new 1", b"new 2"]
    assert parts == [InlinePart(tag, 1) for tag in expected]


@pytest.mark.parametrize("message", [b"\x91\xa1a", b"\xc0", b"\x93\x07\xc0\x90", b"\xc1", b""])
async def test_of_what_nobody_understands_everything_is_looked_at(
    tmp_path: Path, message: bytes
) -> None:
    """Such as what another version tells: a change it is in any case."""
    told: list[Collection[ShardId] | None] = []
    bell = Doorbell(tmp_path / "b")
    bell.start(told.append, lambda _: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        (address,) = (tmp_path / "b").iterdir()
        other.sendto(message, str(address))
    await until(lambda: told == [None])
    bell.close()


async def test_who_does_not_read_holds_up_no_other(tmp_path: Path) -> None:
    """What lies unread fills the buffer of who sent it."""
    state = initial_state(since=Timestamp(1))
    part = InlinePart(bytes(50_000), 1)
    large = msgspec.structs.replace(state, batches=(Batch(MIN_TS, Timestamp(1), MIN_TS, (part,)),))
    ours, asleep = Doorbell(tmp_path / "b"), list[socket.socket]()
    ours.start(lambda _: None, lambda _: None)
    for number in range(3):
        unread = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        unread.bind(str(tmp_path / "b" / f"asleep{number}"))
        attention = Attention(tmp_path / "b", f"asleep{number}")
        attention.want(None)
        attention.show()
        asleep.append(unread)
    heard: list[Sequence[Heard]] = []
    awake = Doorbell(tmp_path / "b")
    awake.attention.want(None)
    awake.start(lambda _: None, heard.append)
    for number in range(1, 41):
        ours.ring([S1], [News(S1, number, large)])
        await until(lambda number=number: len(heard) == number)  # type: ignore[misc]
    ours.close()
    awake.close()
    for unread in asleep:
        unread.close()


@dataclass
class Chance:
    """Two machines over one store; the first changes, the second hears of it as it may come."""

    rng: random.Random
    store: MemoryStore = field(default_factory=MemoryStore)
    truth: dict[int, ShardState] = field(default_factory=dict)
    under_way: list[bytes] = field(default_factory=list)
    known_by_news: int = 0

    async def play(self) -> None:
        consensus = self.store.consensus(await self.store.raise_epoch())
        writer, reader = (Machine(consensus, lambda _: None) for _ in range(2))
        await writer.apply_all([ShardChange(S1, lambda _: initial_state())])
        await reader.read(S1)
        for _ in range(120):
            await self._change(writer)
            while self.under_way and self.rng.random() < 0.7:
                self._deliver(reader)
                self._check(reader)
            if self.rng.random() < 0.1:
                await reader.read(S1)
                self._check(reader)

    async def _change(self, writer: Machine) -> None:
        before = await writer.read(S1)
        await writer.apply_all([ShardChange(S1, self._transition())])
        after = await writer.read(S1)
        assert after.seqno is not None
        assert after.state is not None
        self.truth[after.seqno] = after.state
        news = news_of(S1, after.seqno, before.state, after.state)
        if news is not None:
            self.under_way.append(encode_message([S1], [news], LARGE))

    def _transition(self) -> Callable[[ShardState | None], ShardState]:
        kind = self.rng.random()

        def change(state: ShardState | None) -> ShardState:
            assert state is not None
            upper, count = state.upper, len(state.batches)
            if kind < 0.6:
                part = InlinePart(self.rng.randbytes(5), 1)
                after = append(
                    state,
                    lower=upper,
                    upper=Timestamp(upper + 2),
                    writer=None,
                    parts=(part,) if kind < 0.5 else (),
                )
            elif kind < 0.75 and count:
                first = self.rng.randrange(count)
                gone = state.batches[first : self.rng.randint(first + 1, count)]
                merged = Batch(gone[0].lower, gone[-1].upper, MIN_TS, gone[0].parts)
                after = compact(state, replaced=gone, replacement=(merged,))
            elif kind < 0.9:
                after = set_hold(state, owner=f"o{self.rng.randrange(3)}", hold_ts=state.since)
            else:
                after = release_hold(state, owner="o1")
            assert isinstance(after, ShardState)
            return after

        return change

    def _deliver(self, reader: Machine) -> None:
        """Mostly the oldest, which may come again."""
        place = 0 if self.rng.random() < 0.8 else self.rng.randrange(len(self.under_way))
        message = self.under_way[place]
        if self.rng.random() < 0.9:
            del self.under_way[place]
        if self.rng.random() < 0.95:
            before = reader._known[S1]
            _, news = decode_message(message)
            reader.hear(news)
            self.known_by_news += reader._known[S1] is not before

    def _check(self, reader: Machine) -> None:
        known = reader._known[S1]
        if known.seqno != 1:
            assert known.seqno is not None
            assert known.state == self.truth[known.seqno]


@pytest.mark.parametrize("seed", range(30))
async def test_whatever_is_known_is_what_had_its_seqno(seed: int) -> None:
    chance = Chance(random.Random(seed))
    await chance.play()
    assert chance.known_by_news > 3, "else this says nothing"


async def test_a_batch_that_is_wanted_whole_is_passed_on_unread(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (ours, theirs):
        await ours.create_shard(S1)
        await add(ours, S1, 0)
        updates = [row(number, ts) for number in range(40) for ts in (1, 2)]
        outcome = await ours.compare_and_append(S1, DESC, updates, Timestamp(1), Timestamp(3))
        assert isinstance(outcome, Appended)
        state = await theirs.state(S1)
        times = (Timestamp(1), Timestamp(3))
        with mock.patch.object(read, "load_part", side_effect=AssertionError("decoded")):
            whole = await theirs.reader.updates_in(S1, DESC, state, *times)
            assert len(whole) == 80
            (part,) = state.batches[-1].parts
            assert isinstance(part, InlinePart)
            assert whole.payload is part.payload
        half = await theirs.reader.updates_in(S1, DESC, state, Timestamp(2), Timestamp(3))
        assert sorted(half) == sorted(u for u in updates if u.ts == 2)
        assert sorted(whole) == sorted(updates)


def test_a_state_without_its_first_batch_has_not_just_grown() -> None:
    part = InlinePart(b"x", 1)
    batches = tuple(Batch(Timestamp(t), Timestamp(t + 1), MIN_TS, (part,)) for t in range(3))
    before = msgspec.structs.replace(initial_state(), batches=batches[:2])
    grown = msgspec.structs.replace(before, batches=batches)
    told = news_of(S1, 9, before, grown)
    assert told is not None
    assert told.rest.batches == batches[2:]
    assert news_of(S1, 9, before, msgspec.structs.replace(grown, batches=batches[1:])) is None
    assert news_of(S1, 9, None, grown) is None
    (heard,) = decode_message(encode_message([S1], [told], LARGE))[1]
    assert heard.state_after(before) == grown
    assert decode_message(encode_message(None, [told], LARGE)) == (None, [])
