"""Images of views that lie a little back, and what changed since.

Whoever waits for a view to show a change asks for the image of a moment that is new. Bringing an
image there costs far more than a look at the few changes that it lacks. So these are kept beside
it, to be found by the values of a column, until they are many.
"""

from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from evertide.dataflow.description import Import
from evertide.persist.cache import SizedCache
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.faults import BelowSince
from evertide.persist.handle import PersistClient
from evertide.persist.image import Places, TableImage, is_integer
from evertide.persist.images import TableImages
from evertide.persist.state import ShardState
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import ShardId
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp, step_back, step_forward

# A column more or less is another image.
_Key: TypeAlias = tuple[ShardId, int]
# A row, and how often it is there.
_Counted: TypeAlias = tuple[Row, int]
# (row, timestamp, diff)
_Change: TypeAlias = tuple[Row, Timestamp, int]

# So many changes, and so many bytes of them as they are stored, are kept beside an image before it
# is brought forward.
MOST_CHANGES: Final = 5_000
MOST_BYTES: Final = 4 * 1024**2
# The same where a single look has to go through so many of them: a view of few rows, each of which
# changes all the time.
MOST_PICKED: Final = 64
# The rows of images that have no more are kept by key once they are asked for so: columns take
# longer to ask. In larger ones a key may have so many.
_FEW_ROWS: Final = 1_024
_FEW_ROW_BYTES: Final = 1_000
_MOST_FOUND: Final = 1_000
# Images share most of their memory with those of persist/images.py.
_LIMIT_BYTES: Final = 256 * 1024**2


class Near:
    """An image, and the changes that came after it, up to and including a timestamp."""

    __slots__ = ("_by_column", "_by_key", "_changes", "crowded", "image", "size_bytes", "up_to")

    def __init__(self, image: TableImage) -> None:
        self.image = image
        self.up_to = image.as_of
        self.size_bytes = 0
        # Whether a look had to go through many changes.
        self.crowded = False
        self._changes: list[_Change] = []
        self._by_column: dict[int, dict[Datum, list[_Change]]] = {}
        # The image's rows by the values of some columns, where it has few.
        self._by_key: dict[tuple[int, ...], dict[Hashable, list[_Counted]]] = {}

    def __len__(self) -> int:
        """How many changes."""
        return len(self._changes)

    def add(self, updates: UpdateBatch, up_to: Timestamp, size_bytes: int) -> None:
        """More changes, none of them an error."""
        columns = updates.columns
        added = list(zip(columns.rows, columns.timestamps, columns.diffs, strict=True))
        for column, known in self._by_column.items():
            _sort_in(known, column, added)
        self._changes += added
        self.up_to = up_to
        self.size_bytes += size_bytes

    def later(
        self, column: int, values: Iterable[Datum], as_of: Timestamp
    ) -> list[tuple[Row, int]]:
        """What came and went after the image, up to as_of, with these values in a column."""
        if not self._changes:
            return []
        known = self._by_column.get(column)
        if known is None:
            known = self._by_column[column] = {}
            _sort_in(known, column, self._changes)
        found = (change for value in set(values) for change in known.get(value, ()))
        picked = [(row, diff) for row, ts, diff in found if ts <= as_of]
        self.crowded = self.crowded or len(picked) > MOST_PICKED
        return picked

    def having(
        self, columns: tuple[int, ...], values: Row, types: tuple[SqlType, ...]
    ) -> list[_Counted] | None:
        """Rows of the image with these values in these columns, which Python finds equal where SQL
        does; None if they are not found quickly."""
        if sum(map(len, self.image.runs)) > _FEW_ROWS:
            return _searched(self.image, columns, values, types)
        known = self._by_key.get(columns)
        if known is None:
            known = self._by_key[columns] = {}
            key = itemgetter(*columns)
            for counted in _rows_at(self.image, self.image.all_places(), types):
                known.setdefault(key(counted[0]), []).append(counted)
        return known.get(values if len(columns) > 1 else values[0], [])


def _searched(
    image: TableImage, columns: tuple[int, ...], values: Row, types: tuple[SqlType, ...]
) -> list[_Counted] | None:
    stored = image.runs[0].rows
    searched = next((c for c in columns if is_integer(stored.column(c).type)), None)
    if searched is None:
        return None
    places = image.find(searched, np.array([values[columns.index(searched)]], np.int64))
    if sum(map(len, places)) > _MOST_FOUND:
        return None
    found = _rows_at(image, places, types)
    if len(columns) == 1:
        return found
    key = itemgetter(*columns)
    return [counted for counted in found if key(counted[0]) == values]


def _rows_at(image: TableImage, places: Places, types: tuple[SqlType, ...]) -> list[_Counted]:
    return list(zip(image.read(places, types), image.counts(places), strict=True))


def _sort_in(known: dict[Datum, list[_Change]], column: int, added: Sequence[_Change]) -> None:
    for change in added:
        known.setdefault(change[0][column], []).append(change)


class NearImages:
    """Of the views that one process looks for rows in."""

    def __init__(self, persist: PersistClient, images: TableImages) -> None:
        self._persist = persist
        self._images = images
        self._near: SizedCache[_Key, Near] = SizedCache(_LIMIT_BYTES)

    async def at(self, view: Import, as_of: Timestamp) -> Near | None:
        """An image not later than as_of and all that changed from there to as_of, which is known;
        None if there is no image."""
        shard_id, desc = view.shard_id, view.desc
        key = (shard_id, desc.arity)
        while True:
            # From the shard's upper on the view stands still. A state that is known and complete
            # at as_of says as much of it as the newest.
            state = self._persist.machine.known_state(shard_id)
            if state is None or state.upper <= as_of:
                state = await self._persist.state(shard_id)
            until = min(as_of, step_back(state.upper))
            near = self._near.get(key)
            if near is None or near.image.as_of > until:
                break
            if near.up_to >= until:
                return near
            if near.crowded:
                break
            beyond = near.up_to
            new = [batch for batch in state.batches if batch.upper > beyond + 1]
            size_bytes = sum(batch.size_bytes for batch in new)
            if len(near) + sum(batch.rows for batch in new) > MOST_CHANGES:
                break
            if near.size_bytes + size_bytes > MOST_BYTES:
                break
            updates = await self._changes(view, state, beyond, until)
            if updates is None:
                break
            if near.up_to == beyond:
                near.add(updates, until, size_bytes)
                return near
            # Another read was quicker.
        image = await self._images.at(shard_id, desc, until, is_table=False)
        if image is None:
            self._near.drop(key)
            return None
        made = Near(image)
        known = self._near.get(key)
        if known is None or known.up_to <= image.as_of:
            few = min(sum(map(len, image.runs)), _FEW_ROWS)
            self._near.put(key, made, image.nbytes + few * _FEW_ROW_BYTES)
        return made

    async def _changes(
        self, view: Import, state: ShardState, beyond: Timestamp, until: Timestamp
    ) -> UpdateBatch | None:
        """What changed after one timestamp up to another, at which the state is complete; None if
        that can no longer be told, or something of it is an error, which no image has."""
        lower, upper = step_forward(beyond), step_forward(until)
        reader = self._persist.reader
        try:
            found = await reader.updates_in(view.shard_id, view.desc, state, lower, upper)
        except BelowSince:
            return None
        errors = found.columns.errors
        return found if errors is None or not any(errors) else None
