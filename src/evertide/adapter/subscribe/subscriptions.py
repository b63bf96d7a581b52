"""The subscriptions of one adapter: what they share, and who ends them when what they read goes."""

import asyncio
from collections.abc import Collection, Mapping

from prometheus_client import Gauge

from evertide.adapter.subscribe.feed import Feeds
from evertide.adapter.subscribe.stream import Subscription
from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.kinds.temporary import is_temporary_id
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import Storage
from evertide.vocab.errors import SqlError, UndefinedObject, UndefinedTable
from evertide.vocab.ids import ClusterId, ItemId

_active = Gauge("evertide_subscriptions", "Subscriptions that are open.")
_feeds = Gauge("evertide_subscription_feeds", "Collections that are followed for subscriptions.")


class Reads:
    """What a subscription needs to be there, by the names it had when it began."""

    def __init__(
        self, items: Collection[ItemId], cluster_id: ClusterId | None, snapshot: Snapshot
    ) -> None:
        self._names: Mapping[ItemId, str] = {
            item_id: snapshot.qualified_name(snapshot.items[item_id])
            for item_id in items
            if builtin_of(item_id) is None and not is_temporary_id(item_id)  # which nobody drops
        }
        self._cluster_id = cluster_id
        self._cluster = None if cluster_id is None else snapshot.clusters[cluster_id].name

    def gone(self, snapshot: Snapshot) -> SqlError | None:
        """What the subscription ends with if something of it is not there any more."""
        for item_id, name in self._names.items():
            if item_id not in snapshot.items:
                return UndefinedTable(f"subscription ended because relation {name} was dropped")
        if self._cluster_id is not None and self._cluster_id not in snapshot.clusters:
            return UndefinedObject(
                f'subscription ended because cluster "{self._cluster}" was dropped'
            )
        return None


class Subscriptions:
    """Keeps count, and follows the catalog for all of them while there are any."""

    def __init__(self, catalog: CatalogService, storage: Storage) -> None:
        self.feeds = Feeds(storage)
        self._catalog = catalog
        self._open: dict[Subscription, Reads] = {}
        self._watching: asyncio.Task[None] | None = None

    def add(self, subscription: Subscription, reads: Reads) -> None:
        """From now on it ends when what it reads is dropped, even if that has happened already."""
        self._open[subscription] = reads
        subscription.on_close = lambda: self._remove(subscription)
        self._count()
        failure = reads.gone(self._catalog.newest)
        if failure is not None:
            subscription.fail(failure)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    def __len__(self) -> int:
        return len(self._open)

    def _remove(self, subscription: Subscription) -> None:
        self._open.pop(subscription, None)
        self._count()
        if not self._open and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def _count(self) -> None:
        _active.set(len(self._open))
        _feeds.set(len(self.feeds))

    async def _watch(self) -> None:
        """A catalog that cannot be followed any more ends the process, so nobody need be told."""
        start = self._catalog.newest.catalog_ts
        async for change in self._catalog.subscribe_at(start):
            for subscription, reads in list(self._open.items()):
                failure = reads.gone(change.snapshot)
                if failure is not None:
                    subscription.fail(failure)
