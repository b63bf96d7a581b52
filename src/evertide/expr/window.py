"""Window functions over the rows of one partition, which are all there and in their order.

One body for all executors: the interpreter, the delta evaluator and, as a Python function, Spark.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias, assert_never, cast

from evertide.expr.aggregate import least_error
from evertide.expr.frame_aggregate import Outcome, over_frames
from evertide.expr.functions.row import AggregateFunction
from evertide.expr.functions.window import WindowFunction, is_blind_to_ties
from evertide.expr.range_frame import borders
from evertide.expr.relation import Distance, Frame, OrderKey, Types, WindowCall
from evertide.expr.row_key import in_order, order_key
from evertide.expr.scalar import ColumnRef, Literal, Scalar
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import (
    InvalidArgumentForNthValue,
    InvalidArgumentForNtile,
    SqlError,
    encode_error,
)
from evertide.vocab.sql_type import INT4, SqlType

Counted: TypeAlias = tuple[Row, int]
# From and up to, but not including, these positions of the partition.
Frames: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True)
class Partition:
    """Rows in order, and which of them the order finds equal: *peers*."""

    rows: Sequence[Row]
    types: Types
    order: tuple[OrderKey, ...]

    @cached_property
    def groups(self) -> Sequence[int]:
        """The number of each row's group of peers, from 0."""
        if not self.order:
            return [0] * len(self.rows)
        groups: list[int] = []
        keys = map(order_key(self.types, self.order), self.rows)
        for number, (_, peers) in enumerate(groupby(keys)):
            groups += [number for _ in peers]
        return groups

    @cached_property
    def starts(self) -> Sequence[int]:
        """Where each group of peers begins, and then where the last one ends."""
        pairs = zip(self.groups, [-1, *self.groups], strict=False)
        return [*(at for at, (own, last) in enumerate(pairs) if own != last), len(self.rows)]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def keys(self) -> tuple[Sequence[Datum], SqlType, bool]:
        """The values of the order's only key, their type, and whether they descend."""
        (key,) = self.order
        return [row[key.column] for row in self.rows], self.types[key.column], key.descending

    def first_peer(self, at: int) -> int:
        return self.starts[self.groups[at]]

    def after_peers(self, at: int) -> int:
        return self.starts[self.groups[at] + 1]

    def values(self, argument: Scalar) -> Sequence[Datum]:
        """An argument of every row."""
        match argument:
            case ColumnRef(index=index):
                return [row[index] for row in self.rows]
            case Literal(value=value):
                return [value] * len(self.rows)
            case _:
                raise AssertionError("arguments of window functions are columns or literals")


@dataclass(frozen=True, slots=True)
class Windowing:
    """The functions of one Window over rows of these types."""

    types: Types
    order: tuple[OrderKey, ...]
    calls: tuple[WindowCall, ...]

    def over_all(
        self, partitions: Iterable[Iterable[Counted]]
    ) -> tuple[list[Counted], list[tuple[str, int]]]:
        """Several partitions one after another."""
        rows: list[Counted] = []
        errors: list[tuple[str, int]] = []
        for partition in partitions:
            shown, failed = self.over_unordered(partition)
            rows += shown
            errors += failed
        return rows, errors

    def over_unordered(
        self, counted: Iterable[Counted]
    ) -> tuple[list[Counted], list[tuple[str, int]]]:
        """A partition's rows, those that are there, with their results; and the errors."""
        present = [one for one in counted if one[1] > 0]
        ordered = in_order(present, itemgetter(0), self.types, self.order)
        return self.over([row for row, count in ordered for _ in range(count)])

    def over(
        self, rows: Sequence[Row], start: int = 0, end: int | None = None
    ) -> tuple[list[Counted], list[tuple[str, int]]]:
        """The same of rows that are in order already, each as often as it is there.

        Shows those from `start` up to `end` only; the others are looked at.
        """
        partition = Partition(rows, self.types, self.order)
        columns = [_evaluated(call, partition)[start:end] for call in self.calls]
        pairs = zip(rows[start:end], zip(*columns, strict=True), strict=True)
        if not any(isinstance(one, SqlError) for column in columns for one in column):
            return [(row + cast(Row, results), 1) for row, results in pairs], []
        shown: list[Counted] = []
        errors: list[tuple[str, int]] = []
        for row, results in pairs:
            failures = [one for one in results if isinstance(one, SqlError)]
            if failures:
                errors.append((encode_error(least_error(failures)), 1))
            else:
                shown.append((row + cast(Row, results), 1))
        return shown, errors

    @property
    def reach(self) -> int | None:
        """How many rows away a function looks at most; None: as far as the partition goes."""
        reaches = [_reach(call) for call in self.calls]
        return None if None in reaches else max(cast("list[int]", reaches))


