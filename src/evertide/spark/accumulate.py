"""Exact accumulators of additive aggregates: what a group keeps instead of its rows.

A state is a tuple of integers and decimals that a change is added to and its retraction subtracted
from, exactly; it depends on which values are in the group, never on the order they came and went.
Rounding happens when a result is shown. States are values: a change makes a new one, so that a tick
that fails leaves the old ones untouched.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Final, TypeAlias, assert_never, cast

import msgspec

from evertide.expr.aggregate import finish_count, special_float, special_numeric
from evertide.expr.exact_sum import EXACT, fixed_point
from evertide.expr.functions.row import Accumulator, AggregateFunction
from evertide.expr.relation import AggregateCall
from evertide.expr.scalar_codec import Plain, UnreadablePlan, as_list
from evertide.vocab.datum import Datum

# count; or total and count; or total, count, and how many NaN, +Infinity and -Infinity.
State: TypeAlias = tuple[int | Decimal, ...]
FloatState: TypeAlias = tuple[int, int, int, int, int]
NumericState: TypeAlias = tuple[Decimal, int, int, int, int]

_INT64: Final = 2**63


@dataclass(frozen=True, slots=True)
class Additive:
    """How one aggregate is maintained. `add` gets a non-NULL datum and its diff.

    `of_total`, of counts and sums of integers: what is shown of a total and a number of values, for
    who has both at hand; None: the number itself.
    """

    zero: State
    add: Callable[[State, Datum, int], State]
    finish: Callable[[State], Datum]
    of_total: Callable[[int, int], Datum] | None = None


def is_additive(call: AggregateCall) -> bool:
    """Whether sums and counts are enough. DISTINCT must know which values are there."""
    return not call.distinct and call.function.accumulator is not Accumulator.ROWS


def additive(call: AggregateCall) -> Additive:
    """The accumulator of an aggregate that has an argument."""
    function = call.function
    assert is_additive(call), f"{function} looks at the rows of its group"
    match function.accumulator:
        case Accumulator.COUNT:
            return Additive(
                (0,),
                _add_count,
                lambda state: finish_count(function, int(state[0])),
                function.finish,
            )
        case Accumulator.SUM_INT:
            body = _body(function)
            return Additive((0, 0), _add_int, lambda state: body(state[0], state[1]), body)
        case Accumulator.SUM_NUMERIC:
            return Additive((Decimal(0), 0, 0, 0, 0), _add_numeric, _finish_numeric(function))
        case Accumulator.SUM_FLOAT:
            return Additive((0, 0, 0, 0, 0), _add_float, _finish_float(function))
        case Accumulator.ROWS:
            raise AssertionError("not additive")
        case _:
            assert_never(function.accumulator)


def _body(function: AggregateFunction) -> Callable[..., Datum]:
    assert function.finish is not None, f"{function} has no body"
    return function.finish


def _add_count(state: State, _datum: Datum, diff: int) -> State:
    return (state[0] + diff,)


def _add_int(state: State, datum: Datum, diff: int) -> State:
    total, count = cast("tuple[int, int]", state)
    return (total + cast(int, datum) * diff, count + diff)


def _add_numeric(state: State, datum: Datum, diff: int) -> State:
    total, count, nan, plus, minus = cast(NumericState, state)
    value = cast(Decimal, datum)
    if value.is_finite():
        change = value if diff == 1 else EXACT.multiply(value, Decimal(diff))
        return (EXACT.add(total, change), count + diff, nan, plus, minus)
    if value.is_nan():
        return (total, count + diff, nan + diff, plus, minus)
    if value > 0:
        return (total, count + diff, nan, plus + diff, minus)
    return (total, count + diff, nan, plus, minus + diff)


def _add_float(state: State, datum: Datum, diff: int) -> State:
    total, count, nan, plus, minus = cast(FloatState, state)
    value = cast(float, datum)
    if isfinite(value):
        return (total + fixed_point(value) * diff, count + diff, nan, plus, minus)
    if value != value:
        return (total, count + diff, nan + diff, plus, minus)
    if value > 0:
        return (total, count + diff, nan, plus + diff, minus)
    return (total, count + diff, nan, plus, minus + diff)


def _finish_numeric(function: AggregateFunction) -> Callable[[State], Datum]:
    body = _body(function)

    def finish(state: State) -> Datum:
        total, count, nan, plus, minus = cast(NumericState, state)
        return body(special_numeric(nan_count=nan, plus=plus, minus=minus, finite=total), count)

    return finish


def _finish_float(function: AggregateFunction) -> Callable[[State], Datum]:
    body = _body(function)

    def finish(state: State) -> Datum:
        total, count, nan, plus, minus = cast(FloatState, state)
        return body(special_float(nan_count=nan, plus=plus, minus=minus, finite=total), count)

    return finish


def add_states(one: State, other: State) -> State:
    """The state of both sets of values together: every part of a state is a sum."""
    pairs = zip(one, other, strict=True)
    return tuple([_add_parts(left, right) for left, right in pairs])


def _add_parts(left: int | Decimal, right: int | Decimal) -> int | Decimal:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return EXACT.add(left, right)


def states_to_bytes(states: Sequence[State]) -> bytes:
    """The states of one group, for snapshots and hydration. Not pickled: they come from files."""
    return msgspec.msgpack.encode([[_plain_part(part) for part in state] for state in states])


def states_from_bytes(encoded: bytes) -> tuple[State, ...]:
    """Inverse of states_to_bytes.

    >>> states_from_bytes(states_to_bytes([(3,), (1 << 1080, 1, 0, 0, 0)]))[1][0] == 1 << 1080
    True
    """
    plain: Plain = msgspec.msgpack.decode(encoded)
    return tuple([tuple([_read_part(part) for part in as_list(state)]) for state in as_list(plain)])


def _plain_part(part: int | Decimal) -> Plain:
    """msgpack has integers of 64 bits; sums may have two thousand."""
    if isinstance(part, Decimal):
        return str(part)
    if -_INT64 <= part < _INT64:
        return part
    return part.to_bytes(part.bit_length() // 8 + 1, "big", signed=True)


def _read_part(plain: Plain) -> int | Decimal:
    match plain:
        case int():
            return plain
        case bytes():
            return int.from_bytes(plain, "big", signed=True)
        case str():
            return Decimal(plain)
        case _:
            raise UnreadablePlan(f"not part of an accumulator: {plain!r}")
