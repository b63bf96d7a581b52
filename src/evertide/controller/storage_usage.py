"""How much each collection takes, noted in the catalog now and then.

One process of a generation does this. The history is for people who look at growth and cost, so
what is older than the retention goes in the same transaction that adds the newest.
"""

import asyncio
from collections.abc import Sequence
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

# A new environment has something to show before its first hour is over.
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
        """For ever; a restart does not shorten the interval."""
        while True:
            await asyncio.sleep(await until_done("measuring storage", self._wait_ms) / 1_000)
            await until_done("measuring storage", self.measure)

    async def measure(self) -> None:
        """Note every collection's size once; whoever changes the catalog meanwhile goes first."""
        while True:
            snapshot = await self._catalog.current()
            history = await self._catalog.storage_usage(snapshot.catalog_ts)
            sizes = await self._sizes(snapshot)
            now_ms = self._clock.now_ms()
            measured = transact(snapshot, [RecordStorageUsageOp(sizes)], now_ms=now_ms, user=None)
            updates = (*measured.updates, *_outdated(history, now_ms))
            if not updates or isinstance(
                await self._catalog.compare_and_append(updates, expected_upper=snapshot.upper),
                Appended,
            ):
                return

    async def _wait_ms(self) -> int:
        snapshot = await self._catalog.current()
        history = await self._catalog.storage_usage(snapshot.catalog_ts)
        if not history:
            return FIRST_MS
        last_ms = max(usage.collected_at_ms for usage in history)
        return min(max(0, last_ms + INTERVAL_MS - self._clock.now_ms()), INTERVAL_MS)

    async def _sizes(self, snapshot: Snapshot) -> tuple[tuple[ItemId, int], ...]:
        """What each stored item's newest state refers to, in the blob store and in itself."""
        found: list[tuple[ItemId, int]] = []
        for item in snapshot.items.values():
            if item.shard_id is None:
                continue
            try:
                state = await self._persist.state(item.shard_id)
            except ShardMissing:
                continue  # dropped and purged since the snapshot
            parts = (part for batch in state.batches for part in batch.parts)
            found.append((item.item_id, sum(part.size_bytes for part in parts)))
        return tuple(found)


def _outdated(history: Sequence[StorageUsage], now_ms: int) -> list[CatalogUpdate]:
    oldest_ms = now_ms - RETENTION_MS
    return [CatalogUpdate(usage, -1) for usage in history if usage.collected_at_ms < oldest_ms]
