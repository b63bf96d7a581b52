"""Removals of rows that were not there, as errors among the changes that replicas follow.

Contents tell of them by themselves (persist/strays.py), changes do not: whether a removal was of a
row that was there is known only to whoever holds all rows. Writers of this generation remove what
they have read. What was written before this process began to follow a collection is looked at once,
and only if something was removed meanwhile.
"""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow.compute as pc

from evertide.dataflow.description import Import
from evertide.expr.row_key import identity_function
from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.persist.contents import Contents
from evertide.persist.strays import stray_error
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp, step_back
from evertide.vocab.update import Update

Snapshot: TypeAlias = Callable[[Import, Timestamp], Awaitable[UpdateBatch]]


@dataclass(slots=True)
class _Followed:
    """One collection. `known_upper`: where it was when it was first followed."""

    known_upper: Timestamp
    looked_at: bool = False
    # Rows that were there less than zero times when they were last seen all together.
    suspects: set[Hashable] = field(default_factory=set)


def told_of_strays(contents: Contents, shard_id: ShardId) -> Contents:
    """The same, and an error if there are some and no other error says so."""
    if not contents.has_strays or contents.errors:
        return contents
    return contents.failing(stray_error(shard_id))


class Strays:
    """Of all collections that one process follows."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._followed: dict[ShardId, _Followed] = {}

    async def among(self, collection: Import, lower: Timestamp, found: UpdateBatch) -> UpdateBatch:
        """These changes from `lower` on; strays are left out, and an error is there instead."""
        if not collection.is_table:
            return found  # a view's errors are among its changes
        if not len(found):
            return found
        followed = self._followed.setdefault(collection.shard_id, _Followed(lower))
        if not followed.looked_at and lower < followed.known_upper and _removes(found):
            followed.looked_at = True
            latest = step_back(followed.known_upper)
            self._suspect(collection, await self._snapshot(collection, latest))
        if not followed.suspects:
            return found
        before = await self._snapshot(collection, step_back(lower))
        self._suspect(collection, before)
        return to_batch(collection.desc, _mended(collection, followed.suspects, before, found))

    def seen(
        self, collection: Import, contents: UpdateBatch, as_of: Timestamp, upper: Timestamp
    ) -> UpdateBatch:
        """What a dataflow begins with; strays are left out, and an error is there instead.

        `upper`: up to where the collection is written by now.
        """
        if not collection.is_table:
            return contents
        self._followed.setdefault(collection.shard_id, _Followed(upper))
        if not len(contents) or not _removes(contents):
            return contents
        self._suspect(collection, contents)
        there = [u for u in contents if u.diff > 0 or u.error is not None]
        if len(there) < len(contents):
            there.append(Update((), as_of, 1, stray_error(collection.shard_id)))
        return to_batch(collection.desc, there)

    def _suspect(self, collection: Import, contents: UpdateBatch) -> None:
        if not _removes(contents):
            return
        name = _namer(collection)
        suspects = self._followed[collection.shard_id].suspects
        suspects |= {name(u.row) for u in contents if u.diff < 0 and u.error is None}


def _removes(batch: UpdateBatch) -> bool:
    if batch.columnar:
        least = pc.min(batch.table["d"]).as_py()
        return least is not None and least < 0
    return min(batch.columns.diffs, default=0) < 0


def _namer(collection: Import) -> Callable[[Row], Hashable]:
    return identity_function(collection.desc.types) or (lambda row: row)


def _mended(
    collection: Import, suspects: set[Hashable], before: UpdateBatch, found: UpdateBatch
) -> list[Update]:
    """The changes as if no row could be there less than zero times, and those of the error.

    Whoever follows may rely on it: what a table removes, it had.
    """
    name, error = _namer(collection), stray_error(collection.shard_id)
    counts = dict.fromkeys(suspects, 0)
    for update in before:
        if update.error is None and (row := name(update.row)) in counts:
            counts[row] += update.diff
    told: list[Update] = []
    changes: dict[Timestamp, list[Update]] = {}
    for update in found:
        if update.error is None and name(update.row) in counts:
            changes.setdefault(update.ts, []).append(update)
        else:
            told.append(update)
    wrong = min(counts.values()) < 0
    for ts in sorted(changes):
        for update in changes[ts]:
            row = name(update.row)
            diff = max(counts[row] + update.diff, 0) - max(counts[row], 0)
            counts[row] += update.diff
            if diff:
                told.append(update._replace(diff=diff))
        now_wrong = min(counts.values()) < 0
        if now_wrong != wrong:
            told.append(Update((), ts, 1 if now_wrong else -1, error))
        wrong = now_wrong
    return told
