"""Goal: whoever waits for a shard is told, in this process and in others, and not by the poll."""

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from evertide.persist.handle import Append, PersistClient
from evertide.persist.push.hub import HubClient, HubServer
from evertide.persist.push.notify import LocalNotifier
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.store.sqlite_writer import commit_transaction
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD
from tests.support.jitter import JitteryConsensus

Heard = list[Collection[ShardId] | None]


def ts(value: int) -> Timestamp:
    return Timestamp(value)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.002)


async def connected(path: Path, *, direct: bool = False) -> tuple[HubClient, Heard]:
    client, heard = HubClient(path, direct=direct), Heard()
    client.subscribe(heard.append)
    await client.start()
    await until(lambda: heard == [None])
    heard.clear()
    return client, heard


async def test_waiting_ends_as_soon_as_the_upper_moves() -> None:
    store, notifier = MemoryStore(), LocalNotifier()
    epoch = await store.raise_epoch()
    ours, theirs = (
        PersistClient(store.consensus(epoch), MemoryBlob(), notifier=notifier) for _ in range(2)
    )
    await ours.create_shard(SHARD)
    waiting = asyncio.create_task(ours.wait_for_upper(SHARD, ts(0)))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await theirs.compare_and_append(SHARD, DESC, [], ts(0), ts(3))
    async with asyncio.timeout(0.5):
        assert await waiting == 3


async def test_without_a_notice_the_poll_finds_out() -> None:
    store = MemoryStore()
    epoch = await store.raise_epoch()
    ours, theirs = (PersistClient(store.consensus(epoch), MemoryBlob()) for _ in range(2))
    await ours.create_shard(SHARD)
    waiting = asyncio.create_task(ours.wait_for_upper(SHARD, ts(0)))
    await asyncio.sleep(0.01)
    await theirs.compare_and_append(SHARD, DESC, [], ts(0), ts(3))
    async with asyncio.timeout(3):
        assert await waiting == 3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("steps", range(14))
async def test_a_cancelled_append_is_still_announced(steps: int, seed: int) -> None:
    """Whoever gives up in the middle must not leave watchers to the poll."""
    store, notifier = MemoryStore(), LocalNotifier()
    consensus = JitteryConsensus(store.consensus(await store.raise_epoch()), random.Random(seed))
    client = PersistClient(consensus, MemoryBlob(), notifier=notifier)
    await client.create_shard(SHARD)
    heard = Heard()
    notifier.subscribe(heard.append)
    append = asyncio.create_task(client.compare_and_append(SHARD, DESC, [], ts(0), ts(3)))
    for _ in range(steps):
        await asyncio.sleep(0)
    append.cancel()
    await asyncio.sleep(0.01)
    upper = (await client.state(SHARD)).upper
    assert heard == ([[SHARD]] if upper == 3 else [])


@pytest.mark.parametrize("together", [False, True])
async def test_a_commit_whose_asker_left_is_announced_when_it_ends(
    together: bool, tmp_path: Path
) -> None:
    """On SQLite, where no task of its own waits for it."""
    reached, may_end = threading.Event(), threading.Event()
    gated: list[bool] = []

    def commit(
        connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
    ) -> int:
        if gated:
            reached.set()
            assert may_end.wait(5)
        return commit_transaction(connection, statement, arguments)

    store, notifier = SqliteStore(tmp_path / "consensus.db", commit=commit), LocalNotifier()
    client = PersistClient(
        store.consensus(await store.raise_epoch()), MemoryBlob(), notifier=notifier
    )
    await client.create_shard(SHARD)
    heard = Heard()
    notifier.subscribe(heard.append)
    gated.append(True)
    one = Append(SHARD, DESC, [Update(("w", 1), ts(0), 1)], ts(0), ts(3))
    appending = client.append_all([one]) if together else client.append_each([one])
    task: asyncio.Future[object] = asyncio.ensure_future(appending)
    await until(reached.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == []
    gated.clear()
    may_end.set()
    await until(lambda: bool(heard))
    assert heard == [[SHARD]]
    assert (await client.state(SHARD)).upper == 3
    await store.close()


async def test_listening_gives_every_update_once_and_ends_with_the_shard() -> None:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob())
    await client.create_shard(SHARD)
    written = [Update(("w", i), ts(i), 1) for i in range(20)]

    async def write() -> None:
        for update in written:
            upper = ts(update.ts + 1)
            await client.compare_and_append(SHARD, DESC, [update], update.ts, upper)
            if update.ts % 3 == 0:
                await asyncio.sleep(0.002)
        await client.compare_and_append(SHARD, DESC, [], ts(20), EMPTY_FRONTIER)

    writing = asyncio.create_task(write())
    heard, uppers = [], []
    async with asyncio.timeout(5):
        async for updates, upper in client.listen(SHARD, DESC, ts(4)):
            heard += updates
            uppers.append(upper)
    await writing
    assert heard == written[4:]
    assert uppers == sorted(set(uppers))
    assert uppers[-1] == EMPTY_FRONTIER


