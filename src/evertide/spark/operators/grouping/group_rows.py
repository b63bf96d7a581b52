"""The aggregates of one group, changed value by value: what group_values.py does for many.

Both read and write the same rows of state, so a tick may go either way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeAlias, cast

from evertide.expr.aggregate import Weighted, evaluate_aggregate, finish_count
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall
from evertide.persist.coding.keys import KeyEncoder, key_encoder
from evertide.spark.accumulate import Additive, State
from evertide.vocab.datum import Datum

# What some value of the group is, and how often it is there after the changes so far.
Values: TypeAlias = Callable[[int], Weighted]


class GroupContext(Protocol):
    """What an aggregate may ask of its group."""

    @property
    def rows(self) -> int:
        """How many rows it has now."""
        ...

    def values(self, column: int) -> Weighted:
        """The values of an argument that are not NULL, and how often each is there."""
        ...

    def count_distinct(self, number: int, value: Datum, diff: int) -> int:
        """Note that a value comes or goes; gives how often it was there before."""
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
class RowDistinct:
    """A sum or count of DISTINCT values; `number` is which one of the node."""

    number: int
    sum: RowSum

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        for value, diff in changes:
            if value is None:
                continue
            before = group.count_distinct(self.number, value, diff)
            if (before > 0) != (before + diff > 0):
                self.sum.change(group, [(value, 1 if before <= 0 else -1)])

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
    encode: KeyEncoder

    def change(self, group: GroupContext, changes: Sequence[tuple[Datum, int]]) -> None:
        if not self.never_negative or self._is_gone(changes):
            there = [value for value, count in group.values(self.column) if count > 0]
            self.shown = self._best(there)
        else:
            came = [value for value, diff in changes if diff > 0 and value is not None]
            self.shown = self._best(came if self.shown is None else [self.shown, *came])

    def _is_gone(self, changes: Sequence[tuple[Datum, int]]) -> bool:
        """Whether what it shows, or would show, may have gone again."""
        if all(diff > 0 for _, diff in changes):
            return False
        if self.shown is None:
            return True
        shown = self.encode(self.shown)
        went = {self.encode(value) for value, diff in changes if diff < 0 and value is not None}
        came = {self.encode(value) for value, diff in changes if diff > 0 and value is not None}
        return shown in went or bool(went & came)

    def _best(self, values: Sequence[Datum]) -> Datum:
        if not values:
            return None
        choose = max if self.last else min
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


def extreme_of(
    call: AggregateCall, column: int, shown: Datum, *, never_negative: bool
) -> RowExtreme:
    """min or max, which shows this now."""
    last = call.function.name == "max"
    return RowExtreme(column, shown, last, never_negative, key_encoder(call.type))
