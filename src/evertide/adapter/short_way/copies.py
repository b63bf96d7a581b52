"""Small collections by key, in this process's memory, brought forward as they change.

What an index holds follows from what is durable, so a copy that was made from the same shard gives
the same rows, without a way to a replica and back. One is made for a collection that is asked for
again and again, and goes when nobody asks any more.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from evertide.adapter.short_way.keyed_rows import KeyedRows, TooHeavy, Unkeepable
from evertide.adapter.short_way.recipe import CopyKey, Recipe
from evertide.controller.storage import Storage
from evertide.persist.faults import PersistFault
from evertide.persist.state import ShardState
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp, step_forward

# A copy is made when somebody asks for the so many-th time.
WORTH_IT: Final = 8
# Collections of more updates, or of more bytes in the store, are asked for where they are.
MOST_ROWS: Final = 100_000
MOST_STORED_BYTES: Final = 8 * 1024**2
# What a copy may take of this process's memory, and what all of them may.
MOST_BYTES: Final = 32 * 1024**2
MOST_COPIES: Final = 64
ALL_BYTES: Final = 128 * 1024**2
# More changes at once than these are not brought over one by one: a copy is made anew.
MOST_CHANGES: Final = 2_000
# So many changes may be brought over for each time that somebody asks.
_CHANGES_EACH: Final = 20
# What nobody has asked for in so long goes.
_UNUSED_S: Final = 60.0
# What could not be copied is not tried again before.
_REFUSED_S: Final = 10.0
_TOO_HEAVY_S: Final = 600.0
# Others are served between so many rows that come, and so many that go: each of these is looked
# for among all rows of its key.
_STEP_ROWS: Final = 1_000
_STEP_GONE: Final = 50

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Copy:
    """What a collection holds at `as_of`, by key."""

    rows: KeyedRows
    as_of: Timestamp
    used_s: float
    # The state that was last looked at, and where its last batch ends if that is not beyond as_of.
    state: ShardState
    boundary: Timestamp | None
    # How often it was asked, and how many changes were brought over for that.
    asked: int = 0
    changes: int = 0

    @property
    def is_worth_it(self) -> bool:
        """Whether it is asked often enough for what it costs."""
        return self.changes <= MOST_CHANGES + _CHANGES_EACH * self.asked

    def stood_still(self, state: ShardState) -> bool:
        """Whether nothing came since: a shard's batches are in order of time, and what became of
        those before the last one holds nothing else."""
        if state is self.state:
            return self.boundary is not None or not state.batches
        if not state.batches:
            return not self.state.batches
        return state.batches[-1].upper == self.boundary


def boundary_of(state: ShardState, as_of: Timestamp) -> Timestamp | None:
    """Where the last batch ends; None if there is none, or it goes on beyond as_of."""
    if not state.batches or state.batches[-1].upper > step_forward(as_of):
        return None
    return state.batches[-1].upper


class Copies:
    """One process's."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._copies: OrderedDict[CopyKey, Copy] = OrderedDict()
        self._making: dict[CopyKey, asyncio.Task[None]] = {}
        # How often each was asked for that has no copy, or until when it is not worth a try.
        self._wished: dict[CopyKey, int] = {}
        self._refused: dict[CopyKey, float] = {}
        self._sweep: asyncio.TimerHandle | None = None

    def at(self, key: CopyKey, as_of: Timestamp) -> KeyedRows | None:
        """The rows if a copy is just there; what was at a timestamp does not change any more."""
        copy = self._copies.get(key)
        return None if copy is None or copy.as_of != as_of else copy.rows

    def find(self, recipe: Recipe, state: ShardState, as_of: Timestamp) -> KeyedRows | None:
        """The rows at a timestamp up to which the collection is complete; None: not so soon.

        `state` is the collection's, read after the timestamp was.
        """
        copy = self._copies.get(recipe.copy_key)
        if copy is None:
            return None
        if copy.as_of > as_of or state.since > as_of or not copy.stood_still(state):
            return None
        if state is not copy.state:
            copy.state = state
        copy.as_of = as_of
        return copy.rows

    async def forward(self, recipe: Recipe, state: ShardState, as_of: Timestamp) -> bool:
        """Bring a copy to a later time if it takes few changes; else another one is made."""
        key = recipe.copy_key
        copy = self._copies.get(key)
        if copy is None:
            self._wish(recipe, as_of)
            return False
        if copy.as_of > as_of or state.since > copy.as_of or _unseen(state, copy) > MOST_CHANGES:
            self._drop(key)
            self._make(recipe, as_of)
            return False
        lower, upper = step_forward(copy.as_of), step_forward(as_of)
        # Whoever comes meanwhile must not take it for what it was, nor for what it will be.
        del self._copies[key]
        found = await self._storage.columns.updates(recipe.collection, lower, upper)
        columns = found.columns
        copy.changes += len(columns)
        if not copy.is_worth_it or (columns.errors is not None and any(columns.errors)):
            self._refuse(key)
            return False
        try:
            await _bring(copy.rows, list(zip(columns.rows, columns.diffs, strict=True)))
        except Unkeepable as fault:
            self._refuse(key, fault)
            return False
        copy.as_of, copy.state, copy.boundary = as_of, state, boundary_of(state, as_of)
        self._copies[key] = copy
        self._make_room()
        return True

    def note_used(self, key: CopyKey, times: int) -> None:
        """So many got their rows from it."""
        copy = self._copies.get(key)
        if copy is not None:
            copy.asked += times
            copy.used_s = asyncio.get_running_loop().time()
            self._copies.move_to_end(key)

    def under_way(self) -> "list[asyncio.Task[None]]":
        """Copies that are being made."""
        return list(self._making.values())

    def _wish(self, recipe: Recipe, as_of: Timestamp) -> None:
        key = recipe.copy_key
        wished = self._wished.get(key, 0) + 1
        if len(self._wished) > 10 * MOST_COPIES:
            self._wished.clear()
        self._wished[key] = wished
        if wished >= WORTH_IT:
            del self._wished[key]
            self._make(recipe, as_of)

    def _make(self, recipe: Recipe, as_of: Timestamp) -> None:
        key = recipe.copy_key
        now_s = asyncio.get_running_loop().time()
        if key in self._making or now_s < self._refused.get(key, now_s):
            return
        self._refused.pop(key, None)
        self._making[key] = asyncio.create_task(self._made(recipe, as_of))

    async def _made(self, recipe: Recipe, as_of: Timestamp) -> None:
        """Read the collection, in steps between which others are served."""
        key = recipe.copy_key
        refused: Exception | None = None
        try:
            copy = await self._read(recipe, as_of)
        except (PersistFault, Unkeepable) as fault:
            log.info("no copy of a collection", shard_id=key[0], reason=repr(fault))
            copy, refused = None, fault
        finally:
            del self._making[key]
        if copy is None:
            self._refuse(key, refused)
            return
        self._copies[key] = copy
        self._make_room()
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(_UNUSED_S, self._forget_unused)

    async def _read(self, recipe: Recipe, as_of: Timestamp) -> Copy | None:
        collection, storage = recipe.collection, self._storage
        state = (await storage.look([collection])).state(collection)
        stored_bytes = sum(batch.size_bytes for batch in state.batches)
        records = sum(batch.rows for batch in state.batches)
        if records > MOST_ROWS or stored_bytes > MOST_STORED_BYTES:
            return None
        contents = await storage.contents(collection, as_of)
        if contents.errors:
            return None
        rows = KeyedRows(collection.desc.types, recipe.copy_key[2], MOST_BYTES)
        await _bring(rows, contents.rows)
        now_s = asyncio.get_running_loop().time()
        return Copy(rows, as_of, now_s, state, boundary_of(state, as_of))

    def _refuse(self, key: CopyKey, why: Exception | None = None) -> None:
        if len(self._refused) > 10 * MOST_COPIES:
            self._refused.clear()
        for_s = _TOO_HEAVY_S if isinstance(why, TooHeavy) else _REFUSED_S
        self._refused[key] = asyncio.get_running_loop().time() + for_s

    def _drop(self, key: CopyKey) -> None:
        self._copies.pop(key, None)

    def _make_room(self) -> None:
        """What was used longest ago goes."""
        total = sum(copy.rows.size_bytes for copy in self._copies.values())
        while len(self._copies) > 1 and (len(self._copies) > MOST_COPIES or total > ALL_BYTES):
            _, gone = self._copies.popitem(last=False)
            total -= gone.rows.size_bytes

    def _forget_unused(self) -> None:
        loop = asyncio.get_running_loop()
        unused = [k for k, c in self._copies.items() if loop.time() > c.used_s + _UNUSED_S]
        for key in unused:
            self._drop(key)
        self._sweep = loop.call_later(_UNUSED_S, self._forget_unused) if self._copies else None


async def _bring(rows: KeyedRows, changes: Sequence[tuple[Row, int]]) -> None:
    """Add changes, and serve others in between; rows go after all that come."""
    come = [change for change in changes if change[1] > 0]
    for start in range(0, len(come), _STEP_ROWS):
        rows.come(come[start : start + _STEP_ROWS])
        await asyncio.sleep(0)
    gone = [change for change in changes if change[1] < 0]
    for start in range(0, len(gone), _STEP_GONE):
        rows.go(gone[start : start + _STEP_GONE])
        await asyncio.sleep(0)


def _unseen(state: ShardState, copy: Copy) -> int:
    """How many updates may have come after the copy."""
    found = 0
    for batch in reversed(state.batches):
        if batch.upper <= step_forward(copy.as_of):
            break
        found += batch.rows
        if found > MOST_CHANGES:
            break
    return found
