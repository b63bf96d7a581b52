"""Changes of a stored collection, and of a constant, for one subscription."""

import asyncio

from evertide.adapter.subscribe.feed import Batch, Feed, Feeds, Listener, add_up
from evertide.controller.storage import Storage
from evertide.dataflow.description import Import
from evertide.expr.budget import Budget
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Relation
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_forward
from evertide.vocab.update import Update


class StoredSource:
    """What a table or materialized view holds at as_of, then its changes."""

    def __init__(
        self,
        storage: Storage,
        feeds: Feeds,
        collection: Import,
        listener: Listener,
        snapshot_at: Timestamp | None,
    ) -> None:
        self._storage = storage
        self._feeds = feeds
        self._collection = collection
        self._listener = listener
        # None: the snapshot was told, or is not wanted.
        self._snapshot_at = snapshot_at
        self._feed: Feed | None = feeds.join(collection, listener)

    async def next_batch(self) -> Batch:
        assert self._feed is not None, "asked for no more once closed"
        as_of = self._snapshot_at
        if as_of is None:
            return await self._feed.next_batch(self._listener)
        await self._feed.wait_beyond(self._listener, as_of)
        contents = await self._storage.contents(self._collection, as_of)
        self._snapshot_at = None
        return Batch(contents.updates(), step_forward(as_of))

    def fail(self, failure: SqlError) -> None:
        self._listener.fail(failure)

    def close(self) -> None:
        if self._feed is not None:
            self._feeds.leave(self._feed, self._listener)
            self._listener.close()
            self._feed = None


class ConstantSource:
    """Rows that never change: told once, and that is all."""

    def __init__(self, relation: Relation, as_of: Timestamp, *, snapshot: bool) -> None:
        self._relation = relation
        self._as_of = as_of
        self._snapshot = snapshot
        self._failure: SqlError | None = None

    async def next_batch(self) -> Batch:
        if self._failure is not None:
            raise self._failure
        budget = Budget()
        try:
            # On a thread: a recursion takes long where it ends late.
            found = await asyncio.to_thread(evaluate, self._relation, _no_collection, budget)
        finally:
            budget.cancel()
        updates = [Update(row, self._as_of, diff) for row, diff in found.rows]
        updates += [Update((), self._as_of, diff, error) for error, diff in found.errors]
        told = add_up(updates, self._relation.types) if self._snapshot else ()
        return Batch(told, EMPTY_FRONTIER)

    def fail(self, failure: SqlError) -> None:
        self._failure = failure

    def close(self) -> None:
        pass


def _no_collection(global_id: GlobalId) -> Collection:
    raise AssertionError(f"a constant reads {global_id}")
