"""Aggregates over frames: pieces of a partition whose both ends only ever move forward.

Sums are exact, so that a frame's sum is what all rows up to its end give less what those before it
give; an extreme is at the head of a queue. Everything else looks at the frame's values again.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from math import inf, isfinite
from typing import Final, TypeAlias, assert_never, cast

from evertide.expr.aggregate import finish_count, special_float, special_numeric
from evertide.expr.exact_sum import EXACT, fixed_point
from evertide.expr.functions.row import Accumulator, AggregateFunction
from evertide.expr.row_key import in_value_order, is_naturally_ordered, representation
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import SqlType

Outcome: TypeAlias = "Datum | SqlError"
Frames: TypeAlias = Sequence[tuple[int, int]]
Values: TypeAlias = Sequence[Datum]

_LEAST: Final = frozenset({"min", "bool_and", "every"})
_GREATEST: Final = frozenset({"max", "bool_or"})


def over_frames(
    function: AggregateFunction,
    argument: SqlType | None,
    values: Values | None,
    frames: Frames,
    *,
    in_frame_order: bool,
) -> list[Outcome]:
    """The aggregate of each frame. No argument: it counts rows.

    `in_frame_order`: it sees values in the order of the frame instead of their own.
    """
    if values is None or argument is None:
        return _each(frames, lambda first, end: finish_count(function, max(end - first, 0)))
    if function.accumulator is Accumulator.ROWS:
        if function.name in _LEAST or function.name in _GREATEST:
            return _extremes(function, argument, values, frames)
        return _collected(function, argument, values, frames, in_frame_order=in_frame_order)
    return _sums(function, values, frames)


def _each(frames: Frames, finish: Callable[[int, int], Datum]) -> list[Outcome]:
    """What `finish` gives for each frame, asked once for neighbours that have the same."""
    found: list[Outcome] = []
    last: tuple[int, int] | None = None
    for frame in frames:
        found.append(found[-1] if frame == last else _attempt(finish, frame))
        last = frame
    return found


def _attempt(finish: Callable[[int, int], Datum], frame: tuple[int, int]) -> Outcome:
    try:
        return finish(*frame)
    except SqlError as error:
        return error


def _collected(
    function: AggregateFunction,
    argument: SqlType,
    values: Values,
    frames: Frames,
    *,
    in_frame_order: bool,
) -> list[Outcome]:
    body = function.finish_rows
    assert body is not None, f"{function} has no body"

    def finish(first: int, end: int) -> Datum:
        given = [value for value in values[first : max(end, first)] if value is not None]
        return body(given if in_frame_order else in_value_order(argument, given))

    return _each(frames, finish)


def _extremes(
    function: AggregateFunction, argument: SqlType, values: Values, frames: Frames
) -> list[Outcome]:
    """The queue holds places whose values nothing after them beats: its head is the extreme."""
    body = function.finish_rows
    assert body is not None, f"{function} has no body"
    key, greatest = _total_key(argument), function.name in _GREATEST
    keys = [None if value is None else key(value) for value in values]
    queue: deque[int] = deque()
    found: list[Outcome] = []
    taken = 0
    for first, end in frames:
        for at in range(taken, end):
            new = keys[at]
            if new is None:
                continue
            while queue and _beats(new, keys[queue[-1]], greatest=greatest):
                queue.pop()
            queue.append(at)
        taken = max(taken, end)
        while queue and queue[0] < first:
            queue.popleft()
        found.append(_attempt(lambda *_: body([values[queue[0]]] if queue else []), (first, end)))
    return found


def _beats(new: object, old: object, *, greatest: bool) -> bool:
    """Keys of one column compare with one another; what they are depends on its type."""
    one, other = cast(int, new), cast(int, old)
    return one > other if greatest else one < other


def _total_key(sql_type: SqlType) -> Callable[[Datum], object]:
    """SQL's order, then that of looks: the order in which aggregates see their values."""
    if is_naturally_ordered(sql_type):
        return lambda value: value
    encode, looks = key_encoder(sql_type), representation((sql_type,))
    if looks is None:
        return encode
    return lambda value: (encode(value), looks((value,)))


