"""The first rows of each group, kept ready by columns, so that large groups need not be read again.

What is kept of a group is all its rows up to some row, the last one kept: each with its net count,
negative ones too. A change beyond that row cannot change what is kept; a change up to it can be
applied to it. Only when so many were taken away that too few are left is the group read again.

As the rows follow from the arrangement below, they may be forgotten at any time. They lie in
layers, newest first, of which the first that has a group is right about it. Layers never change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evertide.expr.columnar.batch import Batch, concat_batches, empty_batch
from evertide.expr.columnar.column import Ints, Mask
from evertide.expr.relation import Types

# Rows of all groups that one node may keep ready; by columns they are small.
MOST_PREFIX_ROWS: Final = 1_000_000
# The size of a group of which nothing is known.
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class PrefixLayer:
    """Groups by the hash of their key, sorted; `ends` says where the rows of each end.

    `complete`: what is kept of the group is all of it. `sizes`: how many rows the group has,
    roughly; UNKNOWN where what older layers have is no longer right. `totals`: the sum of the
    positive counts that are kept.
    """

    hashes: Ints
    ends: Ints
    complete: Mask
    sizes: Ints
    totals: Ints
    batch: Batch

    @property
    def weight(self) -> int:
        """What merging it costs."""
        return len(self.hashes) + len(self.batch)

    def rows(self, groups: Ints) -> tuple[Ints, Ints]:
        """Where the rows of these groups are, one group after the other, and how many each has."""
        ends = self.ends[groups]
        lengths = ends - np.where(groups > 0, self.ends[groups - 1], 0)
        return ranges(ends - lengths, lengths), lengths

    def pick(self, groups: Ints) -> "PrefixLayer":
        """These groups, in this order."""
        rows, lengths = self.rows(groups)
        return PrefixLayer(
            self.hashes[groups],
            lengths.cumsum(),
            self.complete[groups],
            self.sizes[groups],
            self.totals[groups],
            self.batch.take(rows),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """What is known of some groups: for each layer, which of them it has, and where.

    `complete`, `sizes` and `totals` are as in a layer, for each group that was asked for.
    """

    types: Types
    parts: tuple[tuple[PrefixLayer, Ints, Ints], ...]
    complete: Mask
    sizes: Ints
    totals: Ints

    def last_rows(self, columns: Sequence[int]) -> tuple[Ints, Batch]:
        """Of each known group the last row that is kept, some columns of it; and which group."""
        types = tuple(self.types[i] for i in columns)
        groups: list[Ints] = []
        batches: list[Batch] = []
        for layer, of, at in self.parts:
            known = layer.sizes[at] != UNKNOWN
            groups.append(of[known])
            batches.append(layer.batch.pick(columns).take(layer.ends[at[known]] - 1))
        return _joined(groups), concat_batches(types, batches)

    def rows(self, wanted: Mask) -> tuple[Ints, Batch]:
        """The rows of the groups in the mask, with the group of each."""
        groups: list[Ints] = []
        batches: list[Batch] = []
        for layer, of, at in self.parts:
            used = wanted[of]
            rows, lengths = layer.rows(at[used])
            groups.append(of[used].repeat(lengths))
            batches.append(layer.batch.take(rows))
        return _joined(groups), concat_batches(self.types, batches)


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """All places of these ranges, one range after the other."""
    ends = lengths.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    places: Ints = np.arange(total) + (starts - ends + lengths).repeat(lengths)
    return places


def lengths_of(starts: Ints, total: int) -> Ints:
    """How long each of these parts of a whole is. numpy's own `diff` takes ten times as long."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[-1:] = total
    lengths: Ints = ends - starts
    return lengths


def are_new(codes: Ints) -> Mask:
    """Where a code differs from the one before it, and where the first is."""
    new = np.empty(len(codes), np.bool_)
    new[:1] = True
    np.not_equal(codes[1:], codes[:-1], out=new[1:])
    return new


