"""Subqueries in expressions, attached to the relation of the query around as joins.

None is correlated, so each is one relation computed apart: a value is joined as a single row, a
membership test as an outer join with the distinct members.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from evertide.expr.relation import (
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Map,
    OuterJoin,
    Project,
    Reduce,
    Relation,
    Union,
)
from evertide.expr.scalar import And, Call, Case, ColumnRef, IsNull, Literal, Or, Scalar
from evertide.sql.plan.builder import ONE_ROW, RelationBuilder
from evertide.sql.plan.cardinality import has_at_most_one_row, has_exactly_one_row
from evertide.sql.plan.deferred import (
    Deferred,
    ExistsUse,
    QuantifiedUse,
    ScalarUse,
    SubqueryUse,
    fill_places,
)
from evertide.sql.plan.difference import minus
from evertide.sql.plan.function_call import AT_MOST_ONE_ROW, aggregate_over, comparison
from evertide.vocab.sql_type import BOOL

TRUE = Literal(True, BOOL)
FALSE = Literal(False, BOOL)
UNDECIDED = Literal(None, BOOL)


def attach(use: SubqueryUse, builder: RelationBuilder) -> Scalar:
    """Join what the subquery gives to the relation; the result is its value on each row."""
    match use:
        case ScalarUse(relation=relation):
            return _one_row(builder, value_relation(relation))
        case ExistsUse(relation=relation):
            return _one_row(builder, exists_relation(relation))
        case QuantifiedUse(operator="="):
            return _membership(use, builder)
        case QuantifiedUse():
            return _ordered(use, builder)
        case _:
            assert_never(use)


def _one_row(builder: RelationBuilder, relation: Relation) -> Scalar:
    (value,) = builder.product(relation, [True])
    return value


def with_default_row(rows: Relation, defaults: Sequence[Literal]) -> Relation:
    """`rows`, of which there is at most one, or these values if there is none."""
    return Union((rows, Map(minus(ONE_ROW, Project(rows, ())), tuple(defaults))))


def value_relation(query: Relation) -> Relation:
    """The one row of a scalar subquery: its value, or NULL; an error if it has two rows."""
    if has_exactly_one_row(query):
        return query
    null = Literal(None, query.types[0])
    if has_at_most_one_row(query):
        return with_default_row(query, [null])
    counted = Reduce(query, (), (AggregateCall(aggregate_over("count", None), None),))
    count = ColumnRef(0, counted.types[0])
    checked = Filter(counted, (Call(AT_MOST_ONE_ROW, (count,), AT_MOST_ONE_ROW.result),))
    value = Project(Join((query, checked)), (0,))
    return Union((value, Map(minus(ONE_ROW, Project(counted, ())), (null,))))


def presence(query: Relation) -> Relation:
    """One row without columns if the query has rows, none otherwise."""
    return Distinct(Project(query, ()))


def absence(query: Relation) -> Relation:
    """One row without columns if the query has none."""
    return minus(ONE_ROW, presence(query))


def exists_relation(query: Relation) -> Relation:
    """One row with one boolean: whether the query has rows."""
    found = presence(query)
    return Union((Map(found, (TRUE,)), Map(minus(ONE_ROW, found), (FALSE,))))


def semi_join(builder: RelationBuilder, operands: Sequence[Scalar], query: Relation) -> None:
    """Keep rows whose operands are a row of the query; NULLs are equal to nothing."""
    columns = builder.map(operands)
    first = builder.arity
    members = Distinct(query)
    pairs = tuple((column, first + i) for i, column in enumerate(columns))
    builder.relation = Join((builder.relation, members), pairs)
    builder.nullable += [False] * len(columns)


def _membership(use: QuantifiedUse, builder: RelationBuilder) -> Scalar:
    """`operand = ANY (query)` with SQL's third value.

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
        branches.append((_one_row(builder, exists_relation(null_member)), UNDECIDED))
    if builder.may_be_null(operand):
        some = _one_row(builder, exists_relation(use.relation))
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
    """Attach every value, in order; aggregates cannot be among them here."""
    settled: list[Scalar] = []
    for value in deferred.values:
        assert not isinstance(value, AggregateCall), "aggregates are settled by grouping"
        settled.append(attach(with_operand(value, fill_places(settled)), builder))
    return settled


def with_operand(use: SubqueryUse, change: Callable[[Scalar], Scalar]) -> SubqueryUse:
    """The same use with its operand changed; what it was computed from is settled by now."""
    if isinstance(use, QuantifiedUse):
        return replace(use, operand=change(use.operand))
    return use
