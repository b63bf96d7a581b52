"""Rows with times and diffs, by columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evertide.expr.columnar.codes import identity_codes
from evertide.expr.columnar.column import (
    Column,
    Ints,
    Mask,
    concat,
    from_datums,
    to_datums,
)
from evertide.expr.relation import Types
from evertide.vocab.datum import Datum, Row

# (row, timestamp, diff)
Entry: TypeAlias = tuple[Row, int, int]

# Any odd number with its bits well spread: what the codes of one more column are mixed in by.
_MIX = np.int64(-7046029254386353131)
# So many are sorted much quicker if the order of equal ones need not be kept.
_MANY_ROWS = 512


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Never changed once made: columns may be shared with other batches."""

    types: Types
    columns: tuple[Column, ...]
    times: Ints
    diffs: Ints

    def __len__(self) -> int:
        return len(self.times)

    def take(self, places: Ints | Mask) -> "Batch":
        """The rows at these places, or where the mask is set."""
        columns = tuple([column.take(places) for column in self.columns])
        return Batch(self.types, columns, self.times[places], self.diffs[places])

    def pick(self, columns: Sequence[int]) -> "Batch":
        """These columns, in this order."""
        types = tuple([self.types[i] for i in columns])
        return Batch(types, tuple([self.columns[i] for i in columns]), self.times, self.diffs)

    def with_diffs(self, diffs: Ints) -> "Batch":
        """The same rows with other diffs."""
        return Batch(self.types, self.columns, self.times, diffs)

    def at(self, times: Ints) -> "Batch":
        """The same rows at other times."""
        return Batch(self.types, self.columns, times, self.diffs)

    def rows(self) -> list[Row]:
        """The rows as tuples of datums."""
        if not self.columns:
            return [()] * len(self)
        datums = [to_datums(t, c) for t, c in zip(self.types, self.columns, strict=True)]
        return list(zip(*datums, strict=True))

    def entries(self) -> list[Entry]:
        """The same row by row."""
        return list(zip(self.rows(), self.times.tolist(), self.diffs.tolist(), strict=True))


def batch_of(types: Types, entries: Sequence[Entry]) -> Batch:
    """Entries as columns."""
    if not entries:
        return empty_batch(types)
    rows, times, diffs = zip(*entries, strict=True)
    columns = rows_to_columns(types, rows)
    return Batch(types, columns, np.array(times, np.int64), np.array(diffs, np.int64))


def rows_to_columns(types: Types, rows: Sequence[Row]) -> tuple[Column, ...]:
    """Rows of which there is at least one as columns."""
    datums: Iterable[Sequence[Datum]] = zip(*rows, strict=True)
    return tuple([from_datums(t, d) for t, d in zip(types, datums, strict=True)])


def from_rows(types: Types, rows: Sequence[Row]) -> tuple[Column, ...]:
    """Rows as columns."""
    return rows_to_columns(types, rows) if rows else empty_batch(types).columns


def empty_batch(types: Types) -> Batch:
    """No rows."""
    nothing = np.zeros(0, np.int64)
    return Batch(types, tuple([from_datums(t, []) for t in types]), nothing, nothing)


def concat_batches(types: Types, batches: Sequence[Batch]) -> Batch:
    """One after the other."""
    batches = [batch for batch in batches if len(batch)]
    if not batches:
        return empty_batch(types)
    if len(batches) == 1:
        return batches[0]
    columns = tuple([concat([b.columns[i] for b in batches]) for i in range(len(types))])
    times = np.concatenate([batch.times for batch in batches])
    return Batch(types, columns, times, np.concatenate([batch.diffs for batch in batches]))


def add_up(batch: Batch) -> Batch:
    """Diffs of identical (row, time) added, zeros dropped."""
    if len(batch) < 2:
        return batch.take(batch.diffs != 0) if len(batch) and not batch.diffs[0] else batch
    codes = [batch.times, *_codes(batch)]
    if all_differ(codes):
        return batch.take(batch.diffs != 0) if not batch.diffs.all() else batch
    starts, order = equal_rows(codes)
    sums = np.add.reduceat(batch.diffs[order], starts)
    left = sums != 0
    return batch.take(order[starts][left]).with_diffs(sums[left])


def all_differ(codes: Sequence[Ints]) -> bool:
    """Whether no two rows are equal; it may say no where two only have one hash.

    Sorting the hashes alone takes a fraction of what finding the order of the rows does.
    """
    hashes = np.sort(_mixed(codes))
    return not (hashes[1:] == hashes[:-1]).any()


def share_hash(codes: Sequence[Ints]) -> Mask:
    """Which rows have the hash of another one, and if those are many, the others too.

    All that are equal to another one are among them.
    """
    mixed = _mixed(codes)
    ordered = np.sort(mixed)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return np.zeros(len(mixed), np.bool_)
    if len(twice) > len(mixed) // 8:
        return np.ones(len(mixed), np.bool_)  # telling them apart would cost more than it spares
    return np.isin(mixed, twice)


def _codes(batch: Batch) -> list[Ints]:
    return [code for column in batch.columns for code in identity_codes(column)]


def equal_rows(codes: Sequence[Ints]) -> tuple[Ints, Ints]:
    """(starts, order): in this order equal rows are neighbours; starts are where a row is new.

    Of equal rows the first comes first. Sorted by one hash of all codes, which is far quicker than
    sorting by each; should two different rows have one hash, by each after all.
    """
    mixed = _mixed(codes)
    many = len(mixed) >= _MANY_ROWS
    order = np.argsort(mixed, kind="quicksort" if many else "stable")
    hashes = mixed[order]
    new = np.ones(len(order), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=new[1:])
    # Only neighbours of one hash can be equal, so only these are looked at.
    later = np.flatnonzero(~new)
    one, other = order[later], order[later - 1]
    if any((code[one] != code[other]).any() for code in codes):
        order = np.lexsort(codes)
        new = _new(codes, order)
    starts = np.flatnonzero(new)
    if many and len(starts) < len(order):
        _put_first(order, starts)
    return starts, order


def _put_first(order: Ints, starts: Ints) -> None:
    """Of the rows between two starts the first of all changes places with the one at the start."""
    firsts = np.minimum.reduceat(order, starts)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    order[places[firsts]] = order[starts]
    order[starts] = firsts


def different_rows(codes: Sequence[Ints]) -> tuple[Ints, Ints]:
    """For every row which of the different ones it is, and where each of those is first."""
    starts, order = equal_rows(codes)
    sizes = np.diff(np.append(starts, len(order)))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(starts)).repeat(sizes)
    return numbers, order[starts]


def _mixed(codes: Sequence[Ints]) -> Ints:
    with np.errstate(over="ignore"):
        mixed = codes[0]
        for code in codes[1:]:
            mixed = (mixed ^ (mixed >> np.int64(29))) * _MIX + code
    return mixed


def _new(codes: Sequence[Ints], order: Ints) -> Mask:
    new = np.zeros(len(order), np.bool_)
    new[0] = True
    for code in codes:
        ordered = code[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return new
