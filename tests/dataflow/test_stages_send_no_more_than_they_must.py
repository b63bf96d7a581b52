"""Goal: a plan is cut where rows must move, and nowhere else."""

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import ArrangeNode, DeltaPlan, ReduceNode
from evertide.dataflow.show_stages import describe_stages
from evertide.dataflow.stages import ExchangeNode, FeedNode, LookupNode, StagedPlan, cut
from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import (
    AggregateCall,
    Constant,
    Distinct,
    Filter,
    Get,
    Join,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    Union,
)
from evertide.expr.scalar import Call, ColumnRef, IsNull, Literal, Scalar
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT4

A, B, C = (Get(GlobalId(name), (INT4, INT4)) for name in ("u1", "u2", "u3"))
FIRST, SECOND = ColumnRef(0, INT4), ColumnRef(1, INT4)


def count_by(source: Relation, *keys: Scalar) -> Reduce:
    count = by_signature("count(*)")
    assert isinstance(count, AggregateFunction)
    return Reduce(source, keys, (AggregateCall(count, None),))


def plus_one(scalar: Scalar) -> Scalar:
    plus = by_signature("+(integer,integer)")
    assert isinstance(plus, ScalarFunction)
    return Call(plus, (scalar, Literal(1, INT4)), INT4)


def staged(relation: Relation, index_key: tuple[int, ...] | None = None) -> StagedPlan:
    return cut(delta_plan(relation), index_key)


def exchanges(plan: StagedPlan) -> list[ExchangeNode]:
    return [node for node in plan.nodes if isinstance(node, ExchangeNode)]


@pytest.mark.parametrize(
    "relation",
    [
        A,
        Filter(A, (IsNull(FIRST),)),
        count_by(A, SECOND),
        count_by(Filter(A, (IsNull(FIRST),)), SECOND),
        count_by(Map(A, (plus_one(FIRST),)), SECOND),
        Distinct(Union((A, Negate(B)))),
        Join((A, B), ((0, 2),)),
    ],
)
def test_rows_that_can_come_by_the_right_key_are_not_exchanged(relation: Relation) -> None:
    """A two-way join needs each input by one key only, which both paths probe by."""
    plan = staged(relation)
    assert plan.last == 0
    assert not exchanges(plan)


def test_a_key_that_is_computed_costs_an_exchange() -> None:
    plan = staged(count_by(A, plus_one(FIRST)))
    assert [node.key for node in exchanges(plan)] == [(plus_one(FIRST),)]
    assert plan.last == 1


def test_a_group_by_over_a_join_on_the_same_key_stays_where_it_is() -> None:
    plan = staged(count_by(Join((A, B), ((0, 2),)), FIRST))
    assert not exchanges(plan)
    other = staged(count_by(Join((A, B), ((0, 2),)), SECOND))
    assert len(exchanges(other)) == 1
    assert other.last == 1


def test_a_chain_of_joins_carries_rows_between_lookups() -> None:
    """u1(0) = u2(0), u2(1) = u3(0): only changes of u1 and u3 need both keys."""
    plan = staged(Join((A, B, C), ((0, 2), (3, 4))))
    lookups = [node for node in plan.nodes if isinstance(node, LookupNode)]
    assert len(lookups) == 6
    assert plan.last == 1
    kept = [node for node in plan.nodes if isinstance(node, ArrangeNode)]
    assert len(kept) == len(set(plan.places.values())) == 4
    for lookup in lookups:
        assert isinstance(plan.nodes[lookup.arrangement], ArrangeNode)


def test_new_is_looked_up_after_it_has_come() -> None:
    for relation in (
        Join((A, B, C), ((0, 2), (3, 4))),
        Join((A, A, count_by(A, FIRST)), ((0, 2, 4),)),
    ):
        plan = staged(relation)
        for position, node in enumerate(plan.nodes):
            if isinstance(node, LookupNode) and node.new:
                assert plan.stages[node.arrangement] <= plan.stages[position]


def test_every_stage_reads_only_what_is_done() -> None:
    plan = staged(count_by(Join((A, B, C), ((0, 2), (3, 4))), SECOND), (1,))
    for position, node in enumerate(plan.nodes):
        if isinstance(node, ExchangeNode):
            assert plan.stages[node.input] == plan.stages[position] - 1
        elif isinstance(node, FeedNode):
            assert plan.stages[position] == 0
        elif isinstance(node, LookupNode | ReduceNode | ArrangeNode):
            assert plan.stages[node.input] <= plan.stages[position]


def test_an_index_has_its_rows_by_its_key() -> None:
    assert staged(A, (1,)).feeds[0].key == (1,)
    grouped = staged(count_by(A, FIRST), (1,))
    assert [node.key for node in exchanges(grouped)] == [(ColumnRef(1, grouped_types()[1]),)]
    assert not exchanges(staged(count_by(A, FIRST), (0,)))


def grouped_types() -> tuple:
    return count_by(A, FIRST).types


def test_only_what_may_cancel_between_tasks_is_added_up_again() -> None:
    assert staged(count_by(A, FIRST)).settled
    assert staged(A).settled
    assert staged(Map(A, (plus_one(FIRST),))).settled
    assert not staged(Project(A, (0,))).settled
    assert not staged(Union((Join((A, B), ((0, 2),)), Join((A, B), ((1, 3),))))).settled


def test_nodes_that_keep_something_are_there_once() -> None:
    shared = count_by(A, FIRST)
    plan = staged(Union((shared, Negate(shared), Constant((((1, 2), 1),), shared.types))))
    assert len([node for node in plan.nodes if isinstance(node, ReduceNode)]) == 1


def test_stages_are_shown() -> None:
    text = describe_stages(staged(count_by(Join((A, B), ((0, 2),)), SECOND)), 3)
    assert text.splitlines() == [
        "in 3 partitions: 2 stages",
        "  stage 0",
        "     0: changes of u1 by [#0]",
        "     1: changes of u2 by [#0]",
        "     2: arrange 1 by [#0]",
        "     3: look up 0 in old 2 by [#0]",
        "     4: arrange 0 by [#0]",
        "     5: look up 1 in new 4 by [#0]",
        "     6: map, filter, project 5",
        "          project [#2, #3, #0, #1]",
        "     7: union 3, 6",
        "  stage 1",
        "     8: exchange 7 by [#1]",
        "     9: reduce 8 by [#1]",
        "          [count(*)]",
        "  output 9",
    ]


def test_one_node_is_one_stage() -> None:
    plan = cut(DeltaPlan(delta_plan(A).nodes), None)
    assert [type(node) for node in plan.nodes] == [FeedNode]