@dataclass(frozen=True, slots=True)
class _Running:
    """Sums over all values before each position, those of NaN and infinities counted apart."""

    counts: Sequence[int]
    totals: Sequence[int] | Sequence[Decimal]
    specials: tuple[Sequence[int], Sequence[int], Sequence[int]] | None

    def special(self, first: int, end: int) -> tuple[int, int, int]:
        if self.specials is None:
            return 0, 0, 0
        nan_count, plus, minus = (counted[end] - counted[first] for counted in self.specials)
        return nan_count, plus, minus


def _running_counts(flags: Sequence[bool]) -> list[int]:
    return list(accumulate(flags, initial=0))


def _is_finite(value: float | Decimal) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else isfinite(value)


def _running(values: Values, *, numeric: bool) -> _Running:
    counts = _running_counts([value is not None for value in values])
    numbers = cast("Sequence[float | Decimal | None]", values)
    known = [value if value is not None else 0 for value in numbers]
    if numeric:
        finite = [Decimal(value) if _is_finite(value) else Decimal(0) for value in known]
        totals: Sequence[int] | Sequence[Decimal] = list(
            accumulate(finite, EXACT.add, initial=Decimal(0))
        )
    else:
        whole = [fixed_point(float(value)) if isfinite(value) else 0 for value in known]
        totals = list(accumulate(whole, initial=0))
    if all(map(_is_finite, known)):
        return _Running(counts, totals, None)
    specials = (
        _running_counts([value != value for value in known]),
        _running_counts([value == inf for value in known]),
        _running_counts([value == -inf for value in known]),
    )
    return _Running(counts, totals, specials)


def _sums(function: AggregateFunction, values: Values, frames: Frames) -> list[Outcome]:
    match function.accumulator:
        case Accumulator.COUNT:
            counts = _running_counts([value is not None for value in values])
            return _each(
                frames, _counted(lambda a, b: finish_count(function, counts[b] - counts[a]))
            )
        case Accumulator.SUM_INT:
            return _each(frames, _counted(_sum_of_integers(function, values)))
        case Accumulator.SUM_NUMERIC:
            return _each(frames, _counted(_sum_of_numerics(function, values)))
        case Accumulator.SUM_FLOAT:
            return _each(frames, _counted(_sum_of_floats(function, values)))
        case Accumulator.ROWS:
            raise AssertionError(f"{function} is not a sum")
        case _:
            assert_never(function.accumulator)


def _counted(finish: Callable[[int, int], Datum]) -> Callable[[int, int], Datum]:
    """An empty frame may end before it begins."""
    return lambda first, end: finish(first, max(first, end))


def _sum_of_integers(function: AggregateFunction, values: Values) -> Callable[[int, int], Datum]:
    counts = _running_counts([value is not None for value in values])
    totals = list(accumulate((cast(int, value) or 0 for value in values), initial=0))
    body = _body(function)
    return lambda a, b: body(totals[b] - totals[a], counts[b] - counts[a])


def _sum_of_numerics(function: AggregateFunction, values: Values) -> Callable[[int, int], Datum]:
    sums, body = _running(values, numeric=True), _body(function)
    totals = cast("Sequence[Decimal]", sums.totals)

    def finish(a: int, b: int) -> Datum:
        nan_count, plus, minus = sums.special(a, b)
        finite = EXACT.subtract(totals[b], totals[a])
        total = special_numeric(nan_count=nan_count, plus=plus, minus=minus, finite=finite)
        return body(total, sums.counts[b] - sums.counts[a])

    return finish


def _sum_of_floats(function: AggregateFunction, values: Values) -> Callable[[int, int], Datum]:
    sums, body = _running(values, numeric=False), _body(function)
    totals = cast("Sequence[int]", sums.totals)

    def finish(a: int, b: int) -> Datum:
        nan_count, plus, minus = sums.special(a, b)
        finite = totals[b] - totals[a]
        total = special_float(nan_count=nan_count, plus=plus, minus=minus, finite=finite)
        return body(total, sums.counts[b] - sums.counts[a])

    return finish


def _body(function: AggregateFunction) -> Callable[..., Datum]:
    assert function.finish is not None, f"{function} has no body"
    return function.finish
