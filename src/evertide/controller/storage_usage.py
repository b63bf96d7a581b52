"""How much each collection takes, noted in the catalog when that has changed.

One process of a generation does this. The history is for people who look at growth and cost, so
what is older than the retention goes in the same transaction that adds the newest. Every opener
reads it, so sizes that stay the same are noted once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from evertide.catalog.objects import CatalogUpdate, StorageUsage
from evertide.catalog.ops import RecordStorageUsageOp
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.persist.faults import ShardMissing
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.trouble import until_done
from evertide.vocab.clock import Clock
from evertide.vocab.ids import ItemId

# Not while everything starts; and a new environment has something to show soon.
FIRST_MS: Final = 60_000
INTERVAL_MS: Final = 3_600_000
RETENTION_MS: Final = 30 * 24 * 3_600_000


class StorageUsageKeeper:
    """Measures, and appends what it found to the catalog."""

    def __init__(self, catalog: CatalogService, persist: PersistClient, clock: Clock) -> None:
        self._catalog = catalog
        self._persist = persist
        self._clock = clock

    async def run(self) -> None:
        """For ever."""
        await asyncio.sleep(FIRST_MS / 1_000)
        while True:
            await until_done("measuring storage", self.measure)
            await asyncio.sleep(INTERVAL_MS / 1_000)

    async def measure(self) -> None:
        """Note every collection's size once; whoever changes the catalog meanwhile goes first."""
        while True:
            snapshot = await self._catalog.current()
            history = await self._catalog.storage_usage(snapshot.catalog_ts)
            newest = {usage.object_id: usage for usage in history}
            sizes = await self._changed_sizes(snapshot, newest)
            now_ms = self._clock.now_ms()
            measured = transact(snapshot, [RecordStorageUsageOp(sizes)], now_ms=now_ms, user=None)
            updates = (*measured.updates, *_outdated(history, newest, now_ms))
            if not updates or isinstance(
                await self._catalog.compare_and_append(updates, expected_upper=snapshot.upper),
                Appended,
            ):
                return

    async def _changed_sizes(
        self, snapshot: Snapshot, newest: Mapping[ItemId, StorageUsage]
    ) -> tuple[tuple[ItemId, int], ...]:
        """What stored items' newest states refer to, in the blob store and in themselves; also of
        dropped ones, whose rows are kept.

        Only what is not known already: most collections of a large environment do not change.
        """
        found: list[tuple[ItemId, int]] = []
        kept = (dropped.item for dropped in snapshot.dropped_items.values())
        for item in (*snapshot.items.values(), *kept):
            if item.shard_id is None:
                continue
            try:
                state = await self._persist.state(item.shard_id)
            except ShardMissing:
                continue  # dropped and purged since the snapshot
            parts = (part for batch in state.batches for part in batch.parts)
            size_bytes, known = sum(part.size_bytes for part in parts), newest.get(item.item_id)
            if known is None or known.size_bytes != size_bytes:
                found.append((item.item_id, size_bytes))
            await asyncio.sleep(0)  # thousands of states must not keep the process from its work
        return tuple(found)


def _outdated(
    history: Sequence[StorageUsage], newest: Mapping[ItemId, StorageUsage], now_ms: int
) -> list[CatalogUpdate]:
    """All that is past its retention but what is still the newest of its object."""
    oldest_ms = now_ms - RETENTION_MS
    return [
        CatalogUpdate(usage, -1)
        for usage in history
        if usage.collected_at_ms < oldest_ms and newest[usage.object_id] != usage
    ]