class Prefixes:
    """Of each group that was looked at by columns lately, its first rows."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._layers: list[PrefixLayer] = []
        self._stale: set[int] = set()

    def find(self, hashes: Ints) -> Located:
        """What is known of each of these different groups."""
        self._push_stale()
        complete = np.zeros(len(hashes), np.bool_)
        sizes = np.full(len(hashes), UNKNOWN, np.int64)
        totals = np.zeros(len(hashes), np.int64)
        missing = np.arange(len(hashes))
        parts: list[tuple[PrefixLayer, Ints, Ints]] = []
        for layer in self._layers:
            at = np.minimum(layer.hashes.searchsorted(hashes[missing]), len(layer.hashes) - 1)
            hit = layer.hashes[at] == hashes[missing]
            of, at = missing[hit], at[hit]
            complete[of], sizes[of], totals[of] = (
                layer.complete[at], layer.sizes[at], layer.totals[at],
            )  # fmt: skip
            parts.append((layer, of, at))
            missing = missing[~hit]
        return Located(self._types, tuple(parts), complete, sizes, totals)

    def size_of_largest(self, hashes: Ints) -> int:
        """Of these few groups, how large the largest is of which only some rows are kept."""
        largest = UNKNOWN
        asked = np.array([name for name in hashes.tolist() if name not in self._stale], np.int64)
        for layer in self._layers:
            at = np.minimum(layer.hashes.searchsorted(asked), len(layer.hashes) - 1)
            hit = layer.hashes[at] == asked
            partly = at[hit][~layer.complete[at[hit]]]
            largest = max([largest, *layer.sizes[partly].tolist()])
            asked = asked[~hit]
        return largest

    def put(self, layer: PrefixLayer) -> None:
        """What is known now of some groups."""
        if len(layer.hashes):
            self._push_stale()
            self._push(layer)

    def forget(self, hashes: Ints) -> None:
        """These groups were changed by somebody else."""
        if self._layers:
            self._stale.update(hashes.tolist())

    def _push_stale(self) -> None:
        if self._stale:
            hashes = np.array(sorted(self._stale), np.int64)
            self._stale = set()
            self._push(_unknown(self._types, hashes))

    def _push(self, layer: PrefixLayer) -> None:
        """Layers grow geometrically towards the oldest, so that each row is merged a few times."""
        layers = [layer, *self._layers]
        while len(layers) > 1 and 2 * layers[0].weight >= layers[1].weight:
            layers[:2] = [_merged(self._types, layers[0], layers[1], last=len(layers) == 2)]
        while sum(len(layer.batch) for layer in layers) > MOST_PREFIX_ROWS:
            layers.pop()
        self._layers = [layer for layer in layers if len(layer.hashes)]


def _unknown(types: Types, hashes: Ints) -> PrefixLayer:
    nothing = np.zeros(len(hashes), np.int64)
    return PrefixLayer(
        hashes, nothing, nothing.astype(np.bool_), nothing + UNKNOWN, nothing, empty_batch(types)
    )


def _concat(types: Types, layers: Sequence[PrefixLayer]) -> PrefixLayer:
    lengths = np.concatenate([np.diff(layer.ends, prepend=0) for layer in layers])
    return PrefixLayer(
        np.concatenate([layer.hashes for layer in layers]),
        lengths.cumsum(),
        np.concatenate([layer.complete for layer in layers]),
        np.concatenate([layer.sizes for layer in layers]),
        np.concatenate([layer.totals for layer in layers]),
        concat_batches(types, [layer.batch for layer in layers]),
    )


def _merged(types: Types, newer: PrefixLayer, older: PrefixLayer, *, last: bool) -> PrefixLayer:
    """One of two; below the last there is nothing that an unknown group would have to hide."""
    at = np.minimum(newer.hashes.searchsorted(older.hashes), len(newer.hashes) - 1)
    hidden = newer.hashes[at] == older.hashes
    both = _concat(types, [newer, older])
    left = np.concatenate([np.ones(len(newer.hashes), np.bool_), ~hidden])
    if last:
        left &= both.sizes != UNKNOWN
    groups = np.flatnonzero(left)
    return both.pick(groups[np.argsort(both.hashes[groups])])
