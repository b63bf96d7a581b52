"""Collections over shards: what a table or a materialized view holds, and how far it is known."""

from collections.abc import Sequence

from evertide.catalog.objects import Item, Table
from evertide.dataflow.description import Import
from evertide.persist.contents import Contents
from evertide.persist.handle import PersistClient
from evertide.persist.spark_input import PartFiles, part_files, table_part_files
from evertide.persist.txn import Txns
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update


def collection_of(item: Item) -> Import | None:
    """The durable collection behind an item; None for views and indexes."""
    if item.shard_id is None:
        return None
    return Import(item.global_id, item.shard_id, item.desc, isinstance(item.definition, Table))


class Storage:
    """Reads collections. A table's upper is that of all tables, so tables ask txns for it."""

    def __init__(self, persist: PersistClient, txns: Txns) -> None:
        self._persist = persist
        self._txns = txns

    async def since(self, collection: Import) -> Timestamp:
        """The earliest timestamp at which its contents are exact."""
        return (await self._persist.state(collection.shard_id)).since

    async def sinces(self, collections: Sequence[Import]) -> list[Timestamp]:
        """The sinces of several collections."""
        return [await self.since(collection) for collection in collections]

    async def upper(self, collection: Import) -> Timestamp:
        """The first timestamp not yet complete."""
        if collection.is_table:
            return await self._txns.upper()
        return (await self._persist.state(collection.shard_id)).upper

    async def records(self, collection: Import) -> int:
        """About how many updates a read must look at: what chooses between executors."""
        state = await self._persist.state(collection.shard_id)
        return sum(batch.rows for batch in state.batches)

    async def wait_for_upper(self, collection: Import, beyond: Timestamp) -> Timestamp:
        """Return the upper once it is beyond the timestamp."""
        if collection.is_table:
            return await self._txns.wait_for_upper(beyond)
        return await self._persist.wait_for_upper(collection.shard_id, beyond)

    async def contents(self, collection: Import, as_of: Timestamp) -> Contents:
        """What it holds at the timestamp; waits until that is known."""
        if collection.is_table:
            return await self._txns.table_contents(collection.shard_id, collection.desc, as_of)
        return await self._persist.contents(collection.shard_id, collection.desc, as_of)

    async def updates(self, collection: Import, lower: Timestamp, upper: Timestamp) -> list[Update]:
        """What changed at timestamps from lower up to but not including upper."""
        if collection.is_table:
            return await self._txns.table_updates(
                collection.shard_id, collection.desc, lower, upper
            )
        return await self._persist.read_updates(collection.shard_id, collection.desc, lower, upper)

    async def part_files(self, collection: Import, as_of: Timestamp) -> PartFiles:
        """The same contents as files that Spark reads."""
        shard_id, desc = collection.shard_id, collection.desc
        if collection.is_table:
            return await table_part_files(self._persist, self._txns, shard_id, desc, as_of)
        return await part_files(self._persist, shard_id, desc, as_of)
