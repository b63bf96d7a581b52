"""One SELECT: FROM, WHERE, grouping, output columns, DISTINCT and order, in that order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evertide.expr.relation import AggregateCall, Distinct, OrderKey, TopK
from evertide.expr.scalar import Scalar
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import bind_condition, bind_expression
from evertide.sql.plan.expression_context import Clause, ExpressionContext
from evertide.sql.plan.from_clause import plan_from
from evertide.sql.plan.grouping import group
from evertide.sql.plan.output import (
    OutputItem,
    bind_group_key,
    bind_items,
    bind_key,
    group_keys,
    output_scalars,
)
from evertide.sql.plan.place import start_of
from evertide.sql.plan.planned import PlannedQuery
from evertide.sql.plan.standing import Standing, ungrouped
from evertide.sql.plan.where import plan_where
from evertide.sql.plan.window import bind_definition
from evertide.sql.plan.window_frame import named_windows
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import UNPLACED, Expression
from evertide.sql.syntax.query import OrderItem, Select
from evertide.vocab.errors import InvalidColumnReference
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc


@dataclass(frozen=True, slots=True)
class Bound:
    """A SELECT's expressions, planned over the row that FROM and WHERE give.

    Keys of ORDER BY and DISTINCT ON are positions of output columns or expressions of their own.
    """

    items: Sequence[OutputItem]
    keys: Sequence[Scalar]
    having: Scalar | None
    distinct_on: Sequence[int | Scalar]
    order: Sequence[int | Scalar]


def plan_select(
    select: Select, order_by: Sequence[OrderItem], query: QueryContext, *, keep_untyped: bool
) -> PlannedQuery:
    """A SELECT with its ORDER BY, which may name columns that are not put out."""
    source = plan_from(select.from_, query)
    builder = source.builder()
    plan_where(select.where, source.scope, builder, query)
    early, late = Deferred(), Deferred()
    context = ExpressionContext(
        query=query,
        scope=source.scope,
        clause=Clause.SELECT,
        deferred=late,
        bind_node=bind_expression,
        inner=early,
        windows=named_windows(select.windows),
    )
    bound = _bind(select, order_by, context)
    standing = _stand(select, bound, builder, early, late)
    builder, carry = standing.builder, standing.carry
    if bound.having is not None:
        builder.filter([carry(bound.having)])
    standing.attach_rest(late, query.known_rows)
    # DISTINCT has to compare its columns, so it settles their types.
    keep_untyped = keep_untyped and not select.distinct
    scalars, untyped = output_scalars(bound.items, query.parameters, keep_untyped=keep_untyped)
    outputs = Outputs(builder, carry, [carry(scalar) for scalar in scalars])
    planned = _arrange(select, order_by, bound, outputs)
    return replace(planned, untyped=untyped)


def _bind(select: Select, order_by: Sequence[OrderItem], context: ExpressionContext) -> Bound:
    items = bind_items(select.items, context, from_nothing=not select.from_)
    before = replace(
        context, clause=Clause.GROUP_BY, deferred=_inner(context), inner=None, windows=None
    )
    keys = [bind_group_key(node, items, before) for node in group_keys(select.group_by)]
    having = None
    if select.having is not None:
        after = replace(context, clause=Clause.HAVING, windows=None)
        having = bind_condition(select.having, after)
    for item in select.windows:
        bind_definition(item.window, context)
    on_context = replace(context, clause=Clause.DISTINCT_ON)
    distinct_on = [bind_key(node, items, on_context) for node in select.distinct_on]
    order_context = replace(context, clause=Clause.ORDER_BY)
    order = [bind_key(item.expression, items, order_context) for item in order_by]
    return Bound(items, keys, having, distinct_on, order)


def _inner(context: ExpressionContext) -> Deferred:
    assert context.inner is not None, "a SELECT allows aggregates"
    return context.inner


def _stand(
    select: Select, bound: Bound, builder: RelationBuilder, early: Deferred, late: Deferred
) -> Standing:
    """The relation that output expressions stand on, and how they are carried over to it."""
    aggregates = any(isinstance(value, AggregateCall) for value in late.values)
    if select.group_by or aggregates or bound.having is not None:
        return group(builder, bound.keys if select.group_by else None, early, late)
    return ungrouped(builder, late)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output scalars over the relation as it stands; `carry` brings others there."""

    builder: RelationBuilder
    carry: Callable[[Scalar], Scalar]
    scalars: Sequence[Scalar]

    def value(self, key: int | Scalar) -> Scalar:
        """What a key of ORDER BY or DISTINCT ON means: an output column or itself."""
        return self.scalars[key] if isinstance(key, int) else self.carry(key)


