"""Sums of floats: exact, whatever the order and whatever came and went, and rounded once."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertide.expr.exact_sum import fixed_point, rounded_float
from evertide.vocab.errors import NumericOutOfRange

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_a_float_is_a_count_of_the_least_float(value: float) -> None:
    assert fixed_point(value) == Fraction(value) * 2**1074
    assert rounded_float(fixed_point(value)) == value


@given(st.lists(FINITE, max_size=30), st.randoms())
def test_a_sum_is_the_exact_one_rounded_to_nearest(values: list[float], rng: Random) -> None:
    shuffled = rng.sample(values, len(values))
    total = sum(fixed_point(value) for value in shuffled)
    exact = sum((Fraction(value) for value in values), Fraction(0))
    try:
        expected = exact.numerator / exact.denominator
    except OverflowError:
        with pytest.raises(NumericOutOfRange):
            rounded_float(total)
    else:
        assert rounded_float(total) == expected


def test_too_large_a_sum_is_an_error_and_comes_back() -> None:
    largest = fixed_point(1.7976931348623157e308)
    with pytest.raises(NumericOutOfRange):
        rounded_float(largest * 2)
    assert rounded_float(largest * 2 - largest) == 1.7976931348623157e308
