"""Goal: what a replica reads in columns is what everybody else reads as rows.

Method: a table with insertions and retractions and a view that stands still since; every stretch of
time and every timestamp, read both ways.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import Derived, Import
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import TableWrite, Txns, register_table
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT8), ("b", TEXT))
TABLE = Import(GlobalId("t"), ShardId("t"), DESC, is_table=True)
VIEW = Import(
    GlobalId("v"),
    ShardId("v"),
    DESC,
    is_table=False,
    derived=Derived((TABLE,), Timestamp(1), GlobalId("v")),
)
EMPTY = Import(
    GlobalId("w"),
    ShardId("w"),
    DESC,
    is_table=False,
    derived=Derived((TABLE,), Timestamp(1), GlobalId("w")),
)
ERROR = '["22012","division by zero"]'


def summed(updates: Sequence[Update]) -> Counter[tuple[Row, int, str | None]]:
    sums: Counter[tuple[Row, int, str | None]] = Counter()
    for update in updates:
        sums[update.row, update.ts, update.error] += update.diff
    return Counter({key: total for key, total in sums.items() if total})


@pytest.fixture
async def storage() -> AsyncIterator[Storage]:
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob()) as client:
        txns = Txns(client, ShardId("txns"))
        await txns.ensure()
        await client.append_all([], also=[register_table(TABLE.shard_id)])
        many = [((i, f"row {i}"), 1) for i in range(300)]
        for at, rows in ((2, many), (4, [((7, "row 7"), -1), ((-1, None), 1)]), (6, many[:5])):
            await txns.commit({TABLE.shard_id: TableWrite(DESC, rows)}, at=Timestamp(at))
        for view in (VIEW, EMPTY):
            await client.create_shard(view.shard_id, since=Timestamp(1), writer=view.global_id)
            held = [Update((1, "x"), Timestamp(3), 2), Update((), Timestamp(6), 1, ERROR)]
            updates = held if view is VIEW else []
            await client.compare_and_append(
                view.shard_id, DESC, updates, Timestamp(1), Timestamp(7), view.global_id
            )
        await txns.commit({}, at=Timestamp(9))
        yield Storage(client, txns)


@pytest.mark.parametrize("collection", [TABLE, VIEW, EMPTY], ids=["table", "view", "empty view"])
async def test_contents(storage: Storage, collection: Import) -> None:
    assert await storage.upper(collection) == 10, "the views stand still"
    for as_of in range(2, 10):
        expected = (await storage.contents(collection, Timestamp(as_of))).updates()
        found = await storage.columns.snapshot(collection, Timestamp(as_of))
        assert summed(found) == summed(expected)
        assert {update.ts for update in found} <= {as_of}


@pytest.mark.parametrize("collection", [TABLE, VIEW, EMPTY], ids=["table", "view", "empty view"])
async def test_changes(storage: Storage, collection: Import) -> None:
    for lower in range(2, 10):
        for upper in range(lower + 1, 11):
            span = Timestamp(lower), Timestamp(upper)
            expected = await storage.updates(collection, *span)
            found = await storage.columns.updates(collection, *span)
            assert summed(found) == summed(expected)
            assert len(found) == len(expected)
