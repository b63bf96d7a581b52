"""Changes of stored collections, each followed once for all subscriptions of this adapter.

A feed looks when its shards move, reads what changed once, and hands it to everyone who waits for
it. Who is busy sending, because the client is slow, is not waited for and nothing is queued up for
it: it reads for itself from where it stands, a stretch at a time, until it has caught up. History
is kept for it by its own hold.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from evertide.controller.storage import Storage
from evertide.dataflow.description import Import
from evertide.persist.coding.updates import consolidate_columns
from evertide.persist.faults import PersistFault
from evertide.persist.leases import ReadHold
from evertide.persist.trouble import until_done
from evertide.vocab.errors import InternalError
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp, step_back
from evertide.vocab.update import Update

# Who catches up reads about so many updates at a time.
STRETCH_ROWS: Final = 20_000
# More updates than this are added up on a thread.
_THREAD_UPDATES: Final = 5_000
# How often a feed looks without having been told, and how often idle listeners' holds follow.
_POLL_S: Final = 1.0
_HOLDS_S: Final = 5.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Batch:
    """All changes below `upper` that were not told before: added up within each timestamp, and in
    order of timestamps."""

    updates: Sequence[Update]
    upper: Timestamp


def add_up(updates: Iterable[Update], types: tuple[SqlType, ...]) -> list[Update]:
    """Equal rows of one timestamp added up, zeros dropped, in order of timestamps."""
    return consolidate_columns(types, updates, MIN_TS).updates()


class Listener:
    """One subscription's place in a feed: all below `position` was told."""

    def __init__(
        self, position: Timestamp, hold: ReadHold, *, progress: bool, until: Timestamp | None
    ) -> None:
        self.position = position
        self._hold = hold
        # Whether it wants to know that time went on without changes; `until`: from then on.
        self._progress = progress
        self._until = until
        self._batch: Batch | None = None
        self._failure: Exception | None = None
        self._told = asyncio.Event()

    def wants(self, batch: Batch) -> bool:
        """Whether the batch is worth waking it for."""
        # Nothing comes after the empty frontier, which is an end that nobody need have named.
        end = EMPTY_FRONTIER if self._until is None else self._until
        return bool(batch.updates) or self._progress or batch.upper >= end

    def move(self, position: Timestamp) -> None:
        """Everything below was told; what came before need not be kept for it."""
        self.position = position
        self.move_hold(position)

    def move_hold(self, position: Timestamp) -> None:
        """It will read nothing below this position."""
        if position != EMPTY_FRONTIER:
            self._hold.move(step_back(position))

    def tell(self, batch: Batch) -> None:
        """Hand over what it waits for."""
        self._batch = batch
        self.move(batch.upper)
        self._told.set()

    def poke(self) -> None:
        """Let it look for itself."""
        self._told.set()

    def fail(self, failure: Exception) -> None:
        """It will get nothing more but this."""
        self._failure = failure
        self._told.set()

    def take(self) -> Batch | None:
        """What was handed over, once; raises what it failed with."""
        if self._failure is not None:
            raise self._failure
        batch, self._batch = self._batch, None
        self._told.clear()
        return batch

    async def wait(self) -> None:
        """Until something was handed over. Cancelling it loses nothing."""
        await self._told.wait()

    def close(self) -> None:
        """It needs no history any more."""
        self._hold.release()


