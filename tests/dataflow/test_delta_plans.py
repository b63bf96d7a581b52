"""What a delta plan keeps, shares and keeps apart."""

from itertools import pairwise
from random import Random

import pytest

from evertide.dataflow.build import build, describe
from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import (
    ArrangeNode,
    DeltaPlan,
    InputNode,
    JoinNode,
    LinearNode,
    ReduceNode,
    TopKNode,
)
from evertide.dataflow.description import Import, ShardExport
from evertide.dataflow.plan_codec import decode_plan, encode_plan
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import (
    Distinct,
    Filter,
    Join,
    Map,
    OuterJoin,
    Project,
    Reduce,
    Relation,
    TopK,
    Union,
)
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import optimize
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, INT8, TEXT, SqlType
from evertide.vocab.timestamp import Timestamp
from tests.expr import sample
from tests.expr.sample import agg, call, col, lit, table, values
from tests.expr.trees import Trees

T = table("t", INT8, INT8, TEXT)
U = table("u", INT8, INT8)
DIVIDED = call(sample.DIVIDE, lit(1), col(0))
POSITIVE = call(sample.LESS, lit(0), col(0))


def nodes_of(plan: DeltaPlan, kind: type) -> list:
    return [node for node in plan.nodes if isinstance(node, kind)]


def plan_of(relation: Relation) -> DeltaPlan:
    return delta_plan(optimize(relation))


def test_a_self_join_has_one_input_and_one_arrangement() -> None:
    other = table("u", INT8, INT8)
    plan = plan_of(Filter(Join((U, other)), (call(sample.EQUAL, col(0), col(2)),)))
    assert len(nodes_of(plan, InputNode)) == 1
    assert len(nodes_of(plan, ArrangeNode)) == 1


def test_a_chain_of_maps_filters_and_projects_is_one_node() -> None:
    more = call(sample.ADD, col(0), lit(1))
    chain = Project(Filter(Map(Filter(T, (POSITIVE,)), (more,)), (POSITIVE,)), (3, 0))
    plan = delta_plan(chain)
    (linear,) = nodes_of(plan, LinearNode)
    assert len(linear.predicates) == 2
    assert linear.columns == (3, 0)


def test_a_map_that_may_fail_does_not_join_the_filter_that_guards_it() -> None:
    plan = delta_plan(Map(Filter(T, (POSITIVE,)), (DIVIDED,)))
    first, second = nodes_of(plan, LinearNode)
    assert first.predicates
    assert not first.scalars
    assert second.scalars
    assert not second.predicates


def test_a_filter_that_may_fail_does_not_join_the_filter_that_guards_it() -> None:
    fallible = call(sample.LESS, DIVIDED, lit(5))
    plan = delta_plan(Filter(Filter(T, (POSITIVE,)), (fallible,)))
    assert len(nodes_of(plan, LinearNode)) == 2


def test_only_needed_columns_are_arranged() -> None:
    joined = Filter(Join((T, U)), (call(sample.EQUAL, col(0), col(3)),))
    plan = plan_of(Reduce(joined, (col(1),), (agg(sample.SUM_INT, col(4)),)))
    assert sorted(len(node.types) for node in nodes_of(plan, ArrangeNode)) == [2, 2]


def test_nested_joins_are_one_join_and_keep_nothing_in_between() -> None:
    first = Filter(Join((T, U)), (call(sample.EQUAL, col(0), col(3)),))
    both = Filter(Join((first, table("v", INT8))), (call(sample.EQUAL, col(4), col(5)),))
    plan = plan_of(both)
    (join,) = nodes_of(plan, JoinNode)
    assert len(join.inputs) == 3
    assert all(len(path.steps) == 2 for path in join.paths)
    # T by its column, U by either of its two, V by its column.
    assert len(nodes_of(plan, ArrangeNode)) == 4


def test_distinct_is_a_reduce_by_all_columns() -> None:
    (reduce,) = nodes_of(delta_plan(Distinct(U)), ReduceNode)
    assert len(reduce.keys) == 2
    assert not reduce.aggregates


def test_errors_only_keeps_no_rows() -> None:
    assert not nodes_of(delta_plan(TopK(U, (), (), limit=0)), TopKNode)


