"""Goal: a sum of integers is shown as the numeric that its decimal would be settled to.

Method: integers of every length, with and without zeros at their end, around the greatest that a
numeric holds; value, representation and errors are compared.
"""

from decimal import Decimal
from random import Random

import pytest

from evertide.expr.numeric_value import settle, settle_integer
from evertide.vocab.errors import NumericOutOfRange

DIGITS = 39


def shown(value: Decimal) -> tuple[int, tuple[int, ...], int | str]:
    """All that tells two decimals apart."""
    sign, digits, exponent = value.as_tuple()
    return sign, digits, exponent


@pytest.mark.parametrize("length", range(1, DIGITS + 1))
def test_an_integer_is_settled_as_its_decimal_is(length: int) -> None:
    rng = Random(length)
    least = 10 ** (length - 1)
    integers = [0, 1, least, least + 1, 10 * least - 1]
    integers += [rng.randrange(least, 10 * least) for _ in range(50)]
    integers += [number - number % 10 ** rng.randrange(length) for number in integers]
    for integer in (*integers, *(-number for number in integers)):
        assert shown(settle_integer(integer)) == shown(settle(Decimal(integer))), integer


@pytest.mark.parametrize("beyond", [10**DIGITS, 10**DIGITS + 1, 10 ** (DIGITS + 30)])
def test_one_digit_more_is_too_many(beyond: int) -> None:
    assert shown(settle_integer(beyond - 1 if beyond == 10**DIGITS else 1))
    for integer in (beyond, -beyond):
        with pytest.raises(NumericOutOfRange):
            settle_integer(integer)
