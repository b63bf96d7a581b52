"""What both ends of a push share: the shard, and how to reach it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evertide.persist.handle import PersistClient
from evertide.persist.push.hub import HubClient
from evertide.persist.push.listen import PostgresNotifier
from evertide.persist.store.file import FileBlob
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8

SHARD = ShardId("pushed")
DESC = relation_desc(("sent_at", INT8))


@dataclass
class Link:
    """One process's way to the shard."""

    client: PersistClient


@asynccontextmanager
async def open_link(kind: str, place: str, hub: Path, blob: Path) -> AsyncIterator[Link]:
    """Under the current epoch, hearing of other processes' changes."""
    store: Store
    notifier: HubClient | PostgresNotifier
    if kind == "SQLite":
        store, notifier = SqliteStore(Path(place)), HubClient(hub)
    else:
        store, notifier = PostgresStore(place), PostgresNotifier(place)
        await store.prepare()
    await notifier.start()
    consensus = store.consensus(await store.current_epoch())
    async with PersistClient(consensus, FileBlob(blob), notifier=notifier) as client:
        yield Link(client)
    await notifier.close()
    await store.close()
