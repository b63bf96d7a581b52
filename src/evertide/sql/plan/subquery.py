"""Subqueries in expressions, attached to the relation of the query around.

One that does not look at the row around is a relation computed apart: a value is joined as a single
row, a membership test as an outer join with the distinct members. One that does is applied to every
row, and gives a single row for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from evertide.expr.outer_columns import change_free, move_free
from evertide.expr.relation import (
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Map,
    OuterJoin,
    Reduce,
    Relation,
)
from evertide.expr.scalar import (
    And,
    Case,
    ColumnRef,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Scalar,
)
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.deferred import (
    ArrayUse,
    Deferred,
    ExistsUse,
    QuantifiedUse,
    RowQuantifiedUse,
    RowsUse,
    ScalarUse,
    SubqueryUse,
    WindowUse,
    fill_places,
)
from evertide.sql.plan.function_call import aggregate_over, comparison
from evertide.sql.plan.row_test import attach_row_test
from evertide.sql.plan.single_row import (
    FALSE,
    TRUE,
    UNDECIDED,
    exists_relation,
    looks_around,
    presence,
    value_relation,
    with_default_row,
)
from evertide.vocab.sql_type import BOOL


def attach(use: SubqueryUse, builder: RelationBuilder) -> Scalar:
    """Join what the subquery gives to the relation; the result is its value on each row."""
    match use:
        case ScalarUse(relation=relation):
            return _one_row(builder, value_relation(relation))
        case ExistsUse(relation=relation):
            return _one_row(builder, exists_relation(relation))
        case ArrayUse():
            return _one_row(builder, _array_relation(use))
        case RowQuantifiedUse():
            return attach_row_test(use, builder)
        case QuantifiedUse(relation=relation) if looks_around(relation):
            return _compared_with_each(use, builder)
        case QuantifiedUse(operator=operator, relation=relation):
            apart = replace(use, relation=move_free(relation, -1))
            return _membership(apart, builder) if operator == "=" else _ordered(apart, builder)
        case _:
            assert_never(use)


def _one_row(builder: RelationBuilder, relation: Relation) -> Scalar:
    (value,) = builder.apply(relation, [True])
    return value


def _array_relation(use: ArrayUse) -> Relation:
    collected = Reduce(use.relation, (), (use.aggregate,))
    return with_default_row(collected, [Literal((), use.type)])


def _compared_with_each(use: QuantifiedUse, builder: RelationBuilder) -> Scalar:
    """`operand op ANY (query)` by comparing: true if any is, else unknown if any is."""
    operand = builder.lifted(use.operand)
    compared = comparison(use.operator, operand, ColumnRef(0, use.relation.types[0]))
    some = aggregate_over("bool_or", BOOL)
    calls = (AggregateCall(some, compared), AggregateCall(some, IsNull(compared)))
    found = with_default_row(Reduce(use.relation, (), calls), [FALSE, FALSE])
    holds, unknown = builder.apply(found, [True, True])
    return Case(((holds, TRUE), (unknown, UNDECIDED)), FALSE, BOOL)


def semi_join(builder: RelationBuilder, operands: Sequence[Scalar], query: Relation) -> None:
    """Keep rows whose operands are a row of the query; NULLs are equal to nothing."""
    if looks_around(query):
        pairs_of_types = zip(operands, query.types, strict=True)
        equal = tuple(
            comparison("=", builder.lifted(operand), ColumnRef(i, sql_type))
            for i, (operand, sql_type) in enumerate(pairs_of_types)
        )
        builder.apply(presence(Filter(query, equal)), [])
        return
    query = move_free(query, -1)
    columns = builder.map(operands)
    first = builder.arity
    members = Distinct(query)
    pairs = tuple((column, first + i) for i, column in enumerate(columns))
    builder.relation = Join((builder.relation, members), pairs)
    builder.nullable += [False] * len(columns)


def _membership(use: QuantifiedUse, builder: RelationBuilder) -> Scalar:
    """`operand = ANY (query)` with SQL's third value, the query written where the operand is.

    True if there is a match. Otherwise unknown if the query holds a NULL, or if the operand is NULL
    and the query is not empty. Otherwise false.
    """
    (column,) = builder.map([use.operand])
    operand = ColumnRef(column, use.operand.type)
    member = ColumnRef(builder.arity, use.relation.types[0])
    found = ColumnRef(builder.arity + 1, BOOL)
    members = Map(Distinct(use.relation), (TRUE,))
    builder.relation = OuterJoin(
        "left", builder.relation, members, (comparison("=", operand, member),)
    )
    builder.nullable += [True, True]
    otherwise = _undecided(use, operand, builder)
    return Case(((IsNull(found), otherwise),), TRUE, BOOL)


def _undecided(use: QuantifiedUse, operand: Scalar, builder: RelationBuilder) -> Scalar:
    """The answer where nothing matched: false or unknown."""
    branches: list[tuple[Scalar, Scalar]] = []
    if use.nullable:
        null_member = Filter(use.relation, (IsNull(ColumnRef(0, use.relation.types[0])),))
        (has_null,) = builder.product(exists_relation(null_member), [False])
        branches.append((has_null, UNDECIDED))
    if builder.may_be_null(operand):
        (some,) = builder.product(exists_relation(use.relation), [False])
        branches.append((And((IsNull(operand), some)), UNDECIDED))
    return Case(tuple(branches), FALSE, BOOL) if branches else FALSE


def _ordered(use: QuantifiedUse, builder: RelationBuilder) -> Scalar:
    """`operand < ANY (query)`: it is enough to compare with the greatest or least member."""
    (column,) = builder.map([use.operand])
    operand = ColumnRef(column, use.operand.type)
    member = use.relation.types[0]
    extremes = {"<": ("max",), "<=": ("max",), ">": ("min",), ">=": ("min",), "<>": ("min", "max")}
    names = extremes[use.operator]
    aggregates = tuple(
        AggregateCall(aggregate_over(name, member), ColumnRef(0, member)) for name in names
    )
    nothing = [Literal(None, aggregate.type) for aggregate in aggregates]
    bounds = with_default_row(Reduce(use.relation, (), aggregates), nothing)
    compared = tuple(
        comparison(use.operator, operand, bound)
        for bound in builder.product(bounds, [True] * len(names))
    )
    holds = compared[0] if len(compared) == 1 else Or(compared)
    otherwise = _undecided(use, operand, builder)
    return Case(((holds, TRUE),), otherwise, BOOL)


def attach_all(deferred: Deferred, builder: RelationBuilder) -> list[Scalar]:
    """Attach every value, in order; there can be subqueries only here."""
    settled: list[Scalar] = []
    for value in deferred.values:
        assert not isinstance(value, AggregateCall), "aggregates are settled by grouping"
        assert not isinstance(value, WindowUse | RowsUse), "those are settled after HAVING"
        settled.append(attach(with_operand(value, fill_places(settled)), builder))
    return settled


def with_operand(use: SubqueryUse, change: Callable[[Scalar], Scalar]) -> SubqueryUse:
    """The same use with its operand changed; what it was computed from is settled by now."""
    match use:
        case QuantifiedUse():
            return replace(use, operand=change(use.operand))
        case RowQuantifiedUse():
            return replace(use, operands=tuple(change(operand) for operand in use.operands))
        case _:
            return use


def with_row_around(use: SubqueryUse, change: Callable[[OuterColumn], Scalar]) -> SubqueryUse:
    """The same use where the row around has become another: `change` says what its columns are."""

    def changed(column: OuterColumn) -> Scalar:
        return column if column.depth else change(column)

    return replace(use, relation=change_free(use.relation, changed))
