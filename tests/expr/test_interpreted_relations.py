"""Small relations whose contents one can see, in the places where SQL's equality bites."""

from decimal import Decimal

import pytest

from evertide.expr.interpret import Collection, evaluate, finish
from evertide.expr.relation import (
    Constant,
    Distinct,
    Finishing,
    Join,
    Map,
    Negate,
    OrderKey,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
)
from evertide.vocab.datum import Interval, Row
from evertide.vocab.errors import DataError, InternalError
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import FLOAT8, INT8, INTERVAL, NUMERIC, TEXT
from tests.expr import sample
from tests.expr.sample import agg, call, col, days, lit, values

NAN = float("nan")


def none(global_id: GlobalId) -> Collection:
    raise AssertionError(global_id)


def rows(relation: Relation) -> list[Row]:
    """The contents, sorted by all columns."""
    order = tuple(OrderKey(i) for i in range(len(relation.types)))
    return finish(evaluate(relation, none), Finishing(order), relation.types)


def test_joins_drop_nulls_and_compare_as_sql_does() -> None:
    left = values([FLOAT8], (0.0,), (NAN,), (None,), (1.0,))
    right = values([FLOAT8], (-0.0,), (float("nan"),), (None,), (2.0,))
    joined = rows(Join((left, right), ((0, 1),)))
    assert len(joined) == 2
    assert repr(joined[1][0]) == "nan"


def test_a_join_without_equivalences_is_the_product() -> None:
    product = Join((values([INT8], (1,), (None,)), values([TEXT], ("a",), ("b",))))
    assert len(rows(product)) == 4


def test_equal_keys_that_look_different_are_one_group_shown_by_the_least() -> None:
    month, thirty = Interval(1, 0, 0), days(30)
    source = values([INTERVAL, INT8], (month, 1), (thirty, 2), (days(31), 4))
    grouped = Reduce(source, (col(0, INTERVAL),), (agg(sample.SUM_INT, col(1)),))
    assert rows(grouped) == [(thirty, 3), (days(31), 4)]
    assert rows(Distinct(values([INTERVAL], (month,), (thirty,)))) == [(thirty,)]


def test_zero_is_shown_without_its_sign_if_both_are_there() -> None:
    (row,) = rows(Distinct(values([FLOAT8], (-0.0,), (0.0,))))
    assert repr(row) == "(0.0,)"
    (row,) = rows(Distinct(values([FLOAT8], (-0.0,), (-0.0,))))
    assert repr(row) == "(-0.0,)"


def test_aggregates_look_at_values_that_are_not_null() -> None:
    source = values([INT8], (2,), (None,), (2,), (5,))
    calls = (
        agg(sample.COUNT), agg(sample.COUNT_INT, col(0)), agg(sample.SUM_INT, col(0)),
        agg(sample.SUM_INT, col(0), distinct=True), agg(sample.MAX_INT, col(0)),
    )  # fmt: skip
    assert rows(Reduce(source, (), calls)) == [(4, 3, 9, 7, 5)]
    assert rows(Reduce(values([INT8]), (), calls)) == []


def test_a_failing_group_is_an_error_and_the_others_are_rows() -> None:
    source = values([INT8, INT8], (1, 1), (2, 1), (2, 2))
    found = evaluate(Reduce(source, (col(0),), (agg(sample.ONLY_INT, col(1)),)), none)
    assert found.rows == [((1, 1), 1)]
    assert found.errors == [('["22003","more than one value"]', 1)]


def test_sums_are_exact_and_rounded_once() -> None:
    many = [(1e16,), (1.0,), (-1e16,), (0.5,)]
    assert rows(Reduce(values([FLOAT8], *many), (), (agg(sample.SUM_FLOAT, col(0, FLOAT8)),))) == [
        (1.5,)
    ]
    large = values([NUMERIC], (Decimal("1e30"),), (Decimal("1e-30"),), (Decimal("-1e30"),))
    assert rows(Reduce(large, (), (agg(sample.SUM_NUMERIC, col(0, NUMERIC)),))) == [
        (Decimal("1e-30"),)
    ]


def test_top_k_takes_rows_as_often_as_they_are_there() -> None:
    source = Constant((((1, "a"), 3), ((1, "b"), 2), ((2, "c"), 1)), (INT8, TEXT))
    top = TopK(source, (0,), (OrderKey(1, descending=True),), limit=3, offset=1)
    assert rows(top) == [(1, "a"), (1, "a"), (1, "b")]


def test_except_all_counts() -> None:
    left = Constant((((1,), 3), ((2,), 1)), (INT8,))
    right = Constant((((1,), 1), ((2,), 2)), (INT8,))
    assert rows(Threshold(Union((left, Negate(right))))) == [(1,), (1,)]


def test_except_compares_as_sql_does() -> None:
    left, right = values([FLOAT8], (0.0,), (1.0,)), values([FLOAT8], (-0.0,))
    assert rows(Threshold(Union((left, Negate(right))))) == [(1.0,)]


ORDERED = Collection([((1, "b"), 1), ((None, "a"), 1), ((2, "c"), 2), ((1, "a"), 1)])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((OrderKey(0),), [1, 1, 2, 2, None]),
        ((OrderKey(0, nulls_first=True),), [None, 1, 1, 2, 2]),
        ((OrderKey(0, descending=True),), [2, 2, 1, 1, None]),
        ((OrderKey(0, descending=True, nulls_first=True),), [None, 2, 2, 1, 1]),
    ],
)
def test_order_by(order: tuple[OrderKey, ...], expected: list[int | None]) -> None:
    found = finish(ORDERED, Finishing(order), (INT8, TEXT))
    assert [row[0] for row in found] == expected
    assert [row for row in found if row[0] == 1] == [(1, "a"), (1, "b")], "ties by the whole row"


def test_limit_offset_and_columns() -> None:
    finishing = Finishing((OrderKey(1),), limit=2, offset=1, project=(1,))
    assert finish(ORDERED, finishing, (INT8, TEXT)) == [("a",), ("b",)]


def test_the_least_error_is_raised_if_any_is_there() -> None:
    collection = Collection([((1,), 1)], [('["b"]', 1), ('["22012","x"]', 1), ('["b"]', -1)])
    with pytest.raises(DataError, match="x") as raised:
        finish(collection, Finishing(), (INT8,))
    assert raised.value.code == "22012"
    cancelled = Collection([((1,), 1)], [('["b"]', 1), ('["b"]', -1)])
    assert finish(cancelled, Finishing(), (INT8,)) == [(1,)]


def test_a_negative_multiplicity_is_our_bug() -> None:
    with pytest.raises(InternalError):
        finish(Collection([((1,), -1)]), Finishing(), (INT8,))


def test_a_row_that_fails_is_an_error_as_often_as_it_is_there() -> None:
    source = Constant((((0,), 3), ((1,), 1)), (INT8,))
    found = evaluate(Map(source, (call(sample.DIVIDE, lit(1), col(0)),)), none)
    assert found.rows == [((1, 1), 1)]
    assert found.errors == [('["22012","division by zero"]', 3)]
