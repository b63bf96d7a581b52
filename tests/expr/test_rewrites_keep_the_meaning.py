"""Optimised relations give what the plain ones give, over random trees and random contents."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest

from evertide.expr.compile import compile_scalar
from evertide.expr.group_rows import consolidated
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Apply, Map, OuterJoin, Relation
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.scalar import And, OuterColumn
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import PASSES, optimize
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero, encode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import FLOAT8, INT8
from tests.expr import sample
from tests.expr.sample import call, col, table
from tests.expr.trees import Trees, random_contents
from tests.support.seeds import seeds

SEEDS = range(400)


def contents_of(collection: Collection, relation: Relation) -> Counter[str]:
    """Rows by representation: 0.0 and -0.0 differ, NaN is NaN."""
    return Counter({repr(row): n for row, n in consolidated(collection.rows, relation.types)})


def errors_of(collection: Collection) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for error, count in collection.errors:
        totals[error] += count
    return {error: count for error, count in totals.items() if count}


@pytest.mark.parametrize("seed", SEEDS)
def test_without_failures_rows_are_the_same(seed: int) -> None:
    rng = Random(seed)
    relation = Trees(rng, fallible=False).relation(rng.choice([2, 3, 4]))
    compare(relation, rng)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_rewrite_makes_a_row_fail(seed: int) -> None:
    rng = Random(seed + 10_000)
    relation = Trees(rng, fallible=True).relation(rng.choice([2, 3]))
    compare(relation, rng)


@pytest.mark.parametrize("seed", range(600))
def test_subqueries_that_see_the_row_around_mean_the_same_as_joins(seed: int) -> None:
    """Without failures: a join passes on an input's errors even if the other has no rows."""
    rng = Random(seed + 50_000)
    trees = Trees(rng, fallible=False, correlated=True)
    compare(trees.subquery(rng.choice([1, 2, 2, 3])), rng)


def test_a_subquery_that_fails_for_one_row_around_fails() -> None:
    divided = Map(table("t2", INT8, INT8), (call(sample.DIVIDE, col(0), OuterColumn(0, 0, INT8)),))
    relation = Apply(table("t1", INT8, FLOAT8), divided)
    contents = {
        GlobalId("t1"): Collection([((1, 1.0), 1), ((0, 1.0), 2)]),
        GlobalId("t2"): Collection([((6, 6), 1)]),
    }
    for executed in (relation, optimize(relation)):
        found = evaluate(executed, contents.__getitem__)
        assert [row for row, _ in found.rows] == [(1, 1.0, 6, 6, 6)]
        assert errors_of(found) == {encode_error(DivisionByZero("division by zero")): 2}


@pytest.mark.slow
@seeds(deep=range(1_000_000, 1_040_000), fresh=5_000, block=200)
def test_many_more_trees(seeds: Sequence[int]) -> None:
    for seed in seeds:
        rng = Random(seed)
        compare(Trees(rng, fallible=seed % 2 == 0).relation(rng.choice([2, 3, 4])), rng)
        correlated = Trees(rng, fallible=False, correlated=True)
        compare(correlated.subquery(rng.choice([1, 2, 3])), rng)


def compare(relation: Relation, rng: Random) -> None:
    lowered, optimized = lower_outer_join(relation), optimize(relation)
    assert optimized.types == relation.types
    for _ in range(3):
        contents = random_contents(rng)
        plain = evaluate(lowered, contents.__getitem__)
        better = evaluate(optimized, contents.__getitem__)
        # Not the totals: below a Negate an error and another's negation add up to nothing.
        if not plain.errors:
            assert not better.errors
            assert contents_of(better, relation) == contents_of(plain, relation)


@pytest.mark.parametrize("seed", range(300))
def test_each_pass_alone_keeps_rows(seed: int) -> None:
    """So that a mistake is not hidden by the pass after it."""
    rng = Random(seed + 20_000)
    relation = lower_outer_join(Trees(rng, fallible=False, correlated=seed % 2 == 0).relation(3))
    contents = random_contents(rng)
    expected = contents_of(evaluate(relation, contents.__getitem__), relation)
    for rewrite in PASSES:
        relation = rewrite(relation)
        found = contents_of(evaluate(relation, contents.__getitem__), relation)
        assert found == expected, rewrite.__name__


@pytest.mark.parametrize("seed", range(300))
def test_a_lowered_outer_join_is_the_outer_join(seed: int) -> None:
    """Method: nested loops over the inputs, as the standard describes it."""
    rng = Random(seed + 30_000)
    trees = Trees(rng, fallible=False, outer=False)
    outer = trees._outer_join(1)
    assert isinstance(outer, OuterJoin)
    contents = random_contents(rng)
    left, right = (evaluate(side, contents.__getitem__) for side in (outer.left, outer.right))
    expected = by_nested_loops(outer, left, right)
    found = evaluate(lower_outer_join(outer), contents.__getitem__)
    assert contents_of(found, outer) == contents_of(expected, outer)


def by_nested_loops(outer: OuterJoin, left: Collection, right: Collection) -> Collection:
    on = compile_scalar(And(outer.on))
    lefts = consolidated(left.rows, outer.left.types)
    rights = consolidated(right.rows, outer.right.types)
    pairs = [(a, b) for a in lefts for b in rights if on(a[0] + b[0]) is True]
    rows = [(a + b, m * n) for (a, m), (b, n) in pairs]
    nulls: Callable[[Relation], Row] = lambda side: (None,) * len(side.types)  # noqa: E731
    if outer.kind != "right":
        met = [id(a) for a, _ in pairs]
        rows += [(a[0] + nulls(outer.right), a[1]) for a in lefts if id(a) not in met]
    if outer.kind != "left":
        met = [id(b) for _, b in pairs]
        rows += [(nulls(outer.left) + b[0], b[1]) for b in rights if id(b) not in met]
    return Collection(rows)


@pytest.mark.parametrize("seed", range(200))
def test_a_lowered_outer_join_has_an_error_if_and_only_if_a_part_has(seed: int) -> None:
    """And a positive one, however often the inputs are used."""
    rng = Random(seed + 40_000)
    trees = Trees(rng, fallible=False, outer=False)
    outer = trees._outer_join(0)
    assert isinstance(outer, OuterJoin)
    contents = random_contents(rng)
    failing = rng.choice([None, *contents])
    if failing is not None:
        contents[failing].errors.append(("[]", 1))
    used = {getattr(node, "global_id", None) for node in in_order_of_use(outer)}
    errors = errors_of(evaluate(lower_outer_join(outer), contents.__getitem__))
    assert all(count > 0 for count in errors.values())
    assert bool(errors) == (failing in used and failing is not None)
    # An `on` that is never true makes one side unneeded, so here errors may go, but not turn.
    better = errors_of(evaluate(optimize(outer), contents.__getitem__))
    assert all(count > 0 for count in better.values())
    assert set(better) <= set(errors)