def _reach(call: WindowCall) -> int | None:
    frame = call.frame
    if call.function in (WindowFunction.LAG, WindowFunction.LEAD):
        offset = call.arguments[1] if len(call.arguments) > 1 else Literal(1, INT4)
        if call.ignore_nulls or not isinstance(offset, Literal):
            return None
        return abs(cast(int, offset.value)) if offset.value is not None else 0
    if isinstance(call.function, WindowFunction) and call.function not in _OF_FRAMES:
        return None
    if frame.unit != "rows" or frame.start is None or frame.end is None:
        return None
    return max(abs(_counted(frame.start)), abs(_counted(frame.end)))


_OF_FRAMES = (WindowFunction.FIRST_VALUE, WindowFunction.LAST_VALUE, WindowFunction.NTH_VALUE)


def sees_ties(call: WindowCall) -> bool:
    """Whether its value depends on which of the rows that are equal in order comes first."""
    if isinstance(call.function, WindowFunction):
        return not is_blind_to_ties(call.function)
    # Collecting aggregates show the order; the others see the same values whatever it is.
    by_rows = call.frame.unit == "rows" and (call.frame.start, call.frame.end) != (None, None)
    return by_rows or call.function.name in COLLECTING


COLLECTING = frozenset({"array_agg", "list_agg", "jsonb_agg", "jsonb_object_agg", "string_agg"})


def _frames(frame: Frame, partition: Partition) -> Frames:
    """Each row's frame. Both ends only ever move forward; an empty one ends before it begins."""
    count = len(partition)
    start, end = frame.start, frame.end
    firsts = [0] * count if start is None else _firsts(frame.unit, start, partition)
    ends = [count] * count if end is None else _ends(frame.unit, end, partition)
    return list(zip(firsts, ends, strict=True))


def _firsts(unit: str, start: int | Distance, partition: Partition) -> Sequence[int]:
    """Where frames begin."""
    count = len(partition)
    if isinstance(start, Distance):
        return borders(*partition.keys, start, end=False)
    match unit:
        case "rows":
            return [_within(i + start, count) for i in range(count)]
        case "range":
            return [partition.first_peer(i) for i in range(count)]
        case _:
            starts, last = partition.starts, len(partition.starts) - 1
            return [starts[_within(group + start, last)] for group in partition.groups]


def _ends(unit: str, end: int | Distance, partition: Partition) -> Sequence[int]:
    """What comes right after frames."""
    count = len(partition)
    if isinstance(end, Distance):
        return borders(*partition.keys, end, end=True)
    match unit:
        case "rows":
            return [_within(i + end + 1, count) for i in range(count)]
        case "range":
            return [partition.after_peers(i) for i in range(count)]
        case _:
            starts, last = partition.starts, len(partition.starts) - 1
            return [starts[_within(group + end + 1, last)] for group in partition.groups]


def _counted(bound: int | Distance) -> int:
    assert isinstance(bound, int), "rows are counted"
    return bound


def _within(position: int, count: int) -> int:
    return min(max(position, 0), count)


def _evaluated(call: WindowCall, partition: Partition) -> Sequence[Outcome]:
    """One function's value for every row, or its error."""
    function = call.function
    if isinstance(function, AggregateFunction):
        argument = call.arguments[0] if call.arguments else None
        values = None if argument is None else partition.values(argument)
        frames = _frames(call.frame, partition)
        sql_type = None if argument is None else argument.type
        return over_frames(
            function, sql_type, values, frames, in_frame_order=function.name in COLLECTING
        )
    positions, count = range(len(partition)), len(partition)
    match function:
        case WindowFunction.ROW_NUMBER:
            return [i + 1 for i in positions]
        case WindowFunction.RANK:
            return [partition.first_peer(i) + 1 for i in positions]
        case WindowFunction.DENSE_RANK:
            return [group + 1 for group in partition.groups]
        case WindowFunction.PERCENT_RANK:
            return [partition.first_peer(i) / (count - 1) if count > 1 else 0.0 for i in positions]
        case WindowFunction.CUME_DIST:
            return [partition.after_peers(i) / count for i in positions]
        case WindowFunction.NTILE:
            return _ntile(partition.values(call.arguments[0]))
        case WindowFunction.LAG:
            return _shifted(call, partition, direction=-1)
        case WindowFunction.LEAD:
            return _shifted(call, partition, direction=1)
        case WindowFunction.FIRST_VALUE | WindowFunction.LAST_VALUE | WindowFunction.NTH_VALUE:
            return _picked(call, function, partition)
        case _:
            assert_never(function)


