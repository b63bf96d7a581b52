"""Top-k and threshold by columns: all groups that a wide delta touches at once.

The rows that matter, those kept and those changed, are sorted once, by group and order. From then
on a row is its rank, what is there is an array of counts by rank, and each timestamp changes it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evertide.expr.columnar.batch import Batch, add_up, concat_batches
from evertide.expr.columnar.codes import equal_keys
from evertide.expr.columnar.column import Ints, Mask, concat
from evertide.expr.columnar.hashes import hash_keys
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.operators.delta import are_many
from evertide.spark.operators.ranking.prefixes import (
    UNKNOWN,
    Located,
    Prefixes,
    PrefixLayer,
    are_new,
    lengths_of,
    ranges,
)
from evertide.spark.operators.ranking.ranks import RowOrder, are_beyond, rank_rows

# More than any count: no limit.
_ALL: Final = 1 << 62
# By rows a group is read and put in order as a whole, so columns pay so many times earlier.
_EARLIER: Final = 6


def pays(changes: int) -> bool:
    """Whether so many changes are quicker by columns."""
    return are_many(_EARLIER * changes)


@dataclass(frozen=True, slots=True)
class Window:
    """Which of a group's rows are shown: those from `skip` to `end`.

    `net`: as many as there are in all, negative counts included.
    """

    skip: int
    end: int
    net: bool = False

    @classmethod
    def of_limit(cls, offset: int, limit: int | None) -> "Window":
        """The rows from offset to offset + limit."""
        return cls(min(offset, _ALL), _ALL if limit is None else min(offset + limit, _ALL))

    @classmethod
    def of_all_there(cls) -> "Window":
        """Rows with positive multiplicity; rows that are equal in SQL make up for each other."""
        return cls(0, _ALL, net=True)

    @property
    def is_bounded(self) -> bool:
        """Whether the first rows of a group are all that matter."""
        return self.end < _ALL

    def shown(self, counts: Ints, starts: Ints) -> Ints:
        """How often each row is shown; groups start at `starts`, and none is empty."""
        there, ends = running_counts(counts, starts)
        lengths = lengths_of(starts, len(counts))
        end: Ints | int = self.end
        if self.net:
            end = np.maximum(np.add.reduceat(counts, starts), 0).repeat(lengths)
        shown: Ints = np.clip(ends, self.skip, end) - np.clip(ends - there, self.skip, end)
        return shown


def running_counts(counts: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Positive counts, and how many there are in the group up to each row and with it."""
    there = np.maximum(counts, 0)
    ends = there.cumsum()
    before = ends[starts] - there[starts]
    return there, ends - before.repeat(lengths_of(starts, len(counts)))


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What is known of the touched groups, before the tick.

    `old`: rows, with the group of each. `read`: groups that were read whole, of which `complete`
    is true as well. `near`: changes that may matter.
    """

    old: Batch
    groups: Ints
    read: Mask
    complete: Mask
    sizes: Ints
    near: Mask


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Different rows in order: where in `rows` they are, their groups, where groups start, and how
    often each was there before."""

    rows: Batch
    places: Ints
    groups: Ints
    starts: Ints
    counts: Ints


