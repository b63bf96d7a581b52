"""Goal: recursion has one meaning. Bindings go round from nothing until nothing changes."""

from collections import Counter
from random import Random

import pytest

from evertide.expr.budget import Budget
from evertide.expr.codec import decode_relation, encode_relation
from evertide.expr.group_rows import Counted, consolidated
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.recursion import MOST_ITERATIONS, split_recursion
from evertide.expr.relation import (
    Apply,
    Constant,
    Distinct,
    Filter,
    Get,
    Join,
    LetRec,
    LocalGet,
    Map,
    Project,
    RecursionLimit,
    Relation,
    Types,
    Union,
)
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import optimize
from evertide.vocab.errors import ProgramLimitExceeded, QueryCanceled, decode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8
from tests.expr import sample
from tests.expr.recursions import random_recursion
from tests.expr.sample import call, col, lit
from tests.expr.trees import Trees, random_contents

ONE: Types = (INT8,)
EDGES = GlobalId("edges")
NO_ROWS: dict[GlobalId, Collection] = {}


def counting(limit: RecursionLimit | None, stop: int | None = None) -> LetRec:
    """1, then every number that follows one that is there."""
    numbers = LocalGet("n#", ONE)
    going = numbers if stop is None else Filter(numbers, (call(sample.LESS, col(0), lit(stop)),))
    following = Project(Map(going, (call(sample.ADD, col(0), lit(1)),)), (1,))
    first = Constant((((1,), 1),), ONE)
    return LetRec(("n#",), (Union((first, following)),), numbers, limit)


def rows_of(relation: Relation, contents: dict[GlobalId, Collection]) -> Counter[str]:
    found = evaluate(relation, contents.__getitem__)
    assert not found.errors
    return Counter({repr(row): n for row, n in consolidated(found.rows, relation.types)})


def closure() -> LetRec:
    """Pairs of points between which there is a way."""
    edges, ways = Get(EDGES, (INT8, INT8)), LocalGet("ways#", (INT8, INT8))
    longer = Project(Join((ways, edges), ((1, 2),)), (0, 3))
    return LetRec(("ways#",), (Distinct(Union((edges, longer))),), ways)


def test_it_ends_where_nothing_changes() -> None:
    edges: list[Counted] = [((i, i + 1), 1) for i in range(5)]
    chain = Collection([*edges, ((4, 2), 1)])
    ways = {
        (a, b)
        for a in range(6)
        for b in range(6)
        if (a < b and (a < 5)) or (a in (2, 3, 4) and b in (2, 3, 4))
    }
    found = evaluate(closure(), {EDGES: chain}.__getitem__)
    assert dict(consolidated(found.rows, (INT8, INT8))) == dict.fromkeys(ways, 1)


def test_a_binding_sees_those_before_it_in_the_same_iteration() -> None:
    """First is what second held; second is what first holds: a row needs one iteration, not two."""
    first, second = LocalGet("a#", ONE), LocalGet("b#", ONE)
    one = Constant((((1,), 1),), ONE)
    limit = RecursionLimit(1, fails=False)
    forward = LetRec(("a#", "b#"), (one, first), second, limit)
    backward = LetRec(("a#", "b#"), (second, one), first, limit)
    assert rows_of(forward, NO_ROWS) == Counter({"(1,)": 1})
    assert rows_of(backward, NO_ROWS) == Counter()


def test_a_limit_returns_what_there_is() -> None:
    found = rows_of(counting(RecursionLimit(7, fails=False)), NO_ROWS)
    assert found == Counter({f"({n},)": 1 for n in range(1, 8)})


@pytest.mark.parametrize(("iterations", "fails"), [(9, True), (10, True), (11, False)])
def test_a_limit_that_fails_does_so_if_the_last_iteration_changed_something(
    iterations: int, *, fails: bool
) -> None:
    relation = counting(RecursionLimit(iterations, fails=True), stop=10)
    found = evaluate(relation, NO_ROWS.__getitem__)
    assert bool(found.errors) is fails
    assert bool(found.rows) is not fails
    for error, count in found.errors:
        assert count == 1
        assert f"exceeded the recursion limit {iterations}." in decode_error(error).message