def _ntile(buckets: Sequence[Datum]) -> list[Outcome]:
    """Buckets of nearly equal size, larger ones first. The first that is not NULL says how many;
    rows before it are in none, and the others begin with it."""
    known = next((i for i, value in enumerate(buckets) if value is not None), len(buckets))
    found: list[Outcome] = [None] * known
    left = len(buckets) - known
    if not left:
        return found
    wanted = cast(int, buckets[known])
    if wanted <= 0:
        error = InvalidArgumentForNtile("argument of ntile must be greater than zero")
        return [*found, *[error] * left]
    # PostgreSQL counts the rows before the first bucket too when it shares them out.
    size, larger = divmod(len(buckets), wanted)
    border = larger * (size + 1)
    for at in range(left):
        bucket = at // (size + 1) if at < border else larger + (at - border) // max(size, 1)
        found.append(bucket + 1)
    return found


def _shifted(call: WindowCall, partition: Partition, *, direction: int) -> list[Outcome]:
    """lag and lead: another row's value, the default where there is no such row."""
    count = len(partition)
    values = partition.values(call.arguments[0])
    offsets = partition.values(call.arguments[1]) if len(call.arguments) > 1 else [1] * count
    defaults = partition.values(call.arguments[2]) if len(call.arguments) > 2 else [None] * count
    find = _finder(values) if call.ignore_nulls else _plain_position
    found: list[Outcome] = []
    for i, offset in enumerate(offsets):
        if offset is None:
            found.append(None)
            continue
        at = find(i, direction * cast(int, offset))
        found.append(values[at] if 0 <= at < count else defaults[i])
    return found


def _plain_position(at: int, offset: int) -> int:
    return at + offset


def _finder(values: Sequence[Datum]) -> Callable[[int, int], int]:
    """Positions counted over values that are not NULL; -1 where there are not enough."""
    known = [i for i, value in enumerate(values) if value is not None]

    def find(at: int, offset: int) -> int:
        if offset == 0:
            return at
        after = offset > 0
        number = bisect_right(known, at) - 1 + offset if after else bisect_left(known, at) + offset
        return known[number] if 0 <= number < len(known) else -1

    return find


def _picked(call: WindowCall, function: WindowFunction, partition: Partition) -> list[Outcome]:
    """first_value, last_value, nth_value: the value of one row of the frame."""
    values = partition.values(call.arguments[0])
    frames = _frames(call.frame, partition)
    known = range(len(values))
    if call.ignore_nulls:
        places = [i for i, value in enumerate(values) if value is not None]
    else:
        places = list(known)
    numbers: Sequence[Datum] = (
        partition.values(call.arguments[1])
        if function is WindowFunction.NTH_VALUE
        else [1 if function is WindowFunction.FIRST_VALUE else -1] * len(values)
    )
    return [
        _nth(values, places, frame, cast("int | None", number), function)
        for frame, number in zip(frames, numbers, strict=True)
    ]


def _nth(
    values: Sequence[Datum],
    places: Sequence[int],
    frame: tuple[int, int],
    number: int | None,
    function: WindowFunction,
) -> Outcome:
    """The value at the place with this number in the frame, from 1; -1 is the last."""
    if number is None:
        return None
    if function is WindowFunction.NTH_VALUE and number <= 0:
        return InvalidArgumentForNthValue("argument of nth_value must be greater than zero")
    first, end = bisect_left(places, frame[0]), bisect_left(places, frame[1])
    at = end - 1 if number < 0 else first + number - 1
    return values[places[at]] if first <= at < end else None
