"""Accumulators: a state is what is there, not how it came about."""

from decimal import Decimal
from random import Random

import pytest

from evertide.expr.aggregate import finish_sum
from evertide.expr.functions.row import Accumulator, AggregateFunction
from evertide.expr.functions.table import AGGREGATE_FUNCTIONS
from evertide.spark.accumulate import (
    State,
    add_states,
    additive,
    is_additive,
    states_from_bytes,
    states_to_bytes,
)
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError, encode_error
from evertide.vocab.sql_type import FLOAT8
from tests.expr import sample
from tests.expr.sample import agg, lit

VALUES: dict[Accumulator, list[Datum]] = {
    Accumulator.COUNT: [1, 2],
    Accumulator.SUM_INT: [0, 1, -5, 2**62, -(2**62)],
    Accumulator.SUM_NUMERIC: [
        Decimal(text)
        for text in ("0", "1E+38", "-1E+38", "1E-39", "0.1", "NaN", "Infinity", "-Infinity")
    ],
    Accumulator.SUM_FLOAT: [
        0.0, -0.0, 0.1, 1e308, -1e308, 5e-324, 1.0, float("nan"), float("inf"), float("-inf"),
    ],
}  # fmt: skip
ADDITIVE = [
    function
    for function in AGGREGATE_FUNCTIONS
    if function.accumulator is not Accumulator.ROWS and function.arguments
]


def outcome(finish: object) -> str:
    try:
        return repr(finish())  # type: ignore[operator]
    except SqlError as error:
        return encode_error(error)


@pytest.mark.parametrize("function", ADDITIVE, ids=str)
def test_a_state_is_the_sum_of_what_is_there(function: AggregateFunction) -> None:
    """Values come, some go again, in any order; the result is that of those that are left."""
    rng = Random(function.signature)
    call = agg(function, lit(None, function.arguments[0]))
    adder = additive(call)
    for _ in range(40):
        pool = VALUES[function.accumulator]
        left = [rng.choice(pool) for _ in range(rng.randrange(6))]
        gone = [rng.choice(pool) for _ in range(rng.randrange(6))]
        changes = [(value, 1) for value in left + gone] + [(value, -1) for value in gone]
        rng.shuffle(changes)
        state = adder.zero
        for value, diff in changes:
            state = adder.add(state, value, diff)
        counts = [(value, 1) for value in left]
        expected = outcome(lambda counts=counts: finish_sum(function, counts))
        assert outcome(lambda state=state: adder.finish(state)) == expected
        assert states_from_bytes(states_to_bytes([state])) == (state,)


def test_parts_of_a_group_add_up() -> None:
    adder = additive(agg(sample.SUM_FLOAT, lit(None, FLOAT8)))
    halves: list[State] = []
    for values in ([0.1, 1e308], [float("inf"), -1e308]):
        state = adder.zero
        for value in values:
            state = adder.add(state, value, 1)
        halves.append(state)
    assert adder.finish(add_states(*halves)) == float("inf")


def test_distinct_is_not_additive() -> None:
    call = agg(sample.SUM_INT, lit(1), distinct=True)
    assert not is_additive(call)
    with pytest.raises(AssertionError):
        additive(call)