class Feed:
    """Follows one collection for as long as somebody listens."""

    def __init__(self, storage: Storage, collection: Import) -> None:
        self.collection = collection
        self._storage = storage
        # How far it has looked; MIN_TS: not at all yet.
        self._upper = MIN_TS
        self._waiting: dict[Listener, None] = {}
        # Those that wait until their snapshot is known.
        self._arriving: dict[Listener, None] = {}
        self._holds_due = 0.0
        # Why it does not go on.
        self._fault: Exception | None = None
        self._task = asyncio.create_task(self._run())

    @property
    def failed(self) -> bool:
        return self._fault is not None

    def close(self) -> None:
        """Nobody listens any more."""
        self._task.cancel()

    async def next_batch(self, listener: Listener) -> Batch:
        """The changes that come next for this listener. Cancelling it loses nothing."""
        while True:
            batch = listener.take()
            if batch is None and listener.position < self._upper:
                batch = await self._read(listener.position, self._upper, STRETCH_ROWS)
                listener.move(batch.upper)
                if not listener.wants(batch):
                    continue
            if batch is not None:
                return batch
            await self._wait(listener, self._waiting)

    async def wait_beyond(self, listener: Listener, as_of: Timestamp) -> None:
        """Until the collection is known at as_of, before which this listener wants nothing."""
        assert listener.position == as_of + 1, "it begins right after"
        while self._upper <= as_of:
            await self._wait(listener, self._arriving)
            listener.take()

    async def _wait(self, listener: Listener, among: dict[Listener, None]) -> None:
        if self._fault is not None:
            raise self._fault
        among[listener] = None
        try:
            await listener.wait()
        finally:
            among.pop(listener, None)

    async def _run(self) -> None:
        """A fault that does not pass is told to everyone who waits."""
        try:
            with self._storage.following.watching(self.collection) as signal:
                while self._upper != EMPTY_FRONTIER:
                    signal.clear()
                    await until_done("following a shard for subscriptions", self._look)
                    await signal.wait(_POLL_S)
        except PersistFault as fault:
            self._end(fault)
        except Exception:  # this task owns the feed, and others wait for it
            log.exception("a feed of subscriptions failed")
            self._end(InternalError("internal error"))

    def _end(self, fault: Exception) -> None:
        self._fault = fault
        for listener in (*self._waiting, *self._arriving):
            listener.fail(fault)

    async def _look(self) -> None:
        look = await self._storage.look([self.collection])
        upper = look.upper(self.collection)
        if upper <= self._upper:
            return
        lower = self._upper or upper  # what came before the first look is not its to tell
        # Nor is what came before all who wait began: nobody's hold keeps that readable.
        lower = max(lower, min((waiting.position for waiting in self._waiting), default=lower))
        updates: Sequence[Update] = ()
        # Who joins while this reads is caught up with `lower` too.
        if self._waiting and lower < upper and not look.unchanged(self.collection, lower):
            updates = (await self._read(lower, upper, None)).updates
        self._upper = upper
        self._deliver(Batch(updates, upper), lower)
        for listener in self._arriving:
            if listener.position <= upper:
                listener.poke()

    def _deliver(self, batch: Batch, lower: Timestamp) -> None:
        follow = time.monotonic() >= self._holds_due
        if follow:
            self._holds_due = time.monotonic() + _HOLDS_S
        for listener in list(self._waiting):
            if listener.position < lower:
                listener.poke()
                continue
            own = batch
            if listener.position > lower:
                later = [u for u in batch.updates if u.ts >= listener.position]
                own = Batch(later, batch.upper)
            if own.upper > listener.position and listener.wants(own):
                del self._waiting[listener]
                listener.tell(own)
                continue
            listener.position = max(listener.position, own.upper)
            if follow:
                listener.move_hold(listener.position)

    async def _read(self, lower: Timestamp, upper: Timestamp, most: int | None) -> Batch:
        """Changes from lower to upper, or to where there are about `most` of them."""
        if most is not None:
            upper = await self._storage.following.stretch(self.collection, lower, upper, most)
        updates = await self._storage.updates(self.collection, lower, upper)
        types = self.collection.desc.types
        if len(updates) > _THREAD_UPDATES:
            return Batch(await asyncio.to_thread(add_up, updates, types), upper)
        return Batch(add_up(updates, types), upper)


class Feeds:
    """The feeds of one adapter, by collection."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._feeds: dict[Import, tuple[Feed, set[Listener]]] = {}

    def join(self, collection: Import, listener: Listener) -> Feed:
        """The feed of a collection, with this listener counted."""
        known = self._feeds.get(collection)
        if known is None or known[0].failed:
            known = (Feed(self._storage, collection), set())
            self._feeds[collection] = known
        known[1].add(listener)
        return known[0]

    def leave(self, feed: Feed, listener: Listener) -> None:
        """A feed without listeners ends."""
        known = self._feeds.get(feed.collection)
        if known is None or known[0] is not feed:
            return
        known[1].discard(listener)
        if not known[1]:
            feed.close()
            del self._feeds[feed.collection]

    def __len__(self) -> int:
        return len(self._feeds)
