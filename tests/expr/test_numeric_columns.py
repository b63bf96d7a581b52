"""Numerics read and written by columns are those that are read and written one by one."""

from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from evertide.expr.columnar.numeric_columns import common_scale, from_scaled, to_scaled
from evertide.persist.coding.encoding import decode_column, encode_column
from evertide.vocab.datum import Datum, reduce_numeric
from evertide.vocab.sql_type import NUMERIC

SEEDS = pytest.mark.parametrize("seed", range(100))


def random_numeric(rng: Random, digits: int) -> Decimal:
    integer = rng.randrange(-(10**digits) + 1, 10**digits)
    return reduce_numeric(Decimal(integer).scaleb(rng.randrange(-20, 6)))


def encoded(datums: list[Datum]) -> pa.Array:
    return encode_column(NUMERIC, datums)


@SEEDS
def test_integers_and_scales(seed: int) -> None:
    rng = Random(seed)
    digits = rng.randrange(1, 19)
    numbers = [
        None if rng.random() < 0.1 else random_numeric(rng, digits)
        for _ in range(rng.randrange(40))
    ]
    # A slice: its bytes begin somewhere in the buffer.
    array = encoded([Decimal("7.25"), *numbers, Decimal(1)])[1:-1]
    found = to_scaled(array)
    assert found is not None
    values, scales, nulls = found
    for place, number in enumerate(numbers):
        if number is None:
            assert nulls is not None
            assert nulls[place]
            assert values[place] == 0
        else:
            assert Decimal(int(values[place])).scaleb(-int(scales[place])) == number


@SEEDS
def test_written_as_one_by_one(seed: int) -> None:
    rng = Random(seed)
    limit, scale = 10 ** rng.randrange(1, 19), rng.randrange(-5, 30)
    integers = [
        None if rng.random() < 0.1 else rng.choice((0, 1, 1)) * rng.randrange(-limit + 1, limit)
        for _ in range(rng.randrange(40))
    ]
    nulls = np.array([integer is None for integer in integers], np.bool_)
    array = from_scaled(
        np.array([integer or 0 for integer in integers], np.int64), scale,
        nulls if seed % 2 or nulls.any() else None,
    )  # fmt: skip
    assert array is not None
    array.validate(full=True)
    expected = [
        None if integer is None else reduce_numeric(Decimal(integer).scaleb(-scale))
        for integer in integers
    ]
    assert array.equals(encoded([*expected]))


@pytest.mark.parametrize("power", range(19))
def test_powers_of_ten_and_their_neighbours(power: int) -> None:
    near = {10**power - 1, 10**power, 10**power + 1}
    integers = sorted(sign * size for size in near if size < 10**18 for sign in (-1, 1))
    values = np.array(integers, np.int64)
    for scale in (0, 2, 18):
        array = from_scaled(values, scale)
        assert array is not None
        decimals = [Decimal(integer).scaleb(-scale) for integer in integers]
        assert decode_column(NUMERIC, array) == decimals
        again = common_scale(array)
        assert again is not None
        assert [Decimal(int(v)).scaleb(-again.scale) for v in again.values] == decimals


def test_all_get_the_smallest_scale_that_holds_them() -> None:
    column = common_scale(encoded([Decimal("1.5"), None, Decimal("2E+3"), Decimal("-0.25")]))
    assert column is not None
    assert (column.values.tolist(), column.scale) == ([150, 0, 200_000, -25], 2)
    assert column.nulls is not None
    assert column.nulls.tolist() == [False, True, False, False]
    whole = common_scale(encoded([Decimal("2E+3"), Decimal(0)]))
    assert whole is not None
    assert (whole.values.tolist(), whole.scale) == ([2000, 0], 0)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1234567890123456789"])
def test_what_is_no_such_integer_gives_up_the_column(text: str) -> None:
    for datums in ([Decimal(text)], [Decimal(1), None, Decimal(text), Decimal(0)]):
        assert to_scaled(encoded([*datums])) is None
        assert common_scale(encoded([*datums])) is None


def test_more_than_18_digits_at_one_scale_give_up_the_column() -> None:
    assert common_scale(encoded([Decimal("999999999999999999"), Decimal(1)])) is not None
    assert common_scale(encoded([Decimal("999999999999999999"), Decimal("0.1")])) is None
    assert common_scale(encoded([Decimal("1E+17")])) is not None
    assert common_scale(encoded([Decimal("1E+18")])) is None
    assert from_scaled(np.array([10**18 - 1], np.int64), 0) is not None
    assert from_scaled(np.array([10**18], np.int64), 0) is None
    assert from_scaled(np.array([-(2**63)], np.int64), 0) is None


@pytest.mark.parametrize("length", [0, 3])
def test_columns_without_values(length: int) -> None:
    column = common_scale(pa.nulls(length, pa.binary()))
    assert column is not None
    assert column.values.tolist() == [0] * length
    again = column.encoded()
    assert again is not None
    assert again.array.equals(pa.nulls(length, pa.binary()))
