"""The aggregates of one group, changed value by value: what group_values.py does for many.

Both read and write the same rows of state, so a tick may go either way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeAlias, cast

from evertide.expr.aggregate import Weighted, evaluate_aggregate, finish_count
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall
from evertide.persist.coding.keys import KeyEncoder
from evertide.spark.accumulate import Additive, State
from evertide.vocab.datum import Datum, Row

# What some value of the group is, and how often it is there after the changes so far.
Values: TypeAlias = Callable[[int], Weighted]


class Count:
    """How often a value is in its group, and by how much that has changed; `row` names both."""

    __slots__ = ("change", "now", "row")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.now = 0
        self.change = 0


class GroupContext(Protocol):
    """What an aggregate may ask of its group."""

    @property
    def rows(self) -> int:
        """How many rows it has now."""
        ...

    def values(self, column: int) -> Weighted:
        """The values of an argument that are not NULL, and how often each is there."""
        ...

    @property
    def counts(self) -> Sequence[Mapping[Datum, Count]]:
        """Of each aggregate over DISTINCT values, those that this tick changes."""
        ...


class RowSlot(Protocol):
    """One aggregate of one group during a tick."""

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        """Values with diffs, of one timestamp."""
        ...

    def result(self, group: GroupContext) -> Datum:
        """What it shows; raises SqlError."""
        ...

    def kept(self) -> tuple[Datum, ...]:
        """Its columns of the row of state."""
        ...


def state_of(accumulator: Accumulator, kept: Sequence[Datum]) -> State:
    """An additive state from its columns (see sums.py); NULLs are those of a new group."""
    plain = [0 if datum is None else datum for datum in kept]
    match accumulator:
        case Accumulator.SUM_INT:
            high, low, count = cast("list[int]", plain)
            return ((high << 32) + low, count)
        case Accumulator.SUM_FLOAT:
            total = (
                0 if kept[0] is None else int.from_bytes(cast(bytes, kept[0]), "big", signed=True)
            )
            return (total, *cast("list[int]", plain[1:]))
        case Accumulator.SUM_NUMERIC:
            return (Decimal(cast(Decimal, plain[0])), *cast("list[int]", plain[1:]))
        case _:
            return tuple(cast("list[int]", plain))


def kept_of(accumulator: Accumulator, state: State) -> tuple[Datum, ...]:
    """Inverse of state_of."""
    match accumulator:
        case Accumulator.SUM_INT:
            total, count = cast("tuple[int, int]", state)
            return (total >> 32, total & 0xFFFFFFFF, count)
        case Accumulator.SUM_FLOAT:
            total = cast(int, state[0])
            size = total.bit_length() // 8 + 1
            return (total.to_bytes(size, "big", signed=True), *state[1:])
        case _:
            return tuple(state)


@dataclass(slots=True)
class RowCount:
    """count(*)."""

    call: AggregateCall

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        """The group counts its rows."""

    def result(self, group: GroupContext) -> Datum:
        return finish_count(self.call.function, group.rows)

    def kept(self) -> tuple[Datum, ...]:
        return ()


@dataclass(slots=True)
class RowSum:
    """A sum or a count of values."""

    accumulator: Accumulator
    adder: Additive
    state: State

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        del group
        state, add = self.state, self.adder.add
        for value, diff in changes:
            if value is not None:
                state = add(state, value, diff)
        self.state = state

    def result(self, group: GroupContext) -> Datum:
        del group
        return self.adder.finish(self.state)

    def kept(self) -> tuple[Datum, ...]:
        return kept_of(self.accumulator, self.state)


@dataclass(slots=True)
class RowIntSum:
    """A sum of integers; the most frequent of sums."""

    adder: Additive
    total: int
    count: int

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        del group
        for value, diff in changes:
            if value is not None:
                self.total += cast(int, value) * diff
                self.count += diff

    def result(self, group: GroupContext) -> Datum:
        del group
        return self.adder.finish((self.total, self.count))

    def kept(self) -> tuple[Datum, ...]:
        return (self.total >> 32, self.total & 0xFFFFFFFF, self.count)


def sum_slot(accumulator: Accumulator, adder: Additive, kept: Sequence[Datum]) -> RowSlot:
    """A sum or a count of values, from what is kept of it."""
    state = state_of(accumulator, kept)
    if accumulator is Accumulator.SUM_INT:
        return RowIntSum(adder, *cast("tuple[int, int]", state))
    return RowSum(accumulator, adder, state)


@dataclass(slots=True)
class RowDistinct:
    """A sum or count of DISTINCT values; `number` is which one of the node."""

    number: int
    sum: RowSlot

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        counts = group.counts[self.number]
        crossed: list[tuple[Datum, int]] = []
        for value, diff in changes:
            if value is None:
                continue
            count = counts[value]
            before = count.now
            count.now += diff
            count.change += diff
            if (before > 0) != (count.now > 0):
                crossed.append((value, 1 if before <= 0 else -1))
        if crossed:
            self.sum.change(group, crossed)

    def result(self, group: GroupContext) -> Datum:
        return self.sum.result(group)

    def kept(self) -> tuple[Datum, ...]:
        return self.sum.kept()


@dataclass(slots=True)
class RowExtreme:
    """min or max."""

    column: int
    shown: Datum
    last: bool
    never_negative: bool
    # None: Python compares the values as SQL does.
    encode: KeyEncoder | None

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        if len(changes) == 1 and self.encode is None and self._stays(*changes[0]):
            return
        if not self.never_negative or self._is_gone(changes):
            there = [value for value, count in group.values(self.column) if count > 0]
            self.shown = self._best(there)
        else:
            came = [value for value, diff in changes if diff > 0 and value is not None]
            self.shown = self._best(came if self.shown is None else [self.shown, *came])

    def _stays(self, value: Datum, diff: int) -> bool:
        """Whether one value that comes or goes leaves what is shown as it is, as most do."""
        if self.shown is None or value is None or not self.never_negative or not diff:
            return False
        if diff < 0:
            return value != self.shown
        shown, new = cast(int, self.shown), cast(int, value)
        return new <= shown if self.last else new >= shown

    def _is_gone(self, changes: Sequence[tuple[Datum, int]]) -> bool:
        """Whether what it shows, or would show, may have gone again."""
        encode = self.encode
        went = [value for value, diff in changes if diff < 0]
        if not went:
            return False
        if self.shown is None:
            return True
        came = [value for value, diff in changes if diff > 0 and value is not None]
        if encode is None:
            return self.shown in went or not set(went).isdisjoint(came)
        gone = {encode(value) for value in went if value is not None}
        return not gone.isdisjoint([encode(self.shown), *map(encode, came)])

    def _best(self, values: Sequence[Datum]) -> Datum:
        if not values:
            return None
        choose = max if self.last else min
        if self.encode is None:
            return choose(cast("Sequence[int]", values))
        return choose(values, key=self.encode)

    def result(self, group: GroupContext) -> Datum:
        del group
        return self.shown

    def kept(self) -> tuple[Datum, ...]:
        return ()


@dataclass(slots=True)
class RowValues:
    """Any other aggregate."""

    call: AggregateCall
    column: int

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        """It looks at everything each time."""

    def result(self, group: GroupContext) -> Datum:
        return evaluate_aggregate(self.call, group.rows, group.values(self.column))

    def kept(self) -> tuple[Datum, ...]:
        return ()