async def test_the_hub_tells_all_others(tmp_path: Path) -> None:
    hub = HubServer(tmp_path / "hub.sock")
    await hub.start()
    (a, a_heard), (b, b_heard), (c, c_heard) = [
        await connected(tmp_path / "hub.sock") for _ in range(3)
    ]
    a.publish([ShardId("s1"), ShardId("s2")])
    await until(lambda: bool(b_heard and c_heard))
    assert b_heard == c_heard == [["s1", "s2"]]
    assert a_heard == []
    for closing in (a, b, c, hub):
        await closing.close()


async def test_a_hop_is_quick(tmp_path: Path) -> None:
    hub = HubServer(tmp_path / "hub.sock")
    await hub.start()
    (a, _), (b, _) = [await connected(tmp_path / "hub.sock") for _ in range(2)]
    arrived = asyncio.Event()
    b.subscribe(lambda _: arrived.set())
    hops = []
    for _ in range(50):
        arrived.clear()
        started = time.perf_counter()
        a.publish([ShardId("s1")])
        await arrived.wait()
        hops.append((time.perf_counter() - started) / 2)
    assert sorted(hops)[25] < 0.005, "median of a hop, with room for a busy machine"
    for closing in (a, b, hub):
        await closing.close()


async def test_after_losing_the_hub_a_client_is_told_to_look_at_everything(tmp_path: Path) -> None:
    path = tmp_path / "hub.sock"
    hub = HubServer(path)
    await hub.start()
    (a, _), (b, b_heard) = [await connected(path) for _ in range(2)]
    await hub.close()
    await asyncio.sleep(0.05)
    a.publish([ShardId("while-away")])
    hub = HubServer(path)
    await hub.start()
    await until(lambda: None in b_heard)
    a.publish([ShardId("after")])
    await until(lambda: ["after"] in b_heard)
    for closing in (a, b, hub):
        await closing.close()


async def test_a_subscriber_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    """What it missed is coalesced: it gets each id, not each message."""
    path = tmp_path / "hub.sock"
    hub = HubServer(path)
    await hub.start()
    (a, _), (b, b_heard) = [await connected(path) for _ in range(2)]
    reader, writer = await asyncio.open_unix_connection(str(path), limit=1024)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(0.01)
    sent = 30_000
    for number in range(sent):
        a.publish([ShardId(f"shard-{number % 50}-{'x' * 40}")])
        if number % 100 == 0:
            await asyncio.sleep(0)
    a.publish([ShardId("last")])
    await until(lambda: any(ids is not None and "last" in ids for ids in b_heard))
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    received = 0
    async with asyncio.timeout(5):
        while True:
            body = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            received += 1
            if b"last" in body:
                break
    assert received < sent
    writer.close()
    for closing in (a, b, hub):
        await closing.close()


async def test_nonsense_ends_its_connection_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "hub.sock"
    hub = HubServer(path)
    await hub.start()
    (a, _), (b, b_heard) = [await connected(path) for _ in range(2)]
    for nonsense in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x02\xc1\xc1"):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(nonsense)
        assert await reader.read() == b""
        writer.close()
    a.publish([ShardId("s1")])
    await until(lambda: b_heard == [["s1"]])
    for closing in (a, b, hub):
        await closing.close()
