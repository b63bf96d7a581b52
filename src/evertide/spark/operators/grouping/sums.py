"""Sums and counts of many groups at once, as columns of a GROUP BY's state.

A `Sum` says in which columns the state of one aggregate is kept, and turns them into a `Running`
one for the groups of a tick, numbered from 0. All of them are exact: whatever order values come and
go in, a group's columns are the same afterwards, byte for byte.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, Protocol, cast

import numpy as np

from evertide.expr.columnar.column import (
    Column,
    Ints,
    Numbers,
    Others,
    from_datums,
    has_nulls,
    to_datums,
)
from evertide.expr.columnar.numeric_columns import common_scale, from_scaled
from evertide.expr.exact_sum import EXACT
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall, Types
from evertide.spark.accumulate import Additive, State, additive
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import BYTEA, INT8, NUMERIC, Kind, SqlType

_LOW: Final = (1 << 32) - 1
# Beyond it sums of halves could leave 64 bits.
_MOST_CHANGES: Final = 1 << 30


class Failures:
    """Errors by the number of their group."""

    def __init__(self) -> None:
        self.errors: dict[int, list[SqlError]] = {}

    def add(self, group: int, error: SqlError) -> None:
        """One more error of a group."""
        self.errors.setdefault(group, []).append(error)


class Running(Protocol):
    """The state of one aggregate in the groups of a tick."""

    def add(self, groups: Ints, values: Column, diffs: Ints) -> None:
        """Values come, or go, in these groups."""
        ...

    def columns(self, groups: Ints) -> list[Column]:
        """The state of these groups as it is kept."""
        ...

    def results(self, groups: Ints, failures: Failures) -> Column:
        """What these groups show; whatever it is where they fail."""
        ...


class Sum(Protocol):
    """How one aggregate is kept."""

    @property
    def types(self) -> Types:
        """Of the columns of its state."""
        ...

    def run(self, columns: Sequence[Column]) -> Running:
        """Go on from this state, one row for each group; zeros for groups that are new."""
        ...

    def columns_of(self, states: Sequence[State]) -> list[Column]:
        """States that were computed elsewhere, as they are kept."""
        ...


def sum_of(call: AggregateCall) -> Sum:
    """For an additive aggregate with an argument."""
    assert call.argument is not None, "count(*) is the number of rows"
    match call.function.accumulator:
        case Accumulator.COUNT:
            return Counts(call)
        case Accumulator.SUM_INT:
            return IntSums(call)
        case _:
            return StateSums(call)


def finished(
    sql_type: SqlType, groups: Ints, finish: Callable[[int], Datum], failures: Failures
) -> Column:
    """Results one by one."""
    datums: list[Datum] = []
    for group in groups.tolist():
        try:
            datums.append(finish(group))
        except SqlError as error:
            failures.add(group, error)
            datums.append(None)
    return from_datums(sql_type, datums)


def ints_of(column: Column) -> Ints:
    """The values of an integer column, to be changed."""
    assert isinstance(column, Numbers), "integers are numbers"
    return np.array(column.values, np.int64)


def not_null(groups: Ints, values: Column, diffs: Ints) -> tuple[Ints, Column, Ints]:
    """Aggregates do not see NULLs."""
    if not has_nulls(values):
        return groups, values, diffs
    there = ~values.null_mask
    return groups[there], values.take(there), diffs[there]


def add_halves(
    halves: tuple[Ints, Ints], groups: Ints, values: tuple[Ints, Ints], diffs: Ints
) -> None:
    """Add integers, given and kept as high * 2**32 + low, to the totals of their groups."""
    for total, part in zip(halves, values, strict=True):
        np.add.at(total, groups, part * diffs)


class Counts:
    """count(x)."""

    types: Types = (INT8,)

    def __init__(self, call: AggregateCall) -> None:
        self._adder = additive(call)
        self._type = call.type
        self._plain = call.function.finish is None

    def run(self, columns: Sequence[Column]) -> "RunningCounts":
        return RunningCounts(ints_of(columns[0]), self._adder, self._type, plain=self._plain)

    def columns_of(self, states: Sequence[State]) -> list[Column]:
        return [from_datums(INT8, [int(state[0]) for state in states])]


class RunningCounts:
    """One number per group."""

    def __init__(self, counts: Ints, adder: Additive, sql_type: SqlType, *, plain: bool) -> None:
        self._counts = counts
        self._adder = adder
        self._type = sql_type
        self._plain = plain

    def add(self, groups: Ints, values: Column, diffs: Ints) -> None:
        groups, _, diffs = not_null(groups, values, diffs)
        np.add.at(self._counts, groups, diffs)

    def columns(self, groups: Ints) -> list[Column]:
        return [Numbers(self._counts[groups])]

    def results(self, groups: Ints, failures: Failures) -> Column:
        if self._plain:
            return Numbers(self._counts[groups])
        finish, counts = self._adder.finish, self._counts
        return finished(self._type, groups, lambda g: finish((int(counts[g]),)), failures)


class IntSums:
    """Sums of integers, in two halves: the total is high * 2**32 + low, with 0 <= low < 2**32."""

    types: Types = (INT8, INT8, INT8)

    def __init__(self, call: AggregateCall) -> None:
        assert call.argument is not None, "a sum has an argument"
        self._call = call
        self._adder = additive(call)
        self._unsigned = call.argument.type.kind is Kind.UINT8

    def run(self, columns: Sequence[Column]) -> "RunningIntSums":
        high, low, counts = (ints_of(column) for column in columns)
        return RunningIntSums((high, low, counts), self._call, self._adder, offset=self._unsigned)

    def columns_of(self, states: Sequence[State]) -> list[Column]:
        totals = [int(state[0]) for state in states]
        halves = ([t >> 32 for t in totals], [t & _LOW for t in totals])
        counts = [int(state[1]) for state in states]
        return [from_datums(INT8, part) for part in (*halves, counts)]


class RunningIntSums:
    """Of the groups of a tick."""

    def __init__(
        self,
        parts: tuple[Ints, Ints, Ints],
        call: AggregateCall,
        adder: Additive,
        *,
        offset: bool,
    ) -> None:
        self._high, self._low, self._counts = parts
        self._call = call
        self._adder = adder
        self._offset = offset

    def add(self, groups: Ints, values: Column, diffs: Ints) -> None:
        groups, values, diffs = not_null(groups, values, diffs)
        if not len(groups):
            return
        assert int(np.abs(diffs).sum()) < _MOST_CHANGES, "a tick has fewer changes than that"
        wide = ints_of(values)
        high = wide >> 32
        if self._offset:
            high += 1 << 31  # it is kept less 2**63
        add_halves((self._high, self._low), groups, (high, wide & _LOW), diffs)
        np.add.at(self._counts, groups, diffs)
        self._high += self._low >> 32
        self._low &= _LOW

    def columns(self, groups: Ints) -> list[Column]:
        return [Numbers(part[groups]) for part in (self._high, self._low, self._counts)]

    def results(self, groups: Ints, failures: Failures) -> Column:
        function = self._call.function
        totals = self._plain_totals(groups) if function.name == "sum" else None
        if totals is not None and function.result.kind is Kind.INT8:
            return totals
        if totals is not None and function.result.kind is Kind.NUMERIC:
            encoded = from_scaled(totals.values, 0, totals.nulls)
            if encoded is not None:
                return Others(encoded)
        return finished(function.result, groups, self._finish, failures)

    def _plain_totals(self, groups: Ints) -> Numbers | None:
        """The totals where all of them have 64 bits; NULL where there is nothing to add."""
        high, empty = self._high[groups], self._counts[groups] == 0
        if ((high < -(1 << 31)) | (high >= 1 << 31)).any():
            return None
        totals = np.where(empty, 0, (high << 32) | self._low[groups])
        return Numbers(totals, empty if empty.any() else None)

    def _finish(self, group: int) -> Datum:
        total = (int(self._high[group]) << 32) + int(self._low[group])
        return self._adder.finish((total, int(self._counts[group])))


class StateSums:
    """Sums of numerics and floats: an exact total and how many NaNs and infinities there are."""

    def __init__(self, call: AggregateCall) -> None:
        self._call = call
        self._adder = additive(call)
        self._is_float = call.function.accumulator is Accumulator.SUM_FLOAT
        total = BYTEA if self._is_float else NUMERIC
        self.types: Types = (total, INT8, INT8, INT8, INT8)

    def run(self, columns: Sequence[Column]) -> "RunningStates":
        totals = to_datums(self.types[0], columns[0])
        counts = [ints_of(column).tolist() for column in columns[1:]]
        states = [(_total(total), *rest) for total, *rest in zip(totals, *counts, strict=True)]
        return RunningStates(cast("list[State]", states), self, self._call, self._adder)

    def columns_of(self, states: Sequence[State]) -> list[Column]:
        totals = [_bytes(int(s[0])) if self._is_float else s[0] for s in states]
        counts = [from_datums(INT8, [int(s[i]) for s in states]) for i in range(1, 5)]
        return [from_datums(self.types[0], totals), *counts]

    @property
    def is_numeric(self) -> bool:
        """Whether numerics are added, not floats."""
        return not self._is_float


def _total(datum: Datum) -> int | Decimal:
    """NULL is what new groups have."""
    if datum is None:
        return 0
    if isinstance(datum, bytes):
        return int.from_bytes(datum, "big", signed=True)
    return cast(Decimal, datum)


def _bytes(total: int) -> bytes:
    return total.to_bytes(total.bit_length() // 8 + 1, "big", signed=True)


class RunningStates:
    """Of the groups of a tick, one object each."""

    def __init__(
        self, states: list[State], kept: StateSums, call: AggregateCall, adder: Additive
    ) -> None:
        self._states = states
        self._kept = kept
        self._call = call
        self._adder = adder
        if kept.is_numeric:
            self._states = [(Decimal(state[0]), *state[1:]) for state in states]

    def add(self, groups: Ints, values: Column, diffs: Ints) -> None:
        groups, values, diffs = not_null(groups, values, diffs)
        if self._kept.is_numeric and len(groups) and self._add_scaled(groups, values, diffs):
            return
        assert self._call.argument is not None, "a sum has an argument"
        datums = to_datums(self._call.argument.type, values)
        states, add = self._states, self._adder.add
        for group, datum, diff in zip(groups.tolist(), datums, diffs.tolist(), strict=True):
            states[group] = add(states[group], datum, diff)

    def _add_scaled(self, groups: Ints, values: Column, diffs: Ints) -> bool:
        """Numerics of few digits, first added up per group as integers; False if some are not."""
        assert isinstance(values, Others), "numerics are no numbers to numpy"
        scaled = common_scale(values.array)
        if scaled is None or int(np.abs(diffs).sum()) >= _MOST_CHANGES:
            return False
        high, low, counts = (np.zeros(len(self._states), np.int64) for _ in range(3))
        add_halves((high, low), groups, (scaled.values >> 32, scaled.values & _LOW), diffs)
        np.add.at(counts, groups, diffs)
        touched = np.zeros(len(self._states), np.bool_)
        touched[groups] = True
        for group in np.flatnonzero(touched).tolist():
            total, count, *odd = self._states[group]
            change = Decimal((int(high[group]) << 32) + int(low[group])).scaleb(
                -scaled.scale, EXACT
            )
            self._states[group] = (
                EXACT.add(total, change),
                count + int(counts[group]),
                *odd,
            )
        return True

    def columns(self, groups: Ints) -> list[Column]:
        return self._kept.columns_of([self._states[group] for group in groups.tolist()])

    def results(self, groups: Ints, failures: Failures) -> Column:
        finish, states = self._adder.finish, self._states
        return finished(self._call.type, groups, lambda g: finish(states[g]), failures)
