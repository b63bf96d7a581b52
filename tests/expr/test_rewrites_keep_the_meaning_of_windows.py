"""Optimised relations with window functions give what the plain ones give, and travel."""

from random import Random

import pytest

from evertide.expr.codec import decode_relation, encode_relation
from evertide.expr.functions.table import by_signature
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Apply, Relation
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import PASSES, optimize
from evertide.vocab.ids import GlobalId
from tests.expr.random_windows import windowed
from tests.expr.test_rewrites_keep_the_meaning import contents_of, errors_of
from tests.expr.trees import Trees, random_contents


def random_relation(rng: Random, *, fallible: bool = False) -> Relation:
    return windowed(rng, Trees(rng, fallible=fallible).relation(rng.choice([0, 1, 2])))


def nothing_around(relation: Apply, contents: dict[GlobalId, Collection]) -> bool:
    around = evaluate(lower_outer_join(relation.left), contents.__getitem__)
    return not around.rows and not around.errors


def check(relation: Relation, rng: Random) -> None:
    lowered, optimized = lower_outer_join(relation), optimize(relation)
    assert optimized.types == relation.types
    for _ in range(3):
        contents = random_contents(rng)
        plain = evaluate(lowered, contents.__getitem__)
        better = evaluate(optimized, contents.__getitem__)
        if isinstance(relation, Apply) and nothing_around(relation, contents):
            # A subquery that sees nothing of the row around is one side of a join, whose errors
            # are told even if there is no row around.
            assert not better.rows
        elif not plain.errors:
            assert not better.errors
            assert contents_of(better, relation) == contents_of(plain, relation)


@pytest.mark.parametrize("seed", range(400))
def test_rows_are_the_same(seed: int) -> None:
    rng = Random(seed + 60_000)
    check(random_relation(rng, fallible=seed % 2 == 0), rng)


@pytest.mark.parametrize("seed", range(200))
def test_each_pass_alone_keeps_rows(seed: int) -> None:
    rng = Random(seed + 70_000)
    relation = lower_outer_join(random_relation(rng))
    contents = random_contents(rng)
    plain = evaluate(relation, contents.__getitem__)
    if plain.errors:
        return  # a function failed, and which rows are left then is not the point
    expected = contents_of(plain, relation)
    for rewrite in PASSES:
        relation = rewrite(relation)
        found = contents_of(evaluate(relation, contents.__getitem__), relation)
        assert found == expected, rewrite.__name__


@pytest.mark.parametrize("seed", range(300))
def test_windows_in_subqueries_that_see_the_row_around(seed: int) -> None:
    """Each row around has partitions of its own."""
    rng = Random(seed + 80_000)
    trees = Trees(rng, fallible=False, correlated=True)
    applied = trees.subquery(1)
    assert isinstance(applied, Apply)
    check(Apply(applied.left, windowed(rng, applied.right)), rng)


@pytest.mark.parametrize("seed", range(100))
def test_they_travel(seed: int) -> None:
    rng = Random(seed + 90_000)
    relation = windowed(rng, Trees(rng).relation(0))
    arrived = decode_relation(encode_relation(relation), by_signature)
    assert encode_relation(arrived) == encode_relation(relation)
    contents = random_contents(rng)
    one, other = (evaluate(each, contents.__getitem__) for each in (relation, arrived))
    assert contents_of(one, relation) == contents_of(other, relation)
    assert errors_of(one) == errors_of(other)
