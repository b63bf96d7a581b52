"""Aggregates that must know their group's values: how they follow changes, for many groups at once.

Sums over DISTINCT values keep how often each value is there, and see which come and go. min and max
keep the value they show, and look at the group's values again only if that one may have gone. All
others look at their group's values each time.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from evertide.expr.aggregate import evaluate_aggregate, finish_count
from evertide.expr.columnar.batch import Batch, equal_rows
from evertide.expr.columnar.codes import identity_codes, order_codes
from evertide.expr.columnar.column import Column, Ints, Numbers, all_null, concat, to_datums
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.relation import AggregateCall, Types
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.operators.grouping.sums import (
    Failures,
    Running,
    Sum,
    finished,
    not_null,
    sum_of,
)
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp, step_back

# Not before any code.
_LAST: Final = (1 << 63) - 1


def present(numbers: Ints, count: int) -> Ints:
    """Which of the numbers from 0 to `count` are there, in order; numpy's own `unique` sorts."""
    there = np.zeros(count, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there)


class Members(Protocol):
    """The values of groups as they are after some of a tick's changes."""

    def values(self, groups: Ints, column: int) -> tuple[Ints, Column, Ints]:
        """Of these groups the values of a column that are not NULL: group, value, how often.

        Identical values of a group come once; those that add up to nothing are left out.
        """
        ...


class Follower(Protocol):
    """One aggregate in the groups of a tick; changes come timestamp by timestamp."""

    def change(self, changes: "Changes", members: Members, touched: Ints) -> None:
        """These values came and went in the groups that are touched."""
        ...

    def columns(self, groups: Ints) -> list[Column]:
        """What is kept of it."""
        ...

    def results(self, groups: Ints, failures: Failures) -> Column:
        """What the groups show."""
        ...


class Changes:
    """Changes of one timestamp: the group of each, its values by column, its diff."""

    def __init__(self, groups: Ints, columns: Sequence[Column], diffs: Ints) -> None:
        self.groups = groups
        self.columns = columns
        self.diffs = diffs

    def of(self, column: int) -> tuple[Ints, Column, Ints]:
        """Of one column, without NULLs."""
        return not_null(self.groups, self.columns[column], self.diffs)


class DistinctValues:
    """How often each value of a column is in each group, arranged by group and value."""

    def __init__(
        self, call: AggregateCall, key_types: Types, column: int, kept: Arrangement
    ) -> None:
        assert call.argument is not None, "only count(*) has no argument, and it is not DISTINCT"
        self.column = column
        self.kept = kept
        self.sum: Sum = sum_of(replace(call, distinct=False))
        self._types = (*key_types, call.argument.type)
        self._pending: list[ColumnLayer] = []

    def follow(self, keys: Sequence[Column], columns: Sequence[Column]) -> "FollowedDistinct":
        """Go on in these groups, whose sums are in these columns."""
        return FollowedDistinct(self, keys, self.sum.run(columns))

    def change(self, keys: Sequence[Column], groups: Ints, values: Column, diffs: Ints) -> Ints:
        """Values come and go; gives how often each was in its group before."""
        columns = (*(key.take(groups) for key in keys), values)
        hashes = hash_keys(self._types, columns, len(groups))
        # They are looked for and kept in one order.
        order = np.argsort(hashes)
        unsorted = Batch(self._types, columns, np.zeros(len(groups), np.int64), diffs)
        layer = ColumnLayer(hashes[order], unsorted.take(order))
        where, found = self.kept.find(layer.batch.columns, layer.hashes, self._pending)
        counts = np.zeros(len(groups), np.int64)
        np.add.at(counts, order[where], found.diffs)
        self._pending = [*self._pending, layer]
        return counts

    def commit(self, upper: Timestamp) -> None:
        """Take the tick's changes in. Their times are of no interest: nobody looks back."""
        for layer in self._pending:
            self.kept.insert_columns(layer)
        self.kept.advance_since(step_back(upper))
        self.abort()

    def abort(self) -> None:
        self._pending = []


class FollowedDistinct:
    """A sum or count over DISTINCT values in the groups of a tick."""

    def __init__(self, values: DistinctValues, keys: Sequence[Column], running: Running) -> None:
        self._values = values
        self._keys = keys
        self._running = running

    def change(self, changes: Changes, _members: Members, _touched: Ints) -> None:
        groups, values, diffs = changes.of(self._values.column)
        if not len(groups):
            return
        starts, order = equal_rows([groups, *identity_codes(values)])
        net = np.add.reduceat(diffs[order], starts)
        places, net = order[starts][net != 0], net[net != 0]
        if not len(places):
            return
        groups, values = groups[places], values.take(places)
        before = self._values.change(self._keys, groups, values, net)
        came = (before <= 0) & (before + net > 0)
        went = (before > 0) & (before + net <= 0)
        crossed = came | went
        if crossed.any():
            signs = np.where(came, 1, -1)[crossed]
            self._running.add(groups[crossed], values.take(crossed), signs)

    def columns(self, groups: Ints) -> list[Column]:
        return self._running.columns(groups)

    def results(self, groups: Ints, failures: Failures) -> Column:
        return self._running.results(groups, failures)


