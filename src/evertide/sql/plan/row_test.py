"""`(a, b) IN (query)` and its kin as a value: a row against the rows of a subquery."""

from evertide.expr.outer_columns import move_free
from evertide.expr.relation import AggregateCall, Distinct, Filter, Map, OuterJoin, Reduce
from evertide.expr.scalar import And, Case, ColumnRef, IsNull, Or, Scalar
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.deferred import RowQuantifiedUse
from evertide.sql.plan.function_call import aggregate_over, comparison
from evertide.sql.plan.row import compared_rows
from evertide.sql.plan.single_row import (
    FALSE,
    TRUE,
    UNDECIDED,
    exists_relation,
    looks_around,
    with_default_row,
)
from evertide.vocab.sql_type import BOOL


def attach_row_test(use: RowQuantifiedUse, builder: RelationBuilder) -> Scalar:
    """Whether the comparison holds for any row of the query, with SQL's third value."""
    if use.operator == "=" and not looks_around(use.relation):
        return _membership(use, builder)
    return _compared_with_each(use, builder)


def _compared_with_each(use: RowQuantifiedUse, builder: RelationBuilder) -> Scalar:
    """True if any comparison is, else unknown if any is."""
    pairs = [
        (builder.lifted(operand), ColumnRef(i, use.relation.types[i]))
        for i, operand in enumerate(use.operands)
    ]
    compared = compared_rows(use.operator, pairs, lambda name, pair: comparison(name, *pair))
    some = aggregate_over("bool_or", BOOL)
    calls = (AggregateCall(some, compared), AggregateCall(some, IsNull(compared)))
    found = with_default_row(Reduce(use.relation, (), calls), [FALSE, FALSE])
    holds, unknown = builder.apply(found, [True, True])
    return Case(((holds, TRUE), (unknown, UNDECIDED)), FALSE, BOOL)


def _membership(use: RowQuantifiedUse, builder: RelationBuilder) -> Scalar:
    """Rows that are equal in every field are found by a join; only the others can be unknown."""
    columns = builder.map(use.operands)
    operands = [
        ColumnRef(column, operand.type)
        for column, operand in zip(columns, use.operands, strict=True)
    ]
    types = use.relation.types
    first = builder.arity
    on = tuple(
        comparison("=", operand, ColumnRef(first + i, types[i]))
        for i, operand in enumerate(operands)
    )
    members = Map(Distinct(move_free(use.relation, -1)), (TRUE,))
    builder.relation = OuterJoin("left", builder.relation, members, on)
    builder.nullable += [True] * (len(types) + 1)
    found = ColumnRef(first + len(types), BOOL)
    otherwise = _undecided(use, operands, builder)
    return Case(((IsNull(found), otherwise),), TRUE, BOOL)


def _undecided(
    use: RowQuantifiedUse, operands: list[ColumnRef], builder: RelationBuilder
) -> Scalar:
    """Where no row is equal: unknown if one would be but for NULLs."""
    types = use.relation.types
    members = [ColumnRef(i, sql_type) for i, sql_type in enumerate(types)]
    blank = [builder.may_be_null(operand) for operand in operands]
    if not use.nullable and not any(blank):
        return FALSE
    rows = Distinct(use.relation)
    if not any(blank):  # then the query's row must have the NULL
        holes = tuple(IsNull(member) for member in members)
        rows = Distinct(Filter(use.relation, (holes[0] if len(holes) == 1 else Or(holes),)))
    around = [builder.lifted(operand) for operand in operands]
    possible = tuple(
        Or((IsNull(one), IsNull(other), comparison("=", one, other)))
        for one, other in zip(around, members, strict=True)
    )
    near = Filter(rows, (possible[0] if len(possible) == 1 else And(possible),))
    (unknown,) = builder.apply(exists_relation(near), [False])
    return Case(((unknown, UNDECIDED),), FALSE, BOOL)
