"""Goal: a change is told to other processes by the thread that made it, and nobody is left out.

Method: notifiers in one process, over real sockets: one that reads, one that does not, one that was
killed. Without a hub, what is heard can only have come directly.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from evertide.persist.handle import PersistClient
from evertide.persist.news import News
from evertide.persist.push.attention import Attention
from evertide.persist.push.doorbell import Doorbell
from evertide.persist.push.hub import HubClient, HubServer
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

S1, S2 = ShardId("s1"), ShardId("s2")


class Heard:
    def __init__(self) -> None:
        self.told: list[Collection[ShardId] | None] = []

    def __call__(self, shard_ids: Collection[ShardId] | None) -> None:
        self.told.append(shard_ids)

    @property
    def named(self) -> set[ShardId]:
        return {one for told in self.told if told is not None for one in told}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


def listening(directory: Path, heard: Heard) -> Doorbell:
    """A bell that wants to be told of everything."""
    bell = Doorbell(directory)
    bell.attention.want(None)
    bell.start(heard, lambda _: None)
    return bell


def wanting(directory: Path, name: str, *shard_ids: ShardId | None) -> None:
    """Marks of a process that is not one of ours."""
    attention = Attention(directory, name)
    for shard_id in shard_ids:
        attention.want(shard_id)
    attention.show()


async def test_from_any_thread_to_all_others_and_not_to_itself(tmp_path: Path) -> None:
    heard = [Heard() for _ in range(3)]
    bells = [listening(tmp_path / "bells", one) for one in heard]
    thread = threading.Thread(target=bells[0].ring, args=([S1, S2],))
    thread.start()
    await asyncio.to_thread(thread.join)
    await until(lambda: all(one.named == {S1, S2} for one in heard[1:]))
    assert heard[0].told == []
    for bell in bells:
        bell.close()
    assert list((tmp_path / "bells").iterdir()) == []


async def test_more_than_a_message_holds_is_told_as_everything(tmp_path: Path) -> None:
    heard = Heard()
    ours, theirs = listening(tmp_path / "b", Heard()), listening(tmp_path / "b", heard)
    assert ours.ring([ShardId(f"shard-{n}-{'x' * 50}") for n in range(2_000)])
    await until(lambda: heard.told == [None])
    ours.close()
    theirs.close()


async def test_who_was_killed_is_forgotten(tmp_path: Path) -> None:
    directory = tmp_path / "bells"
    heard = Heard()
    ours, theirs = listening(directory, Heard()), listening(directory, heard)
    left = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.bind(str(directory / "left-behind"))
    left.close()
    wanting(directory, "left-behind", S1, S2)
    assert ours.ring([S1])
    await until(lambda: heard.named == {S1})
    assert list(directory.glob("left-behind*")) == []
    ours.close()
    theirs.close()


async def test_who_does_not_keep_up_is_told_by_the_hub(tmp_path: Path) -> None:
    """Nothing is read from the bell of this one: its loop would, so the bell is a bare socket."""
    path = tmp_path / "hub.sock"
    hub = HubServer(path)
    await hub.start()
    ours, theirs, heard = HubClient(path), HubClient(path, direct=False), Heard()
    theirs.subscribe(heard)
    await ours.start()
    await theirs.start()
    await until(lambda: heard.told == [None])
    full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    full.bind(str(tmp_path / "hub.b" / "full"))
    wanting(tmp_path / "hub.b", "full", None)
    for number in range(2_000):
        ours.publish([ShardId(f"shard-{number}")])
        await asyncio.sleep(0)
        if heard.named:
            break
    assert heard.named, "the socket never filled up"
    thread = threading.Thread(target=ours.ring, args=([S2],))
    thread.start()
    await until(lambda: S2 in heard.named)
    thread.join()
    full.close()
    for closing in (ours, theirs, hub):
        await closing.close()


async def test_the_store_tells_others_of_a_commit_by_itself(tmp_path: Path) -> None:
    """The client's own loop does not come into it: nothing is published from there."""
    path = tmp_path / "hub.sock"
    ours, theirs, heard = HubClient(path), HubClient(path), Heard()
    theirs.subscribe(heard)
    await ours.start()
    await theirs.start()
    store = SqliteStore(tmp_path / "c.db")
    threads: list[str] = []

    def ring(shard_ids: Collection[ShardId], news: Sequence[News]) -> None:
        threads.append(threading.current_thread().name)
        ours.ring(shard_ids, news)

    store.writer.ring = ring
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob(), notifier=ours)
    await client.create_shard(S1)
    await client.compare_and_append(S1, RelationDesc(()), [], Timestamp(0), Timestamp(3))
    assert len(threads) == 2, "others are told before the client is, whose loop has more to do"
    await until(lambda: S1 in heard.named)
    assert threading.main_thread().name not in threads
    assert len(heard.told) <= 2, "each change is told once, or both together"
    await client.__aexit__()
    await store.close()
    for closing in (ours, theirs):
        await closing.close()
