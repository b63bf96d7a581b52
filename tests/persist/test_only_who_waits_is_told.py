"""Goal: a process is told of the shards that are waited for in it, at once, and of no others.

Method: notifiers of several processes in one, over real sockets and without a hub, and without the
slow poll wherever something is waited for: what is heard can only have come directly.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evertide.persist.handle import PersistClient
from evertide.persist.push import watch
from evertide.persist.push.hub import HubClient
from evertide.persist.push.notify import OnChange
from evertide.persist.push.watch import Watch
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

S1, S2, LAST = ShardId("s1"), ShardId("s2"), ShardId("last")


class Heard:
    """Notes what a process is told."""

    def __init__(self) -> None:
        self.named: set[ShardId] = set()

    def __call__(self, shard_ids: Collection[ShardId] | None) -> None:
        assert shard_ids is not None, "few shards are named"
        self.named.update(shard_ids)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


@asynccontextmanager
async def processes(directory: Path, count: int) -> AsyncIterator[list[HubClient]]:
    """There is no hub at this path."""
    clients = [HubClient(directory / "hub.sock") for _ in range(count)]
    for client in clients:
        await client.start()
    yield clients
    for client in clients:
        await client.close()
    assert list((directory / "hub.b").iterdir()) == [], "nothing is left behind"


async def test_of_what_is_wanted_and_no_longer(tmp_path: Path) -> None:
    """The last shard says that what was rung before it has come."""
    async with processes(tmp_path, 2) as (ours, theirs):
        heard = Heard()
        choice = theirs.subscribe_chosen(heard)
        choice.want(S1)
        choice.want(LAST)
        ours.publish([S2])
        ours.publish([S1, S2])
        ours.publish([LAST])
        await until(lambda: LAST in heard.named)
        assert heard.named == {S1, S2, LAST}, "what changes together is told together"
        heard.named.clear()
        choice.unwant(S1)
        ours.publish([S1])
        ours.publish([S2])
        ours.publish([LAST])
        await until(lambda: LAST in heard.named)
        assert heard.named == {LAST}


async def test_of_everything_where_many_are_waited_for(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (ours, theirs):
        heard = Heard()
        choice = theirs.subscribe_chosen(heard)
        many = [ShardId(f"shard-{number}") for number in range(20)]
        for shard_id in many:
            choice.want(shard_id)
        assert len(list((tmp_path / "hub.b").glob("*@*"))) == 1
        ours.publish([S1])
        await until(lambda: heard.named == {S1})
        for shard_id in many[2:]:
            choice.unwant(shard_id)
        ours.publish([S2])
        ours.publish([many[0]])
        await until(lambda: many[0] in heard.named)
        assert heard.named == {S1, many[0]}


async def test_two_who_want_a_shard_are_told_until_the_last_has_gone(tmp_path: Path) -> None:
    async with processes(tmp_path, 2) as (ours, theirs):
        one, other = Heard(), Heard()
        first, second = theirs.subscribe_chosen(one), theirs.subscribe_chosen(other)
        first.want(S1)
        second.want(S1)
        first.end()
        ours.publish([S1])
        await until(lambda: other.named == {S1})
        assert one.named == set()


class Noting:
    """A notifier, and what one subscriber wants of it; notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def publish(self, shard_ids: Collection[ShardId]) -> None:
        raise AssertionError(f"nothing changes here: {shard_ids}")

    def subscribe(self, on_change: OnChange) -> Callable[[], None]:
        raise AssertionError(f"a choice is offered: {on_change}")

    def subscribe_chosen(self, on_change: OnChange) -> "Noting":
        self.told = on_change
        return self

    def want(self, shard_id: ShardId) -> None:
        self.asked.append(f"want {shard_id}")

    def unwant(self, shard_id: ShardId) -> None:
        self.asked.append(f"unwant {shard_id}")

    def end(self) -> None:
        self.asked.append("end")


async def test_who_waits_says_so_before_looking() -> None:
    """Else a change between look and mark would be neither seen nor told."""
    notifier = Noting()
    watching = Watch(notifier)

    async def look() -> int:
        notifier.asked.append("look")
        return 1

    await watching.until((S1, S2), look, lambda _: True)
    with watching.on((S1,)), watching.on((S1,)):
        pass
    watching.close()
    assert notifier.asked[:3] == ["want s1", "want s2", "look"]
    assert notifier.asked[3:5] == ["unwant s1", "unwant s2"]
    assert notifier.asked[-2:] == ["unwant s1", "end"], "once nobody watches it"


async def test_a_commit_of_another_process_ends_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_POLL_S", 3_600.0)
    async with processes(tmp_path, 3) as (ours, theirs, others):
        heard = Heard()
        others.subscribe_chosen(heard)
        store, same = (SqliteStore(tmp_path / "c.db") for _ in range(2))
        store.writer.ring = theirs.ring
        epoch = await store.raise_epoch()
        writer = PersistClient(store.consensus(epoch), MemoryBlob(), notifier=theirs)
        reader = PersistClient(same.consensus(epoch), MemoryBlob(), notifier=ours)
        await writer.create_shard(S1)
        for upper in range(1, 50):
            waiting = asyncio.create_task(reader.wait_for_upper(S1, Timestamp(upper - 1)))
            if upper % 2:
                await asyncio.sleep(0)
            await writer.compare_and_append(
                S1, RelationDesc(()), [], Timestamp(upper - 1), Timestamp(upper)
            )
            async with asyncio.timeout(10):
                assert await waiting == upper
        assert heard.named == set(), "nobody waits there"
        for client in (writer, reader):
            await client.__aexit__()
        for opened in (store, same):
            await opened.close()
