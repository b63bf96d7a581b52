"""Goal: whoever waits for the stash hears of another process's append, and not by the poll."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from evertide.persist.push.hub import HubClient, HubServer
from evertide.persist.push.listen import PostgresNotifier
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import STASH_SHARD, Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId

ROOT = Path(__file__).parent.parent.parent
Heard = list[Collection[ShardId] | None]
WRITER = """
import asyncio, sys
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.protocol import StashAppend, StashRow
from tests.persist.test_stash_appends_reach_other_processes import opened

async def main():
    async with opened(sys.argv[1]) as (store, notifier, _):
        await store.stash().ensure(["item"])
        epoch = await store.current_epoch()
        client = PersistClient(store.consensus(epoch), MemoryBlob(), notifier=notifier)
        append = StashAppend(0, 0, [StashRow("item", "k", "v", 0, 1)], 0)
        await client.machine.apply_all([], stash=append)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


@asynccontextmanager
async def opened(place: str) -> AsyncIterator[tuple[Store, HubClient | PostgresNotifier, Heard]]:
    """A store by URL or directory, how its changes are told, and what was heard of them."""
    heard = Heard()
    store: Store
    notifier: HubClient | PostgresNotifier
    if place.startswith("postgresql:"):
        store, notifier = PostgresStore(place), PostgresNotifier(place)
    else:
        store, notifier = SqliteStore(Path(place) / "c.db"), HubClient(Path(place) / "hub.sock")
    notifier.subscribe(heard.append)
    await notifier.start()
    try:
        async with asyncio.timeout(20):
            while heard != [None]:
                await asyncio.sleep(0.002)
        heard.clear()
        yield store, notifier, heard
    finally:
        await notifier.close()
        await store.close()


async def check(place: str) -> None:
    async with opened(place) as (store, _, heard):
        await store.raise_epoch()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, place],
            stdin=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ,
        )
        try:
            async with asyncio.timeout(30):
                while not heard and writer.poll() is None:
                    await asyncio.sleep(0.01)
            assert heard == [[STASH_SHARD]]
            assert [row.key for row in (await store.stash().read()).rows] == ["k"]
        finally:
            await asyncio.to_thread(writer.communicate, "\n", 30)
        assert writer.returncode == 0


async def test_by_the_hub(tmp_path: Path) -> None:
    hub = HubServer(tmp_path / "hub.sock")
    await hub.start()
    await check(str(tmp_path))
    await hub.close()


async def test_by_postgresql(postgres_url: str) -> None:
    await check(postgres_url)