def test_a_chain_of_outer_joins_grows_by_the_same_amount_each_time() -> None:
    """Each uses its left input three times; a plan that copied it would grow by powers of three."""
    relation: Relation = table("t0", INT8, INT8)
    sizes = []
    for number in range(1, 10):
        right = table(f"t{number}", INT8, INT8)
        on = (call(sample.EQUAL, col(1), col(2)),)
        relation = Project(OuterJoin("left", relation, right, on), (0, 3))
        sizes.append(len(plan_of(relation).nodes))
    steps = {after - before for before, after in pairwise(sizes[2:])}
    assert max(steps) <= 30


def test_a_predicate_that_drops_padded_rows_makes_the_outer_join_an_inner_one() -> None:
    outer = OuterJoin("left", U, T, (call(sample.EQUAL, col(0), col(2)),))
    plan = plan_of(Filter(outer, (call(sample.LESS, col(3), lit(5)),)))
    assert len(nodes_of(plan, JoinNode)) == 1
    assert not nodes_of(plan, ReduceNode)


def test_integers_of_different_width_join_by_their_own_columns() -> None:
    widen = ScalarFunction("int8", (INT4,), INT8, lambda value: value)
    small = table("s", INT4)
    condition = call(sample.EQUAL, call(widen, col(0, INT4)), col(1))
    plan = plan_of(Filter(Join((small, table("b", INT8))), (condition,)))
    assert not nodes_of(plan, LinearNode)


def test_computed_join_keys_become_columns_of_their_input() -> None:
    condition = call(sample.EQUAL, call(sample.ADD, col(0), lit(1)), col(3))
    plan = plan_of(Filter(Join((T, U)), (condition,)))
    arranged = nodes_of(plan, ArrangeNode)
    assert sorted(node.key for node in arranged) == [(0,), (3,)]


def test_zero_and_minus_zero_are_different_constants() -> None:
    plan = delta_plan(Union((values([FLOAT8], (0.0,)), values([FLOAT8], (-0.0,)))))
    assert len(plan.nodes) == 3


@pytest.mark.parametrize("seed", range(100))
def test_a_plan_survives_its_travel(seed: int) -> None:
    plan = delta_plan(lower_outer_join(Trees(Random(seed)).relation(3)))
    # Trees use the sample's functions, a comparison of columns the real ones.
    decoded = decode_plan(
        encode_plan(plan), lambda name: sample.BY_SIGNATURE.get(name) or by_signature(name)
    )
    assert encode_plan(decoded) == encode_plan(plan)
    assert decoded.types == plan.types


def an_import(name: str, *types: SqlType) -> Import:
    desc = relation_desc(*((f"c{i}", sql_type) for i, sql_type in enumerate(types)))
    return Import(GlobalId(name), ShardId(f"shard {name}"), desc, is_table=True)


def test_a_dataflow_imports_only_what_is_left_of_its_query() -> None:
    nothing = Filter(table("u", INT8, INT8), (call(sample.EQUAL, lit(1), lit(2)),))
    relation = Union((Project(T, (0, 1)), nothing))
    imports = [an_import("t", INT8, INT8, TEXT), an_import("u", INT8, INT8)]
    export = ShardExport(ShardId("out"), relation_desc(("a", INT8), ("b", INT8)))
    description = build(GlobalId("v"), ClusterId("c"), relation, imports, export, Timestamp(7))
    assert [given.global_id for given in description.imports] == ["t"]
    assert description.as_of == 7


def test_an_import_that_is_missing_is_our_bug() -> None:
    export = ShardExport(ShardId("out"), relation_desc(("a", INT8)))
    with pytest.raises(AssertionError, match="u"):
        build(GlobalId("v"), ClusterId("c"), U, [], export, Timestamp(0))


def test_a_plan_can_be_read() -> None:
    joined = Filter(Join((T, U)), (call(sample.EQUAL, col(0), col(3)),))
    text = describe(plan_of(Reduce(joined, (col(1),), (agg(sample.SUM_INT, col(4)),))))
    assert text.startswith("incremental")
    assert "arrange" in text
    assert "delta path: changes of" in text
    assert "sum(#" in text
