"""CASE and COALESCE go no further than they must: a subquery that they pass by is not computed.

Most subqueries are computed for all rows all the same, which nobody can tell. But where one may
fail, it must not for a row that does not come to it. One that does not look at the row is computed
once, apart from all rows, and may fail for all of them.
"""

from collections.abc import Sequence
from itertools import pairwise

from evertide.expr.relation import Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import And, Case, IsNull, Scalar
from evertide.expr.scalar_walk import is_fallible
from evertide.sql.plan.cardinality import has_at_most_one_row
from evertide.sql.plan.deferred import (
    ArrayUse,
    Deferred,
    ExistsUse,
    GuardedUse,
    PlainUse,
    QuantifiedUse,
    RowQuantifiedUse,
    ScalarUse,
)
from evertide.sql.plan.single_row import FALSE, TRUE, looks_around
from evertide.vocab.sql_type import BOOL


def guard_branches(conditions: Sequence[Scalar], marks: Sequence[int], deferred: Deferred) -> None:
    """What CASE waits for. `marks`: how much that was before each condition and result, before ELSE
    and after it.
    """
    passed: tuple[tuple[Scalar, Scalar], ...] = ()
    bounds = [*pairwise(marks)]
    for number, condition in enumerate(conditions):
        if passed:
            _guard(deferred, range(*bounds[2 * number]), Case(passed, TRUE, BOOL))
        taken = Case((*passed, (condition, TRUE)), FALSE, BOOL)
        _guard(deferred, range(*bounds[2 * number + 1]), taken)
        passed = (*passed, (condition, FALSE))
    _guard(deferred, range(*bounds[-1]), Case(passed, TRUE, BOOL))


def guard_arguments(values: Sequence[Scalar], marks: Sequence[int], deferred: Deferred) -> None:
    """What COALESCE waits for. `marks`: how much that was before each argument, and after all."""
    for number, bounds in enumerate(pairwise(marks)):
        if number:
            before = tuple(IsNull(value) for value in values[:number])
            reached = before[0] if number == 1 else And(before)
            _guard(deferred, range(*bounds), reached)


def _guard(deferred: Deferred, places: range, reached: Scalar) -> None:
    for place in places:
        match deferred.values[place]:
            case GuardedUse(use=use, reached=inner):
                both = Case(((reached, inner),), FALSE, BOOL)
                deferred.values[place] = GuardedUse(use, both)
            case (
                ScalarUse() | ExistsUse() | ArrayUse() | QuantifiedUse() | RowQuantifiedUse()
            ) as use if looks_around(use.relation) and _may_fail(use):
                deferred.values[place] = GuardedUse(use, reached)


def _may_fail(use: PlainUse) -> bool:
    if isinstance(use, ScalarUse) and not has_at_most_one_row(use.relation):
        return True
    return _is_fallible(use.relation)


def _is_fallible(relation: Relation) -> bool:
    nodes = in_order_of_use(relation)
    return any(is_fallible(scalar) for node in nodes for scalar in scalars_of(node))
