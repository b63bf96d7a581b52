"""Lookups of many sessions, answered together.

All that wait share one look at the catalog, one reading of the oracle and one look at the store,
each of which begins after the last of them came: a reading that had begun before could miss a write
that was acknowledged before a lookup was sent. Who comes meanwhile is served by the next round.
"""

import asyncio
import traceback
from collections.abc import Sequence
from typing import Final

import structlog

from evertide.adapter.reading.metrics import count_copied_reads
from evertide.adapter.short_way.asked import Asked, give_up
from evertide.adapter.short_way.copies import Copies
from evertide.adapter.short_way.keyed_rows import KeyedRows
from evertide.adapter.short_way.recipe import CopyKey, Recipe
from evertide.adapter.short_way.views import ViewLookups
from evertide.catalog.faults import CatalogFault
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import ComputeClient
from evertide.controller.stillness import Look
from evertide.controller.storage import Storage
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.faults import PersistFault
from evertide.vocab.timestamp import Timeline, Timestamp

log = structlog.get_logger()

# Whoever got no answer by then goes the ordinary way, on which cancels and timeouts are watched.
PATIENCE_S: Final = 0.25


class Rounds:
    """Those of one adapter, one after the other."""

    def __init__(
        self,
        catalog: CatalogService,
        oracle: TimestampOracle,
        storage: Storage,
        compute: ComputeClient,
    ) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._storage = storage
        self.copies = Copies(storage)
        self._views = ViewLookups(storage, compute)
        self._waiting: list[Asked] = []
        self._running: asyncio.Task[None] | None = None
        # Ends the wait of those who were not answered in time.
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, asked: Asked) -> None:
        """Answer it in the next round, which begins once what has come by now is looked at."""
        if asked.recipe.is_view and not self._views.is_fit(asked.recipe):
            asked.answer(None, Timestamp(0))
            return
        self._waiting.append(asked)
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, []
                await self._round(asked)
        finally:
            self._running = None
            left, self._waiting = self._waiting, []
            give_up(left)

    async def _round(self, asked: Sequence[Asked]) -> None:
        self._set_timer(asked)
        under_way: Sequence[Asked] = ()
        try:
            as_of = await self._oracle.read_ts(Timeline.EPOCH_MS)
            # After as_of could be read: the definitions that it has were in force then.
            snapshot = await self._catalog.current()
            # Of another snapshot: rights, names or indexes may be others.
            current = [one for one in asked if one.recipe.snapshot is snapshot]
            if current:
                under_way = await self._answer(current, snapshot, as_of)
        except (PersistFault, CatalogFault):
            pass  # the ordinary way meets it as well, and knows what to do
        except Exception:  # noqa: BLE001 - a bug here costs time, not an answer
            log.error("a round of lookups failed", traceback=traceback.format_exc())
        finally:
            if self._timer is not None:
                self._timer.cancel()
            give_up([one for one in asked if one not in under_way])

    def _set_timer(self, asked: Sequence[Asked]) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PATIENCE_S, self._lose_patience, asked)

    def _lose_patience(self, asked: Sequence[Asked]) -> None:
        """Neither these nor those who wait for the next round wait any longer."""
        left, self._waiting = self._waiting, []
        self._set_timer(())
        give_up(asked)
        give_up(left)

    async def _answer(
        self, asked: Sequence[Asked], snapshot: Snapshot, as_of: Timestamp
    ) -> Sequence[Asked]:
        """Gives those whose answers come later, by themselves."""
        # One session's cluster may have an index on a view, another's none.
        groups: dict[tuple[CopyKey, bool], list[Asked]] = {}
        for one in asked:
            groups.setdefault((one.recipe.copy_key, one.recipe.is_view), []).append(one)
        later: list[list[Asked]] = []
        views: list[list[Asked]] = []
        for (key, is_view), alike in groups.items():
            found = None if is_view else self.copies.at(key, as_of)
            if found is not None:
                self._tell(key, alike, found, as_of)
            else:
                (views if is_view else later).append(alike)
        if not later and not views:
            return ()
        look = await self._storage.look([alike[0].recipe.collection for alike in later + views])
        for alike in views:
            self._views.begin(alike, snapshot, look, as_of)
        for alike in later:
            found = await self._moved(alike[0].recipe, look, as_of)
            if found is not None:
                self._tell(alike[0].recipe.copy_key, alike, found, as_of)
        return [one for alike in views for one in alike]

    async def _moved(self, recipe: Recipe, look: Look, as_of: Timestamp) -> KeyedRows | None:
        """The rows of a copy that is brought there, if the collection is complete so far."""
        if look.upper(recipe.collection) <= as_of:
            return None
        state = look.state(recipe.collection)
        found = self.copies.find(recipe, state, as_of)
        if found is None and await self.copies.forward(recipe, state, as_of):
            found = self.copies.at(recipe.copy_key, as_of)
        return found

    def _tell(
        self, key: CopyKey, asked: Sequence[Asked], found: KeyedRows, as_of: Timestamp
    ) -> None:
        for one in asked:
            rows = found.get(one.recipe.key(one.parameters))
            one.answer(() if rows is None else one.recipe.rows(rows), as_of)
        self.copies.note_used(key, len(asked))
        count_copied_reads(len(asked))