def test_one_that_never_settles_is_an_error() -> None:
    """Its rows stay the same few, but are there ever more often."""
    first, held = Constant((((1,), 1), ((0,), 1)), ONE), LocalGet("turned#", ONE)
    turned = Project(Map(held, (call(sample.TIMES, col(0), lit(-1)),)), (1,))
    growing = LetRec(("turned#",), (Union((first, turned)),), held)
    found = evaluate(growing, NO_ROWS.__getitem__, Budget(10**9))
    ((error, count),) = found.errors
    assert (count, found.rows) == (1, [])
    assert str(MOST_ITERATIONS) in decode_error(error).message


def test_it_is_bounded_and_can_be_cancelled() -> None:
    with pytest.raises(ProgramLimitExceeded, match="more than 10000 intermediate rows"):
        evaluate(counting(None), NO_ROWS.__getitem__, Budget(10_000))
    cancelled = Budget()
    cancelled.cancel()
    with pytest.raises(QueryCanceled):
        evaluate(counting(None), NO_ROWS.__getitem__, cancelled)


def test_an_error_on_the_way_round_is_there_once() -> None:
    """Counted, it would be there once more after every iteration, and it would never end."""
    numbers = LocalGet("n#", ONE)
    divided = Project(Map(numbers, (call(sample.DIVIDE, lit(6), col(0)),)), (1,))
    first = Constant((((0,), 2), ((3,), 1)), ONE)
    relation = LetRec(("n#",), (Distinct(Union((first, divided))),), Union((numbers, numbers)))
    found = evaluate(relation, NO_ROWS.__getitem__)
    assert [(decode_error(e).message, n) for e, n in found.errors] == [("division by zero", 1)]


def test_what_no_binding_changes_is_an_input() -> None:
    edges = Get(EDGES, (INT8, INT8))
    turned = Project(Filter(edges, (call(sample.LESS, col(0), col(1)),)), (1, 0))
    ways = LocalGet("ways#", (INT8, INT8))
    longer = Project(Join((ways, turned), ((1, 2),)), (0, 3))
    parts = split_recursion(LetRec(("ways#",), (Distinct(Union((turned, longer))),), ways))
    assert parts.inputs == (turned,)
    assert not [node for node in in_order_of_use(parts.core) if isinstance(node, Get)]


@pytest.mark.parametrize("seed", range(300))
def test_rewrites_keep_the_meaning(seed: int) -> None:
    rng = Random(seed)
    trees = Trees(rng, fallible=False)
    relation = random_recursion(rng, trees, rng.choice([1, 2, 2, 3]))
    contents = random_contents(rng)
    plain = evaluate(lower_outer_join(relation), contents.__getitem__)
    optimized = optimize(relation)
    found = evaluate(optimized, contents.__getitem__)
    # The limit is all that can fail, and then no row counts.
    assert {error for error, _ in found.errors} == {error for error, _ in plain.errors}
    if not plain.errors:
        assert dict(_shown(found, relation)) == dict(_shown(plain, relation))
    again = decode_relation(encode_relation(optimized), sample.by_signature)
    assert _shown(evaluate(again, contents.__getitem__), relation) == _shown(found, relation)


@pytest.mark.parametrize("seed", range(200))
def test_one_that_sees_the_row_around_means_the_same_as_joins(seed: int) -> None:
    rng = Random(seed + 7_000)
    trees = Trees(rng, fallible=False, correlated=True)
    left = trees.relation(0)
    trees.around = (left.types,)
    looking = random_recursion(rng, trees, 1)
    relation = Apply(left, looking)
    contents = random_contents(rng)
    plain = evaluate(lower_outer_join(relation), contents.__getitem__)
    found = evaluate(optimize(relation), contents.__getitem__)
    if not plain.errors and not found.errors:
        assert dict(_shown(found, relation)) == dict(_shown(plain, relation))


def _shown(collection: Collection, relation: Relation) -> list[tuple[str, int]]:
    return [(repr(row), n) for row, n in consolidated(collection.rows, relation.types)]
