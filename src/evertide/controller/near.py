"""Images of views that lie a little back, and what changed since.

Whoever waits for a view to show a change asks for the image of a moment that is new. Bringing an
image there costs far more than a look at the few changes that it lacks. So these are kept beside
it, to be found by the values of a column, until they are many.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from evertide.dataflow.description import Import
from evertide.persist.cache import SizedCache
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.faults import BelowSince
from evertide.persist.handle import PersistClient
from evertide.persist.image import TableImage
from evertide.persist.images import TableImages
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp, step_back, step_forward

# A column more or less is another image.
_Key: TypeAlias = tuple[ShardId, int]
# (row, timestamp, diff)
_Change: TypeAlias = tuple[Row, Timestamp, int]

# So many changes, and so many bytes of them as they are stored, are kept beside an image before it
# is brought forward.
MOST_CHANGES: Final = 5_000
MOST_BYTES: Final = 4 * 1024**2
# The same where a single look has to go through so many of them: a view of few rows, each of which
# changes all the time.
MOST_PICKED: Final = 64
# Images share most of their memory with those of persist/images.py.
_LIMIT_BYTES: Final = 256 * 1024**2


class Near:
    """An image, and the changes that came after it, up to and including a timestamp."""

    __slots__ = ("_by_column", "_changes", "crowded", "image", "size_bytes", "up_to")

    def __init__(self, image: TableImage) -> None:
        self.image = image
        self.up_to = image.as_of
        self.size_bytes = 0
        # Whether a look had to go through many changes.
        self.crowded = False
        self._changes: list[_Change] = []
        self._by_column: dict[int, dict[Datum, list[_Change]]] = {}

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
            updates = await self._changes(view, beyond, until)
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
            self._near.put(key, made, image.nbytes)
        return made

    async def _changes(
        self, view: Import, beyond: Timestamp, until: Timestamp
    ) -> UpdateBatch | None:
        """What changed after one timestamp up to another; None if that can no longer be told, or
        something of it is an error, which no image has."""
        lower, upper = step_forward(beyond), step_forward(until)
        reader = self._persist.reader
        try:
            found = await reader.update_columns(view.shard_id, view.desc, lower, upper)
        except BelowSince:
            return None
        errors = found.columns.errors
        return found if errors is None or not any(errors) else None
