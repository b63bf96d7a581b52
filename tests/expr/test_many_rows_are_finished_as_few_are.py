"""A result of many rows is not added up where that changes nothing, and only there."""

from collections import Counter

import pytest

from evertide.expr.interpret import Collection, finish
from evertide.expr.relation import Finishing, OrderKey
from evertide.vocab.errors import InternalError
from evertide.vocab.sql_type import INT4, TEXT

TYPES = (INT4, TEXT)
MANY = [((number % 700, "x"), 1) for number in range(1_400)]


def test_each_row_comes_as_often_as_it_is_there() -> None:
    found = finish(Collection(list(MANY)), Finishing(), TYPES)
    assert Counter(found) == Counter(row for row, _ in MANY)
    twice = finish(Collection([(row, 2) for row, _ in MANY]), Finishing(), TYPES)
    assert Counter(twice) == Counter(row for row, _ in MANY for _ in range(2))


def test_what_goes_again_is_not_told() -> None:
    found = finish(Collection([*MANY, ((3, "x"), -2)]), Finishing(), TYPES)
    assert Counter(found) == Counter(row for row, _ in MANY if row[0] != 3)
    with pytest.raises(InternalError, match="negative multiplicity"):
        finish(Collection([*MANY, ((3, "x"), -3)]), Finishing(), TYPES)


def test_order_cut_and_columns_are_as_asked() -> None:
    order = (OrderKey(0, descending=True),)
    found = finish(Collection(list(MANY)), Finishing(order, 3, 1, (0,)), TYPES)
    assert found == [(699,), (698,), (698,)]
    assert len(finish(Collection(list(MANY)), Finishing((), 5, 2), TYPES)) == 5
