"""Goal: what a process goes by without a look is never more than what the store has.

Method: two clients of one store; one writes, the other has looked before.
"""

from evertide.controller.storage import Storage
from evertide.dataflow.description import Import
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Txns
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT8))
SHARD, TXNS = ShardId("v"), ShardId("txns")
VIEW = Import(GlobalId("v"), SHARD, DESC, is_table=False)


async def append(client: PersistClient, lower: int, upper: int, rows: int) -> None:
    updates = [Update((n,), Timestamp(lower), 1) for n in range(rows)]
    done = await client.compare_and_append(SHARD, DESC, updates, Timestamp(lower), Timestamp(upper))
    assert isinstance(done, Appended)


async def test_an_upper_that_was_noted_trails_until_the_next_look() -> None:
    store, blob = MemoryStore(), MemoryBlob()
    epoch = await store.raise_epoch()
    async with (
        PersistClient(store.consensus(epoch), blob) as writer,
        PersistClient(store.consensus(epoch), blob) as reader,
    ):
        await writer.create_shard(SHARD)
        storage = Storage(reader, Txns(reader, TXNS))
        await append(writer, 0, 5, 1)
        assert await storage.following.noted_upper(VIEW) == 5  # nothing was known before
        await append(writer, 5, 9, 1)
        assert await storage.following.noted_upper(VIEW) == 5
        assert await storage.following.stored_upper(VIEW) == 9
        assert await storage.following.noted_upper(VIEW) == 9


async def test_records_are_counted_as_far_as_it_matters() -> None:
    store = MemoryStore()
    async with PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob()) as client:
        await client.create_shard(SHARD)
        storage = Storage(client, Txns(client, TXNS))
        assert not await storage.following.has_records(VIEW, 1)
        await append(client, 0, 1, 3)
        await append(client, 1, 2, 4)
        assert await storage.records(VIEW) == 7
        assert await storage.following.has_records(VIEW, 7)
        assert not await storage.following.has_records(VIEW, 8)