class FollowedExtreme:
    """min or max in the groups of a tick. `never_negative`: no value is there less than 0 times."""

    def __init__(
        self, sql_type: SqlType, shown: Column, column: int, *, last: bool, never_negative: bool
    ) -> None:
        self._type = sql_type
        self._column = column
        self._last = last
        self._never_negative = never_negative
        self._pool = shown
        # Where in the pool the value is that a group shows; -1: none.
        self._places: Ints = np.where(shown.null_mask, -1, np.arange(len(shown)))

    def change(self, changes: Changes, members: Members, touched: Ints) -> None:
        groups, values, diffs = changes.of(self._column)
        again = touched
        if self._never_negative:
            again = self._improve(groups, values, diffs)
        if len(again):
            self._look_again(again, members)

    def _improve(self, groups: Ints, values: Column, diffs: Ints) -> Ints:
        """Take new values that are better; gives the groups whose value may have gone."""
        if not len(groups):
            return groups
        offset = len(self._pool)
        self._pool = concat([self._pool, values])
        codes = self._codes(self._pool)
        mine = codes[offset:]
        if (diffs > 0).all():
            # Nothing goes, so nothing needs to be added up to see what is left.
            self._take_best(groups, np.arange(offset, len(codes)), codes)
            return groups[:0]
        starts, order = equal_rows([groups, mine])
        net = np.add.reduceat(diffs[order], starts)
        heads = order[starts]
        shown = self._places[groups[heads]]
        is_shown = (shown >= 0) & (codes[np.maximum(shown, 0)] == mine[heads])
        gone = present(groups[heads[(net < 0) & is_shown]], len(self._places))
        came = heads[net > 0]
        self._take_best(groups[came], came + offset, codes)
        return gone

    def _take_best(self, groups: Ints, places: Ints, codes: Ints) -> None:
        """The best of these values and the one each group shows."""
        if not len(groups):
            return
        best = np.full(len(self._places), _LAST, np.int64)
        np.minimum.at(best, groups, codes[places])
        known = self._places[groups]
        # Where codes are equal, so are the values: whichever of them is taken.
        better = (known < 0) | (codes[places] < codes[np.maximum(known, 0)])
        better &= codes[places] == best[groups]
        self._places[groups[better]] = places[better]

    def _look_again(self, groups: Ints, members: Members) -> None:
        found, values, counts = members.values(groups, self._column)
        there = counts > 0
        self._places[groups] = -1
        if not there.any():
            return
        offset = len(self._pool)
        self._pool = concat([self._pool, values.take(there)])
        places = np.arange(offset, len(self._pool))
        self._take_best(found[there], places, self._codes(self._pool))

    def _codes(self, column: Column) -> Ints:
        """The smaller the better. NULLs are never looked at."""
        return order_codes(self._type, column, descending=self._last)[-1]

    def columns(self, groups: Ints) -> list[Column]:
        """What it shows is all that it needs, and that is kept anyway."""
        del groups
        return []

    def results(self, groups: Ints, _failures: Failures) -> Column:
        places = self._places[groups]
        empty = places < 0
        if not empty.any():
            return self._pool.take(places)
        whole = concat([self._pool, all_null(self._type, 1)])
        return whole.take(np.where(empty, len(whole) - 1, places))


class FollowedByValues:
    """Any other aggregate in the groups of a tick: it looks at all values of the groups touched.

    `rows` is how many rows each group has, and changes with them.
    """

    def __init__(self, call: AggregateCall, column: int, rows: Ints) -> None:
        assert call.argument is not None, "count(*) looks at no values"
        self._call = call
        self._type = call.argument.type
        self._column = column
        self._rows = rows
        self._values: dict[int, list[tuple[Datum, int]]] = {}

    def change(self, _changes: Changes, members: Members, touched: Ints) -> None:
        groups, values, counts = members.values(touched, self._column)
        self._values = {group: [] for group in touched.tolist()}
        datums = to_datums(self._type, values)
        for group, datum, count in zip(groups.tolist(), datums, counts.tolist(), strict=True):
            self._values[group].append((datum, count))

    def columns(self, groups: Ints) -> list[Column]:
        del groups
        return []

    def results(self, groups: Ints, failures: Failures) -> Column:
        return finished(self._call.type, groups, self._finish, failures)

    def _finish(self, group: int) -> Datum:
        return evaluate_aggregate(self._call, int(self._rows[group]), self._values[group])


class FollowedSum:
    """An additive aggregate in the groups of a tick."""

    def __init__(self, running: Running, column: int) -> None:
        self._running = running
        self._column = column

    def change(self, changes: Changes, _members: Members, _touched: Ints) -> None:
        self._running.add(changes.groups, changes.columns[self._column], changes.diffs)

    def columns(self, groups: Ints) -> list[Column]:
        return self._running.columns(groups)

    def results(self, groups: Ints, failures: Failures) -> Column:
        return self._running.results(groups, failures)


class FollowedCount:
    """count(*): `rows` is how many rows each group has, and changes with them."""

    def __init__(self, call: AggregateCall, rows: Ints) -> None:
        self._call = call
        self._rows = rows

    def change(self, _changes: Changes, _members: Members, _touched: Ints) -> None:
        """The rows are counted already."""

    def columns(self, groups: Ints) -> list[Column]:
        del groups
        return []

    def results(self, groups: Ints, failures: Failures) -> Column:
        function, rows = self._call.function, self._rows
        if function.finish is None:
            return Numbers(rows[groups])
        return finished(
            self._call.type, groups, lambda g: finish_count(function, int(rows[g])), failures
        )