class ColumnRegroup:
    """The columnar side of a RegroupOperator; what it keeps between ticks may be forgotten."""

    def __init__(self, kept: Arrangement, row_order: RowOrder, window: Window) -> None:
        self._kept = kept
        self._key_types = tuple(kept.types[i] for i in kept.key)
        self._row_order = row_order
        self._window = window
        self._prefixes = Prefixes(kept.types) if window.is_bounded else None
        self._pending: ColumnLayer | None = None
        self._prefix: PrefixLayer | None = None

    @property
    def pending(self) -> ColumnLayer | None:
        """The changes of this tick, if it went by columns."""
        return self._pending

    def step(self, delta: Batch) -> Batch | None:
        """How what is shown changes; None if it must be found out row by row."""
        changes = add_up(delta)
        if not len(changes):
            return changes
        keys = [changes.columns[i] for i in self._kept.key]
        hashes = hash_keys(self._key_types, keys, len(changes))
        order = np.argsort(hashes)
        changes, keys, hashes = changes.take(order), [k.take(order) for k in keys], hashes[order]
        new = are_new(hashes)
        firsts, of, names = np.flatnonzero(new), new.cumsum() - 1, hashes[new]
        for sql_type, key in zip(self._key_types, keys, strict=True):
            if not equal_keys(sql_type, key, key.take(firsts[of])).all():
                # Two keys with one hash.
                return None
        known = self._look_up(names, changes.take(firsts), changes, of)
        shown = self._show(names, known, changes, of)
        self._pending = ColumnLayer(hashes, changes)
        return shown

    def _look_up(self, names: Ints, firsts: Batch, changes: Batch, of: Ints) -> _Known:
        """Groups whose first rows are kept, and will suffice, are not read."""
        everything = np.ones(len(changes), np.bool_)
        if self._prefixes is None:
            read = np.ones(len(names), np.bool_)
            groups, old = self._read(names, firsts, read)
            return _Known(old, groups, read, read, np.zeros(len(names), np.int64), everything)
        kept = self._prefixes.find(names)
        unknown, near = self._near(kept, firsts, changes, of)
        left = kept.totals - _sums(of[near], np.maximum(-changes.diffs[near], 0), len(names))
        read = unknown | (~kept.complete & (left < self._window.end))
        used = np.zeros(len(names), np.bool_)
        used[of[near]] = True
        groups, first_rows = kept.rows(used & ~read)
        found, old = self._read(names, firsts, read)
        old = concat_batches(self._kept.types, [first_rows, old])
        groups = np.concatenate([groups, found])
        return _Known(old, groups, read, kept.complete | read, kept.sizes, near | read[of])

    def _read(self, names: Ints, firsts: Batch, read: Mask) -> tuple[Ints, Batch]:
        """All rows of some groups."""
        which = np.flatnonzero(read)
        if not len(which):
            return which, firsts.take(which)
        keys = [firsts.columns[i].take(which) for i in self._kept.key]
        found, old = self._kept.find(keys, names[which])
        return which[found], old

    def _near(self, kept: Located, firsts: Batch, changes: Batch, of: Ints) -> tuple[Mask, Mask]:
        """Groups of which nothing is known; and changes that are not behind the last row kept.

        The first column in order tells that of most.
        """
        key_columns, first_keys = self._kept.key, self._row_order.keys[:1]
        groups, lasts = kept.last_rows((*key_columns, *(key.column for key in first_keys)))
        unknown = kept.sizes == UNKNOWN
        for at, sql_type in enumerate(self._key_types):
            wanted = firsts.columns[key_columns[at]].take(groups)
            unknown[groups[~equal_keys(sql_type, wanted, lasts.columns[at])]] = True
        near = np.ones(len(changes), np.bool_)
        asked = np.flatnonzero((~unknown & ~kept.complete)[of])
        for key in first_keys:
            both = concat([lasts.columns[-1], changes.columns[key.column].take(asked)])
            place = np.zeros(len(unknown), np.int64)
            place[groups] = np.arange(len(groups))
            own = len(groups) + np.arange(len(asked))
            near[asked] = ~are_beyond(self._row_order.codes(key, both), own, place[of[asked]])
        return unknown, near

    def _show(self, names: Ints, known: _Known, changes: Batch, of: Ints) -> Batch:
        """Rank all rows, go through the timestamps, and remember the first rows of each group."""
        net = _sums(of, changes.diffs, len(names))
        if not known.near.all():
            near = np.flatnonzero(known.near)
            changes, of = changes.take(near), of[near]
        if not len(changes):
            return changes
        rows = concat_batches(self._kept.types, [known.old, changes])
        groups = np.concatenate([known.groups, of])
        ranked = rank_rows(self._row_order, groups, rows)
        is_old = ranked.order < len(known.old)
        if not known.complete.all():
            inside = _inside(ranked.ranks, groups[ranked.order], is_old, known.complete)
            ranked, is_old = ranked.where(inside), is_old[inside]
        if is_old.all():
            return changes.take(ranked.order[:0])
        order, ranks = ranked.order, ranked.ranks
        distinct = order[ranked.new]
        counts = _sums(ranks[is_old], rows.diffs[order[is_old]], len(distinct))
        of_rank = groups[distinct]
        starts = np.flatnonzero(are_new(of_rank))
        table = _Table(rows, distinct, of_rank, starts, counts)
        new = order[~is_old]
        shown = self._changes(table, ranks[~is_old], rows.times[new], rows.diffs[new])
        if self._prefixes is not None:
            self._prefix = self._prefix_of(names, known, table, net)
        return shown

    def _changes(self, table: _Table, ranks: Ints, times: Ints, diffs: Ints) -> Batch:
        """Per timestamp, how what is shown of the groups changed then; the counts follow."""
        counts = table.counts
        shown = self._window.shown(counts, table.starts) if counts.any() else np.zeros_like(counts)
        first = int(times[0])
        if (times == first).all():
            np.add.at(counts, ranks, diffs)
            difference = self._window.shown(counts, table.starts) - shown
            places = np.flatnonzero(difference)
            at = np.full(len(places), first, np.int64)
            return table.rows.take(table.places[places]).at(at).with_diffs(difference[places])
        return self._changes_by_time(table, shown, ranks, times, diffs)

    def _changes_by_time(
        self, table: _Table, shown: Ints, ranks: Ints, times: Ints, diffs: Ints
    ) -> Batch:
        """The same where there are several: only groups that change at one are looked at then."""
        counts = table.counts
        lengths = lengths_of(table.starts, len(counts))
        segments = np.arange(len(lengths)).repeat(lengths)
        places: list[Ints] = []
        at: list[Ints] = []
        differences: list[Ints] = []
        for ts in np.unique(times).tolist():
            now = np.flatnonzero(times == ts)
            np.add.at(counts, ranks[now], diffs[now])
            # Ranks ascend, and so do segments.
            touched = segments[ranks[now]]
            touched = touched[are_new(touched)]
            these = ranges(table.starts[touched], lengths[touched])
            ends = lengths[touched].cumsum()
            after = self._window.shown(counts[these], ends - lengths[touched])
            difference = after - shown[these]
            shown[these] = after
            changed = np.flatnonzero(difference)
            places.append(these[changed])
            at.append(np.full(len(changed), ts, np.int64))
            differences.append(difference[changed])
        emitted = table.rows.take(table.places[np.concatenate(places)]).at(np.concatenate(at))
        return emitted.with_diffs(np.concatenate(differences))

    def _prefix_of(self, names: Ints, known: _Known, table: _Table, net: Ints) -> PrefixLayer:
        """The first rows of groups that were looked at.

        More than are shown, so that some may go before the group is read again: of a large group
        more, because reading it costs more.
        """
        there, ends = running_counts(table.counts, table.starts)
        of = table.groups[table.starts]
        totals = np.add.reduceat(there, table.starts)
        sizes = np.where(known.complete[of], totals, np.maximum(known.sizes[of] + net[of], totals))
        wanted = self._window.end + np.sqrt(sizes).astype(np.int64)
        # Cut rarely: what has grown little is kept as it is.
        wanted = np.where(~known.read[of] & (totals <= 2 * wanted), _ALL, wanted)
        lengths = lengths_of(table.starts, len(there))
        nonzero = table.counts != 0
        kept = nonzero & (ends - there < wanted.repeat(lengths))
        cut = np.add.reduceat((nonzero & ~kept).astype(np.int64), table.starts) > 0
        rows = np.add.reduceat(kept.astype(np.int64), table.starts)
        places = np.flatnonzero(kept)
        batch = table.rows.take(table.places[places]).with_diffs(table.counts[places])
        # An empty group could not be told from another one with the same hash.
        sizes = np.where(rows > 0, sizes, UNKNOWN)
        complete = known.complete[of] & ~cut
        totals = np.add.reduceat(np.where(kept, there, 0), table.starts)
        return PrefixLayer(names[of], rows.cumsum(), complete, sizes, totals, batch)

    def commit(self) -> None:
        """Take the tick's changes in."""
        if self._pending is not None and pays(self._pending.records):
            self._kept.insert_columns(self._pending)
        elif self._pending is not None:
            self._kept.insert(self._pending.all_entries())
        if self._prefixes is not None and self._prefix is not None:
            self._prefixes.put(self._prefix)
        self.abort()

    def abort(self) -> None:
        """Forget the tick's changes."""
        self._pending = self._prefix = None

    def forget(self, hashes: Ints) -> None:
        """These groups were changed row by row."""
        if self._prefixes is not None:
            self._prefixes.forget(hashes)

    def size_of_largest(self, hashes: Ints) -> int:
        """Of these few groups, roughly how large the largest is whose first rows suffice."""
        if self._prefixes is None or not len(hashes):
            return UNKNOWN
        sizes = [self._prefixes.size_of_largest(hashes)]
        for source in self._kept.levels.hashed:
            held = source.hashes.searchsorted(hashes, "right") - source.hashes.searchsorted(hashes)
            sizes.append(int(held.max()))
        return max(sizes)


def _inside(ranks: Ints, groups: Ints, is_old: Mask, complete: Mask) -> Mask:
    """Rows of groups known as a whole, and others up to the last row that is kept."""
    last = np.full(len(complete), -1, np.int64)
    # Ascending, so that the last assignment of a group is its greatest rank.
    last[groups[is_old]] = ranks[is_old]
    last[complete] = _ALL
    return ranks <= last[groups]


def _sums(groups: Ints, values: Ints, count: int) -> Ints:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, values)
    return sums
