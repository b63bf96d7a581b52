"""Lookups of many sessions, answered together.

All that wait share one look at the catalog, one reading of the oracle and one look at the store,
each of which begins after the last of them came: a reading that had begun before could miss a write
that was acknowledged before a lookup was sent. Who comes meanwhile is served by the next round.
"""

import asyncio
import traceback
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import structlog

from evertide.adapter.reading.metrics import count_copied_reads
from evertide.adapter.short_way.copies import Copies
from evertide.adapter.short_way.keyed_rows import KeyedRows
from evertide.adapter.short_way.recipe import CopyKey, Recipe
from evertide.catalog.faults import CatalogFault
from evertide.catalog.service import CatalogService
from evertide.controller.stillness import Look
from evertide.controller.storage import Storage
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.faults import PersistFault
from evertide.vocab.datum import Datum, Row
from evertide.vocab.timestamp import Timeline, Timestamp

log = structlog.get_logger()

# Whoever got no answer by then goes the ordinary way, on which cancels and timeouts are watched.
PATIENCE_S: Final = 0.25

# Takes the rows and their timestamp; None: the statement has to go the ordinary way.
Answer: TypeAlias = Callable[[Sequence[Row] | None, Timestamp], None]


class Asked:
    """One lookup that waits for its answer."""

    __slots__ = ("_answer", "parameters", "recipe")

    def __init__(self, recipe: Recipe, parameters: Sequence[Datum], answer: Answer) -> None:
        self.recipe = recipe
        self.parameters = parameters
        self._answer: Answer | None = answer

    def answer(self, rows: Sequence[Row] | None, as_of: Timestamp) -> None:
        """Tell the rows; only the first answer counts."""
        told, self._answer = self._answer, None
        if told is not None:
            told(rows, as_of)

    def forget(self) -> None:
        """Nobody waits any more."""
        self._answer = None


class Rounds:
    """Those of one adapter, one after the other."""

    def __init__(self, catalog: CatalogService, oracle: TimestampOracle, storage: Storage) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._storage = storage
        self.copies = Copies(storage)
        self._waiting: list[Asked] = []
        self._running: asyncio.Task[None] | None = None
        # Ends the wait of those who were not answered in time.
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, asked: Asked) -> None:
        """Answer it in the next round, which begins once what has come by now is looked at."""
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
            _give_up(left)

    async def _round(self, asked: Sequence[Asked]) -> None:
        self._set_timer(asked)
        try:
            snapshot = await self._catalog.current()
            as_of = await self._oracle.read_ts(Timeline.EPOCH_MS)
            # Of another snapshot: rights, names or indexes may be others.
            current = [one for one in asked if one.recipe.snapshot is snapshot]
            if current:
                await self._answer(current, as_of)
        except (PersistFault, CatalogFault):
            pass  # the ordinary way meets it as well, and knows what to do
        except Exception:  # noqa: BLE001 - a bug here costs time, not an answer
            log.error("a round of lookups failed", traceback=traceback.format_exc())
        finally:
            if self._timer is not None:
                self._timer.cancel()
            _give_up(asked)

    def _set_timer(self, asked: Sequence[Asked]) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PATIENCE_S, self._lose_patience, asked)

    def _lose_patience(self, asked: Sequence[Asked]) -> None:
        """Neither these nor those who wait for the next round wait any longer."""
        left, self._waiting = self._waiting, []
        self._set_timer(())
        _give_up(asked)
        _give_up(left)

    async def _answer(self, asked: Sequence[Asked], as_of: Timestamp) -> None:
        by_key: dict[CopyKey, list[Asked]] = {}
        for one in asked:
            by_key.setdefault(one.recipe.copy_key, []).append(one)
        later = []
        for key, alike in by_key.items():
            found = self.copies.at(key, as_of)
            if found is None:
                later.append((key, alike))
            else:
                self._tell(key, alike, found, as_of)
        if not later:
            return
        look = await self._storage.look([alike[0].recipe.collection for _, alike in later])
        for key, alike in later:
            found = await self._moved(alike[0].recipe, look, as_of)
            if found is not None:
                self._tell(key, alike, found, as_of)

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


def _give_up(asked: Sequence[Asked]) -> None:
    for one in asked:
        one.answer(None, Timestamp(0))
