"""Changes reach watchers in other processes through PostgreSQL."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from evertide.persist.handle import PersistClient
from evertide.persist.push.listen import PostgresNotifier, channel_of
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.postgres import PostgresStore
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from tests.persist.racing import DESC, SHARD
from tests.support.cut_proxy import Fate, running_cut_proxy
from tests.support.postgres import own_schema, restartable_postgres

ROOT = Path(__file__).parent.parent.parent
Heard = list[Collection[ShardId] | None]


def ts(value: int) -> Timestamp:
    return Timestamp(value)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[PostgresNotifier, Heard]]:
    """A notifier that listens, and what it has heard since."""
    notifier, heard = PostgresNotifier(url), Heard()
    notifier.subscribe(heard.append)
    await notifier.start()
    try:
        await until(lambda: heard == [None])
        heard.clear()
        yield notifier, heard
    finally:
        await notifier.close()


def named(heard: Heard) -> set[ShardId]:
    return {shard_id for ids in heard if ids is not None for shard_id in ids}


async def test_all_others_are_told(postgres_url: str) -> None:
    async with AsyncExitStack() as stack:
        (a, a_heard), (_, b_heard), (_, c_heard) = [
            await stack.enter_async_context(connected(postgres_url)) for _ in range(3)
        ]
        a.publish([ShardId("s2"), ShardId("s1")])
        await until(lambda: bool(b_heard and c_heard))
        assert b_heard == c_heard == [["s1", "s2"]]
        a.publish([ShardId("s3")])
        await until(lambda: len(b_heard) == len(c_heard) == 2)
        assert a_heard == []


async def test_environments_that_share_a_database_do_not_wake_each_other(
    postgres_dsn: str,
) -> None:
    urls = [own_schema(postgres_dsn) for _ in range(2)]
    async with AsyncExitStack() as stack:
        (a, _), (_, same), (_, other) = [
            await stack.enter_async_context(connected(url)) for url in (urls[0], *urls)
        ]
        for number in range(20):
            a.publish([ShardId(f"s{number}")])
            await asyncio.sleep(0)
        await until(lambda: len(named(same)) == 20)
        assert other == []


async def test_waiting_ends_as_soon_as_the_upper_moves(postgres_url: str) -> None:
    """Long before the poll, which comes once a second."""
    async with AsyncExitStack() as stack:
        notifiers = [
            (await stack.enter_async_context(connected(postgres_url)))[0] for _ in range(2)
        ]
        stores = [PostgresStore(postgres_url) for _ in range(2)]
        epoch = await stores[0].raise_epoch()
        ours, theirs = (
            PersistClient(store.consensus(epoch), MemoryBlob(), notifier=notifier)
            for store, notifier in zip(stores, notifiers, strict=True)
        )
        await ours.create_shard(SHARD)
        for upper in (3, 4, 5):
            waiting = asyncio.create_task(ours.wait_for_upper(SHARD, ts(upper - 1)))
            await asyncio.sleep(0.05)
            before = (await theirs.state(SHARD)).upper
            await theirs.compare_and_append(SHARD, DESC, [], before, ts(upper))
            async with asyncio.timeout(0.5):
                assert await waiting == upper
        for store in stores:
            await store.close()


PUBLISHER = """
import asyncio, os, sys
from evertide.persist.push.listen import PostgresNotifier

async def main():
    notifier = PostgresNotifier(os.environ["STORE_URL"])
    await notifier.start()
    notifier.publish(["from-another-process"])
    await asyncio.to_thread(sys.stdin.readline)
    await notifier.close()

