"""Subqueries in expressions, and ANY and ALL over arrays."""

from collections.abc import Sequence
from typing import Final, assert_never

from evertide.expr.relation import AggregateCall, ArgumentOrder, Relation, TopK
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.sql.plan.deferred import (
    ArrayUse,
    ExistsUse,
    QuantifiedUse,
    RowQuantifiedUse,
    ScalarUse,
)
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import (
    bound_aggregate,
    call_quantified,
    comparison_operands,
    negated,
)
from evertide.sql.plan.planned import PlannedQuery, fold_finishing
from evertide.sql.plan.record import spread
from evertide.sql.plan.set_operation import with_columns
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    AnyAll,
    ArraySubquery,
    Exists,
    Expression,
    InSubquery,
    RowConstructor,
    ScalarSubquery,
)
from evertide.sql.syntax.query import Query
from evertide.vocab.errors import FeatureNotSupported, SqlSyntaxError

# `x op ALL (q)` is NOT (x other ANY (q)).
_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def bind_subquery(
    node: Exists | ScalarSubquery | InSubquery | AnyAll | ArraySubquery, context: ExpressionContext
) -> Scalar:
    """A subquery's value: deferred, because it is joined to the relation later."""
    match node:
        case Exists(query=query):
            planned = plan_inner(query, context)
            return context.deferred.reserve(ExistsUse(fold_finishing(planned)))
        case ScalarSubquery(query=query):
            planned = plan_inner(query, context)
            if planned.desc.arity != 1:
                raise SqlSyntaxError(
                    f"Expected subselect to return 1 column, got {planned.desc.arity} columns",
                    position=position_of(node.at),
                )
            return context.deferred.reserve(ScalarUse(fold_finishing(planned)))
        case InSubquery(operand=operand, query=query, negated=is_negated):
            found = _any(operand, "=", query, context, node.at)
            return negated(found) if is_negated else found
        case AnyAll():
            return _bind_any_all(node, context)
        case ArraySubquery():
            return context.deferred.reserve(_array_use(node, context))
        case _:
            assert_never(node)


def _array_use(node: ArraySubquery, context: ExpressionContext) -> ArrayUse:
    """ARRAY(query): an aggregate over the query's rows, in the query's order."""
    planned = plan_inner(node.query, context)
    _check_width(planned, 1, node.at)
    cut = planned.limit is not None or bool(planned.offset)
    relation = planned.relation
    if cut:
        relation = TopK(relation, (), planned.order, planned.limit, planned.offset)
    types = relation.types
    value = ColumnRef(planned.columns[0], types[planned.columns[0]])
    function, argument = bound_aggregate("array_agg", [value], context.query, at=node.at)
    order = tuple(
        ArgumentOrder(ColumnRef(key.column, types[key.column]), key.descending, key.nulls_first)
        for key in planned.order
    )
    if order == (ArgumentOrder(value),):  # which is how arguments are looked at anyway
        order = ()
    return ArrayUse(AggregateCall(function, argument, order=order), relation)


def plan_inner(query: Query, context: ExpressionContext) -> PlannedQuery:
    """A subquery, which sees the row that its value is for."""
    inner = context.query.within(context.scope, context.deferred)
    return inner.plan_query(query, inner)


def _check_width(planned: PlannedQuery, width: int, at: int) -> None:
    if planned.desc.arity == width:
        return
    if width == 1:
        message = "subquery must return only one column"
    else:
        few = planned.desc.arity < width
        message = f"subquery has too {'few' if few else 'many'} columns"
    raise SqlSyntaxError(message, position=position_of(at))


def _bind_any_all(node: AnyAll, context: ExpressionContext) -> Scalar:
    if node.schema not in ((), ("pg_catalog",)):
        raise FeatureNotSupported(
            f"operator {'.'.join(node.schema)}.{node.operator} is not supported",
            position=position_of(node.at),
        )
    every = node.quantifier == "ALL"
    if not isinstance(node.source, Query):
        operands = [context.bind(node.left), context.bind(node.source)]
        return call_quantified(node.operator, operands, context.query, every=every, at=node.at)
    if node.operator not in _OPPOSITE:
        raise FeatureNotSupported(
            f"operator {node.operator} with {node.quantifier} and a subquery is not supported",
            position=position_of(node.at),
        )
    if not every:
        return _any(node.left, node.operator, node.source, context, node.at)
    return negated(_any(node.left, _OPPOSITE[node.operator], node.source, context, node.at))


def _any(
    operand: Expression, operator: str, query: Query, context: ExpressionContext, at: int
) -> Scalar:
    if isinstance(operand, RowConstructor):
        return _any_row(operand, operator, query, context, at)
    bound = context.without_rows("comparisons with a subquery").bind(operand)
    planned = plan_inner(query, context)
    _check_width(planned, 1, at)
    (value,), relation = _matched([bound], planned, operator, context, at)
    nullable = planned.desc.columns[0].nullable
    return context.deferred.reserve(QuantifiedUse(operator, value, relation, nullable))


def _any_row(
    row: RowConstructor, operator: str, query: Query, context: ExpressionContext, at: int
) -> Scalar:
    inside = context.without_rows("comparisons with a subquery")
    operands = [inside.bind(field) for field in spread(row, context).fields]
    planned = plan_inner(query, context)
    _check_width(planned, len(operands), at)
    values, relation = _matched(operands, planned, operator, context, at)
    nullable = any(column.nullable for column in planned.desc.columns)
    return context.deferred.reserve(RowQuantifiedUse(operator, tuple(values), relation, nullable))


def bind_members(node: InSubquery, context: ExpressionContext) -> tuple[Sequence[Scalar], Relation]:
    """`(a, b) IN (query)`: the operands, and the query's rows in types that compare with them."""
    row: Sequence[Expression] = (node.operand,)
    if isinstance(node.operand, RowConstructor):
        row = spread(node.operand, context).fields
    operands = [context.bind(part) for part in row]
    planned = plan_inner(node.query, context)
    _check_width(planned, len(operands), node.at)
    return _matched(operands, planned, "=", context, node.at)


def _matched(
    operands: Sequence[Scalar],
    planned: PlannedQuery,
    operator: str,
    context: ExpressionContext,
    at: int,
) -> tuple[list[Scalar], Relation]:
    """Operands and the query's columns, each pair in the types its comparison takes."""
    if not operands:
        raise FeatureNotSupported(
            "comparing rows without fields is not supported", position=position_of(at)
        )
    values: list[Scalar] = []
    members: list[Scalar] = []
    for index, operand in enumerate(operands):
        column = ColumnRef(index, planned.desc.columns[index].type)
        value, member = comparison_operands(operator, [operand, column], context.query, at=at)
        values.append(value)
        members.append(member)
    return values, with_columns(fold_finishing(planned), members)
