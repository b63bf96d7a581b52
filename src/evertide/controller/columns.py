"""Collections in columns: for replicas, which pass most of what they read on unread, and for reads
that look for a few of many rows.
"""

from evertide.controller.near import NearImages
from evertide.controller.strays import Strays
from evertide.dataflow.description import Import
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.handle import PersistClient
from evertide.persist.image import TableImage
from evertide.persist.images import TableImages
from evertide.persist.snapshot import snapshot_table, table_snapshot_table
from evertide.persist.state import ShardState
from evertide.persist.txn import Txns
from evertide.vocab.timestamp import Timestamp, step_back


class ColumnReads:
    """Nothing here waits long: callers have seen that what they ask for is complete."""

    def __init__(self, persist: PersistClient, txns: Txns, images: TableImages) -> None:
        self._persist = persist
        self._txns = txns
        self._images = images
        self._strays = Strays(self._contents)
        self.near = NearImages(persist, images)

    async def updates(
        self,
        collection: Import,
        lower: Timestamp,
        upper: Timestamp,
        seen: ShardState | None = None,
    ) -> UpdateBatch:
        """What changed at lower <= ts < upper, in whatever form it was stored in, in no order.

        `seen`: its state, of the very look that found it complete up to `upper`. Nothing else will
        do: what this process knows of a shard may be older than what it has seen before.
        """
        shard_id, desc, reader = collection.shard_id, collection.desc, self._persist.reader
        if seen is None:
            found = await reader.update_columns(shard_id, desc, lower, upper)
        else:
            found = await reader.updates_in(shard_id, desc, seen, lower, upper)
        return await self._strays.among(collection, lower, found)

    async def snapshot(self, collection: Import, as_of: Timestamp) -> UpdateBatch:
        """What it holds at as_of, as updates then: all that is needed to build it from nothing."""
        found = await self._contents(collection, as_of)
        return self._strays.seen(collection, found, as_of, await self._txns.upper())

    async def _contents(self, collection: Import, as_of: Timestamp) -> UpdateBatch:
        shard_id, desc = collection.shard_id, collection.desc
        if collection.is_table:
            table = await table_snapshot_table(self._persist, self._txns, shard_id, desc, as_of)
            return UpdateBatch(desc, table=table)
        # From the shard's upper on it stands still, so what it holds there is what it held before.
        last = step_back((await self._persist.state(shard_id)).upper)
        table = await snapshot_table(self._persist, shard_id, desc, min(as_of, last))
        return UpdateBatch(desc, table=table).moved(as_of)

    async def image(self, collection: Import, as_of: Timestamp) -> TableImage | None:
        """What it holds at as_of, to look for rows in; None if it is too large, or in error."""
        shard_id, desc = collection.shard_id, collection.desc
        if collection.is_table:
            return await self._images.at(shard_id, desc, as_of)
        last = step_back((await self._persist.state(shard_id)).upper)
        return await self._images.at(shard_id, desc, min(as_of, last), is_table=False)