def _arrange(
    select: Select, order_by: Sequence[OrderItem], bound: Bound, outputs: Outputs
) -> PlannedQuery:
    keys = [outputs.value(key) for key in bound.order]
    builder, width = outputs.builder, len(outputs.scalars)
    if select.distinct and not select.distinct_on:
        _check_distinct(keys, order_by, outputs.scalars)
        builder.project(builder.map(outputs.scalars))
        builder.relation = Distinct(builder.relation)
        positions = list(range(width))
        order = [outputs.scalars.index(key) for key in keys]
        return _planned(bound.items, builder, positions, _order_keys(order, order_by))
    on = [outputs.value(key) for key in bound.distinct_on]
    columns = builder.map([*outputs.scalars, *keys, *on])
    order_keys = _order_keys(columns[width : width + len(keys)], order_by)
    if on:
        _check_distinct_on(on, keys, select.distinct_on)
        on_columns = tuple(dict.fromkeys(columns[width + len(keys) :]))
        builder.relation = TopK(builder.relation, on_columns, order_keys, limit=1)
    return _planned(bound.items, builder, columns[:width], order_keys)


def _order_keys(columns: Sequence[int], order_by: Sequence[OrderItem]) -> tuple[OrderKey, ...]:
    return tuple(order_key(column, item) for column, item in zip(columns, order_by, strict=True))


def order_key(column: int, item: OrderItem) -> OrderKey:
    """NULLs are greater than everything unless the item says otherwise."""
    nulls_first = item.descending if item.nulls_first is None else item.nulls_first
    return OrderKey(column, item.descending, nulls_first)


def _check_distinct(
    keys: Sequence[Scalar], order_by: Sequence[OrderItem], scalars: Sequence[Scalar]
) -> None:
    """What is not put out may differ between rows that DISTINCT makes one."""
    for key, item in zip(keys, order_by, strict=True):
        if key not in scalars:
            raise InvalidColumnReference(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                position=position_of(start_of(item.expression)),
            )


def _check_distinct_on(
    on: Sequence[Scalar], keys: Sequence[Scalar], nodes: Sequence[Expression]
) -> None:
    """The order may choose among rows of one group only, so it must begin with the group."""
    leading = list(dict.fromkeys(keys))[: len(set(on))]
    if set(leading) <= set(on):
        return
    missing = (node for scalar, node in zip(on, nodes, strict=True) if scalar not in leading)
    raise InvalidColumnReference(
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
        position=position_of(start_of(next(missing))),
    )


def _planned(
    items: Sequence[OutputItem],
    builder: RelationBuilder,
    columns: Sequence[int],
    order: tuple[OrderKey, ...],
) -> PlannedQuery:
    types = builder.relation.types
    desc = RelationDesc(
        tuple(
            ColumnDesc(item.name, types[column], builder.nullable[column])
            for item, column in zip(items, columns, strict=True)
        )
    )
    ats = [UNPLACED if item.node is None else start_of(item.node) for item in items]
    vectors = tuple(number for number, item in enumerate(items) if item.vector)
    return PlannedQuery(
        builder.relation, tuple(columns), desc, order, ats=tuple(ats), vectors=vectors
    )
