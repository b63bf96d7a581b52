"""The aggregates of one group, changed value by value: what group_values.py does for many.

Both read and write the same rows of state, so a tick may go either way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Protocol, TypeAlias, cast

from evertide.expr.aggregate import Weighted, evaluate_aggregate
from evertide.expr.columnar.batch import Entry
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall
from evertide.persist.coding.keys import KeyEncoder
from evertide.spark.accumulate import Additive, State
from evertide.vocab.datum import Datum, Row

# What some value of the group is, and how often it is there after the changes so far.
Values: TypeAlias = Callable[[int], Weighted]


class Counts:
    """How often values are in their groups, before the tick and after its changes so far.

    Each value of each group has a number; `rows` name both, and `names` are their keys.
    """

    __slots__ = ("before", "names", "now", "rows")

    def __init__(self, names: Sequence[bytes], rows: Sequence[Row], before: list[int]) -> None:
        self.names = names
        self.rows = rows
        self.before = before
        self.now = before.copy()

    def changes(self) -> dict[bytes, list[Entry]]:
        """What has changed, by key."""
        every = zip(self.names, self.rows, self.before, self.now, strict=True)
        return {name: [(row, 0, now - then)] for name, row, then, now in every if now != then}


def number_values(
    groups: Iterable[tuple[bytes, Row, Iterable[Datum]]],
    encode_all: Callable[[Iterable[Datum]], list[bytes]],
) -> tuple[list[dict[Datum, int]], list[bytes], list[Row]]:
    """Of each group, given by key, its values by number, without NULL; then names and rows of all.

    What SQL finds equal has one number; others of the same name are left over, and not used.
    """
    numbers: list[dict[Datum, int]] = []
    rows: list[Row] = []
    prefixes: list[bytes] = []
    for encoded, key, given in groups:
        values = dict.fromkeys(given)
        values.pop(None, None)
        first = len(rows)
        rows += [(*key, value) for value in values]
        prefixes += [encoded] * len(values)
        numbers.append(dict(zip(values, range(first, len(rows)), strict=True)))
    # Keys of columns are put end to end.
    encodings = encode_all(chain.from_iterable(numbers))
    names = [prefix + name for prefix, name in zip(prefixes, encodings, strict=True)]
    if len(set(names)) < len(names):
        by_name = dict(zip(names, range(len(names)), strict=True))
        numbers = [{value: by_name[names[n]] for value, n in group.items()} for group in numbers]
    return numbers, names, rows


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
    def counts(self) -> Sequence[tuple[Counts, Mapping[Datum, int]]]:
        """Of each aggregate over DISTINCT values, those that this tick changes, by number."""
        ...


class RowSlot(Protocol):
    """One aggregate of one group during a tick."""

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        """Values with their diffs, of one timestamp."""
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
    """count(*). `of_total`: what is made of the number of rows; None: it is shown as it is."""

    of_total: Callable[[int, int], Datum] | None

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        """The group counts its rows."""

    def result(self, group: GroupContext) -> Datum:
        rows = group.rows
        return rows if self.of_total is None else self.of_total(rows, rows)

    def kept(self) -> tuple[Datum, ...]:
        return ()


@dataclass(slots=True)
class RowSum:
    """A sum or a count of values."""

    accumulator: Accumulator
    adder: Additive
    state: State

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        del group
        state, add = self.state, self.adder.add
        for value, diff in zip(values, diffs, strict=True):
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

    of_total: Callable[[int, int], Datum]
    total: int
    count: int

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        del group
        total, count = self.total, self.count
        for value, diff in zip(cast("Sequence[int | None]", values), diffs, strict=True):
            if value is not None:
                total += value * diff
                count += diff
        self.total, self.count = total, count

    def result(self, group: GroupContext) -> Datum:
        del group
        return self.of_total(self.total, self.count)

    def kept(self) -> tuple[Datum, ...]:
        return (self.total >> 32, self.total & 0xFFFFFFFF, self.count)


@dataclass(slots=True)
class RowValueCount:
    """A count of values. `of_total` as in RowCount."""

    of_total: Callable[[int, int], Datum] | None
    count: int

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        del group
        there = zip(values, diffs, strict=True)
        self.count += sum([diff for value, diff in there if value is not None])

    def result(self, group: GroupContext) -> Datum:
        del group
        return self.count if self.of_total is None else self.of_total(self.count, self.count)

    def kept(self) -> tuple[Datum, ...]:
        return (self.count,)


def sum_slot(accumulator: Accumulator, adder: Additive, kept: Sequence[Datum]) -> RowSlot:
    """A sum or a count of values, from what is kept of it."""
    state = state_of(accumulator, kept)
    if accumulator is Accumulator.SUM_INT:
        assert adder.of_total is not None, "a sum of integers is made of total and count"
        return RowIntSum(adder.of_total, *cast("tuple[int, int]", state))
    if accumulator is Accumulator.COUNT:
        return RowValueCount(adder.of_total, *cast("tuple[int]", state))
    return RowSum(accumulator, adder, state)


@dataclass(slots=True)
class RowDistinct:
    """A sum or count of DISTINCT values; `number` is which one of the node."""

    number: int
    sum: RowSlot

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        counts, numbers = group.counts[self.number]
        now = counts.now
        crossed: list[Datum] = []
        signs: list[int] = []
        for value, diff in zip(values, diffs, strict=True):
            if value is None:
                continue
            number = numbers[value]
            before = now[number]
            now[number] = before + diff
            if (before > 0) != (before + diff > 0):
                crossed.append(value)
                signs.append(1 if before <= 0 else -1)
        if crossed:
            self.sum.change(group, crossed, signs)

    def result(self, group: GroupContext) -> Datum:
        return self.sum.result(group)

    def kept(self) -> tuple[Datum, ...]:
        return self.sum.kept()


@dataclass(slots=True)
class RowDistinctCount:
    """A count of DISTINCT values, the most frequent of those: which ones they are is no matter."""

    number: int
    values: RowValueCount

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        counts, numbers = group.counts[self.number]
        now = counts.now
        crossed = 0
        for value, diff in zip(values, diffs, strict=True):
            if value is None:
                continue
            number = numbers[value]
            before = now[number]
            after = now[number] = before + diff
            if before > 0:
                crossed -= after <= 0
            else:
                crossed += after > 0
        self.values.count += crossed

    def result(self, group: GroupContext) -> Datum:
        return self.values.result(group)

    def kept(self) -> tuple[Datum, ...]:
        return (self.values.count,)


def distinct_slot(number: int, values: RowSlot) -> RowSlot:
    """The same of DISTINCT values as of all of them."""
    if isinstance(values, RowValueCount):
        return RowDistinctCount(number, values)
    return RowDistinct(number, values)


@dataclass(slots=True)
class RowExtreme:
    """min or max."""

    column: int
    shown: Datum
    last: bool
    never_negative: bool
    # None: Python compares the values as SQL does.
    encode: KeyEncoder | None

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        if len(values) == 1 and self.encode is None and self._stays(values[0], diffs[0]):
            return
        both = list(zip(values, diffs, strict=True))
        if not self.never_negative or self._is_gone(both):
            there = [value for value, count in group.values(self.column) if count > 0]
            self.shown = self._best(there)
        else:
            came = [value for value, diff in both if diff > 0 and value is not None]
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

    def change(self, group: GroupContext, values: Sequence[Datum], diffs: Sequence[int]) -> None:
        """It looks at everything each time."""

    def result(self, group: GroupContext) -> Datum:
        return evaluate_aggregate(self.call, group.rows, group.values(self.column))

    def kept(self) -> tuple[Datum, ...]:
        return ()
