"""Errors and NULLs of scalars follow the rules of the tree, whatever stands where."""

from itertools import permutations

import pytest

from evertide.expr.compile import compile_predicates, compile_scalar
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.scalar import And, Case, Coalesce, IsNull, Literal, Or, Parameter, Scalar
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import DivisionByZero, NumericOutOfRange, SqlError
from evertide.vocab.sql_type import BOOL, INT8
from tests.expr import sample
from tests.expr.sample import call, col, lit


def failing(error: SqlError) -> Scalar:
    def fail() -> Datum:
        raise error

    function = ScalarFunction(f"fail {error}", (), BOOL, fail, fallible=True)
    return call(function)


ZERO = failing(DivisionByZero("division by zero"))
RANGE = failing(NumericOutOfRange("out of range"))
TRUE, FALSE, NULL = (Literal(value, BOOL) for value in (True, False, None))


def run(scalar: Scalar, row: Row = ()) -> Datum:
    return compile_scalar(scalar)(row)


@pytest.mark.parametrize("arguments", list(permutations([FALSE, NULL, ZERO, TRUE])))
def test_false_wins_over_errors_wherever_it_stands(arguments: tuple[Scalar, ...]) -> None:
    assert run(And(arguments)) is False
    assert compile_predicates(arguments)(()) is False


@pytest.mark.parametrize("arguments", list(permutations([FALSE, NULL, ZERO, TRUE])))
def test_true_wins_over_errors_wherever_it_stands(arguments: tuple[Scalar, ...]) -> None:
    assert run(Or(arguments)) is True


@pytest.mark.parametrize("arguments", list(permutations([TRUE, NULL, ZERO, RANGE])))
def test_of_several_errors_the_least_is_raised(arguments: tuple[Scalar, ...]) -> None:
    with pytest.raises(NumericOutOfRange):
        run(And(arguments))
    with pytest.raises(NumericOutOfRange):
        compile_predicates(arguments)(())


@pytest.mark.parametrize("arguments", list(permutations([FALSE, NULL, ZERO, RANGE])))
def test_of_several_errors_or_raises_the_least_too(arguments: tuple[Scalar, ...]) -> None:
    with pytest.raises(NumericOutOfRange):
        run(Or(arguments))


def test_null_is_what_is_left() -> None:
    assert run(And((TRUE, NULL))) is None
    assert run(Or((FALSE, NULL))) is None
    assert run(And(())) is True
    assert run(Or(())) is False
    assert compile_predicates((TRUE, NULL))(()) is False


def test_branches_not_taken_cannot_fail() -> None:
    assert run(Case(((NULL, ZERO), (TRUE, lit(1))), ZERO, INT8)) == 1
    assert run(Coalesce((lit(None), lit(2), ZERO), INT8)) == 2
    with pytest.raises(DivisionByZero):
        run(Case(((ZERO, lit(1)),), lit(2), INT8))


def test_a_null_argument_does_not_hide_an_error() -> None:
    with pytest.raises(DivisionByZero):
        run(call(sample.ADD, lit(None), call(sample.DIVIDE, lit(1), lit(0))))
    three = ScalarFunction("three", (INT8, INT8, INT8), INT8, lambda a, b, c: a + b + c)
    with pytest.raises(DivisionByZero):
        run(call(three, lit(None), lit(1), call(sample.DIVIDE, lit(1), lit(0))))


def test_the_first_failing_argument_gives_the_error() -> None:
    with pytest.raises(DivisionByZero):
        run(call(sample.ADD, ZERO, RANGE))


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (call(sample.ADD, col(0), col(1)), 7),
        (call(sample.ADD, col(0), lit(10)), 13),
        (call(sample.ADD, lit(10), col(0)), 13),
        (call(sample.ADD, col(0), call(sample.ADD, col(1), lit(1))), 8),
        (call(sample.ADD, col(0), col(2)), None),
        (call(sample.ADD, lit(None), col(0)), None),
        (call(sample.TO_TEXT, col(0)), "3"),
        (call(sample.TO_TEXT, call(sample.ADD, col(0), col(2))), None),
        (call(sample.CONCAT, call(sample.TO_TEXT, col(0)), lit(None)), "3"),
        (IsNull(col(2)), True),
        (IsNull(col(0)), False),
    ],
)
def test_every_shape_of_call(scalar: Scalar, expected: Datum) -> None:
    assert run(scalar, (3, 4, None)) == expected


def test_what_must_be_bound_first_is_refused() -> None:
    with pytest.raises(AssertionError):
        compile_scalar(Parameter(0, INT8))