asyncio.run(main())
"""


async def test_another_process_is_heard(postgres_url: str) -> None:
    """What it published before it was connected is sent as soon as it is."""
    async with connected(postgres_url) as (_, heard):
        process = subprocess.Popen(
            [sys.executable, "-c", PUBLISHER],
            stdin=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "STORE_URL": postgres_url},
        )
        try:
            await until(lambda: heard == [["from-another-process"]])
        finally:
            await asyncio.to_thread(process.communicate, "\n", 30)
        assert process.returncode == 0


@pytest.mark.parametrize("count", [1_000, 4_000])
async def test_many_ids_go_in_several_messages(postgres_url: str, count: int) -> None:
    """None of them larger than the server takes."""
    async with AsyncExitStack() as stack:
        (a, _), (_, heard) = [
            await stack.enter_async_context(connected(postgres_url)) for _ in range(2)
        ]
        ids = {ShardId(f"shard-{number}-é\"'\\-{'x' * 30}") for number in range(count)}
        a.publish(ids)
        await until(lambda: named(heard) == ids)
        assert None not in heard


async def test_too_many_or_too_long_ids_become_everything(postgres_url: str) -> None:
    async with AsyncExitStack() as stack:
        (a, _), (_, heard) = [
            await stack.enter_async_context(connected(postgres_url)) for _ in range(2)
        ]
        a.publish([ShardId(f"shard-{number}") for number in range(5_000)])
        await until(lambda: heard == [None])
        a.publish([ShardId("x" * 9_000)])
        await until(lambda: heard == [None, None])


async def test_what_comes_while_one_message_is_on_its_way_goes_together(
    postgres_url: str,
) -> None:
    async with AsyncExitStack() as stack:
        (a, _), (_, heard) = [
            await stack.enter_async_context(connected(postgres_url)) for _ in range(2)
        ]
        for number in range(10_000):
            a.publish([ShardId(f"s{number % 50}")])
            if number % 100 == 0:
                await asyncio.sleep(0)
        a.publish([ShardId("last")])
        await until(lambda: ShardId("last") in named(heard))
        assert len(named(heard)) == 51
        assert len(heard) < 1_000


async def test_after_a_gap_everyone_looks_at_everything() -> None:
    """The server goes and comes back; what was published meanwhile is sent afterwards."""
    with restartable_postgres() as server:
        url = own_schema(server.dsn)
        async with connected(url) as (a, _), connected(url) as (_, heard):
            await asyncio.to_thread(server.stop)
            a.publish([ShardId("while-away")])
            await asyncio.to_thread(server.start)
            await until(lambda: None in heard)
            await until(lambda: a._link is not None)
            a.publish([ShardId("after")])
            await until(lambda: ShardId("after") in named(heard))


async def test_a_cut_connection_is_replaced(postgres_url: str) -> None:
    async with (
        running_cut_proxy(postgres_url) as proxy,
        connected(proxy.url(postgres_url)) as (a, a_heard),
        connected(postgres_url) as (b, b_heard),
    ):
        cuts = iter([Fate.IS_LOST, Fate.ANSWER_IS_LOST])
        proxy.choose = lambda _: next(cuts, Fate.ARRIVES)
        for name in ("s0", "s1", "s2"):
            a.publish([ShardId(name)])
            await until(partial(_heard_of, b_heard, name))
        assert None in a_heard
        b.publish([ShardId("back")])
        await until(lambda: ShardId("back") in named(a_heard))


def _heard_of(heard: Heard, name: str) -> bool:
    return ShardId(name) in named(heard)


async def test_without_a_server_publishing_neither_blocks_nor_grows() -> None:
    notifier = PostgresNotifier("postgresql://u@/db?host=/nowhere")
    await notifier.start()
    for number in range(20_000):
        notifier.publish([ShardId(f"s{number}")])
    await asyncio.sleep(0.05)
    assert notifier._unsent.take() is None
    await notifier.close()


async def test_a_listener_that_does_not_read_holds_up_nobody(postgres_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as lazy:
        schema = postgres_url.partition("search_path%3D")[2]
        await lazy.execute(SQL("LISTEN {}").format(Identifier(channel_of(schema))))
        async with connected(postgres_url) as (a, _), connected(postgres_url) as (_, heard):
            filling = [ShardId(f"{number:04}{'x' * 3_000}") for number in range(400)]
            for shard_id in filling:
                a.publish([shard_id])
                await until(lambda: not a._unsent)
            a.publish([ShardId("last")])
            await until(lambda: ShardId("last") in named(heard))
            assert set(filling) <= named(heard)


async def test_nonsense_makes_everyone_look_and_ends_nothing(postgres_url: str) -> None:
    async with connected(postgres_url) as (a, _), connected(postgres_url) as (_, heard):
        channel = channel_of(postgres_url.partition("search_path%3D")[2])
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as rude:
            for nonsense in ("", "{", "[1]", "[null]", '"s1"', "\u00e9"):
                await rude.execute("SELECT pg_notify(%s, %s)", (channel, nonsense))
        await until(lambda: len(heard) == 6)
        assert heard == [None] * 6
        a.publish([ShardId("s1")])
        await until(lambda: heard[6:] == [["s1"]])
