"""The values of a group that its aggregates look at."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import cast

from evertide.expr.aggregate import Weighted
from evertide.expr.columnar.batch import Entry
from evertide.expr.relation import Types
from evertide.expr.row_key import (
    RowKey,
    identity_function,
    is_naturally_ordered,
    representation,
)
from evertide.persist.coding.keys import KeyEncoder, key_encoder
from evertide.spark.accumulate import Additive, State
from evertide.spark.operators.grouping.group_cache import LEAST_ROWS
from evertide.spark.operators.grouping.ordered import OrderedCounts, TotalKey
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class MemberShape:
    """How members of one node are told apart; looked at once."""

    types: Types
    identity: RowKey | None

    @classmethod
    def of(cls, types: Types) -> "MemberShape":
        return cls(types, identity_function(types))

    def encoder(self, column: int) -> KeyEncoder:
        return key_encoder(self.types[column])

    def value_key(self, column: int, value: Datum) -> TotalKey:
        """The key of one value of a column."""
        order = representation((self.types[column],))
        return self.encoder(column)(value), () if order is None else order((value,))


@dataclass(frozen=True, slots=True, eq=False)
class DistinctSum:
    """An additive aggregate over the different values of a column; the object is its name."""

    column: int
    adder: Additive


class _Tally:
    """How often each value is there, and the sum over those that are."""

    __slots__ = ("_counts", "_encode", "_sum", "state")

    def __init__(self, distinct_sum: DistinctSum, encode: KeyEncoder) -> None:
        self.state = distinct_sum.adder.zero
        self._sum = distinct_sum
        self._encode = encode
        self._counts: dict[bytes, int] = {}

    def change(self, value: Datum, diff: int) -> None:
        """Only the first and the last of equal values change the sum."""
        key = self._encode(value)
        old = self._counts.get(key, 0)
        new = old + diff
        if new:
            self._counts[key] = new
        else:
            self._counts.pop(key, None)
        if (old > 0) != (new > 0):
            self.state = self._sum.adder.add(self.state, value, 1 if new > 0 else -1)


def weighted(sql_type: SqlType, values: Iterable[tuple[Datum, int]]) -> Weighted:
    """Values that are not NULL, with multiplicities; identical ones once, those at zero not."""
    identity = identity_function((sql_type,))
    counts: dict[Hashable, tuple[Datum, int]] = {}
    for value, count in values:
        if value is not None:
            name = value if identity is None else identity((value,))
            counts[name] = (value, count + (counts[name][1] if name in counts else 0))
    return [found for found in counts.values() if found[1]]


class Members:
    """Rows with multiplicities. In a large group, what aggregates asked for is kept up to date from
    then on: extremes of columns, sums over different values.
    """

    __slots__ = ("_rows", "_shape", "_sorted", "_tallies")

    def __init__(self, shape: MemberShape, entries: Iterable[Entry] = ()) -> None:
        self._shape = shape
        self._rows: dict[Hashable, tuple[Row, int]] = {}
        self._sorted: dict[int, OrderedCounts[Datum]] = {}
        self._tallies: dict[DistinctSum, _Tally] = {}
        for row, _, diff in entries:
            self.change(row, diff)

    @property
    def size(self) -> int:
        return len(self._rows)

    def change(self, row: Row, diff: int) -> None:
        """One row more or less."""
        identity = self._shape.identity
        name = row if identity is None else identity(row)
        count = diff + (self._rows[name][1] if name in self._rows else 0)
        if count:
            self._rows[name] = (row, count)
        else:
            del self._rows[name]
        for column, values in self._sorted.items():
            if row[column] is not None:
                values.change(self._shape.value_key(column, row[column]), row[column], diff)
        for distinct_sum, tally in self._tallies.items():
            if row[distinct_sum.column] is not None:
                tally.change(row[distinct_sum.column], diff)

    def values(self, column: int) -> Weighted:
        """A column's values that are not NULL, with multiplicities; identical ones once."""
        rows = self._rows.values()
        return weighted(self._shape.types[column], [(row[column], count) for row, count in rows])

    def distinct_state(self, distinct_sum: DistinctSum) -> State:
        """The accumulator over a column's different values."""
        tally = self._tallies.get(distinct_sum)
        if tally is None:
            tally = _Tally(distinct_sum, self._shape.encoder(distinct_sum.column))
            for value, count in self.values(distinct_sum.column):
                tally.change(value, count)
            if self.size >= LEAST_ROWS:
                self._tallies[distinct_sum] = tally
        return tally.state

    def extreme(self, column: int, *, last: bool, distinct: bool) -> list[Datum]:
        """The first or last value of a column in SQL's order, if there is one.

        `distinct`: of values equal to the last one the least is taken, as of all equal ones.
        """
        if self.size < LEAST_ROWS:
            return self._small_extreme(column, last=last, distinct=distinct)
        values = self._sorted.get(column)
        if values is None:
            values = self._sorted[column] = self._sort(column)
        if not values.order:
            return []
        key = values.order[-1 if last else 0]
        return [values.get(values.first_like(key) if distinct else key)[0]]

    def _small_extreme(self, column: int, *, last: bool, distinct: bool) -> list[Datum]:
        sql_type = self._shape.types[column]
        there = [value for value, count in self.values(column) if count > 0]
        if len(there) < 2:
            return there
        if is_naturally_ordered(sql_type):
            return [max(cast("list[int]", there)) if last else min(cast("list[int]", there))]
        keyed = sorted([(self._shape.value_key(column, value), value) for value in there],
                       key=itemgetter(0))  # fmt: skip
        key, value = keyed[-1 if last else 0]
        if distinct:
            return [next(value for other, value in keyed if other[0] == key[0])]
        return [value]

    def _sort(self, column: int) -> OrderedCounts[Datum]:
        ordered: OrderedCounts[Datum] = OrderedCounts()
        ordered.load(
            [(self._shape.value_key(column, v), v, count) for v, count in self.values(column)]
        )
        return ordered
