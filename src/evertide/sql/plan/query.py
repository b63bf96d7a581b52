"""Queries: WITH, a body, and the order and limit of its rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from evertide.expr.relation import OrderKey
from evertide.expr.scalar import ColumnRef
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred, fill_places
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.limit import plan_limit, plan_offset
from evertide.sql.plan.output import OutputItem, bind_key
from evertide.sql.plan.planned import NamedQuery, PlannedQuery, fold_finishing
from evertide.sql.plan.recursion import Bindings
from evertide.sql.plan.scope import scope_of
from evertide.sql.plan.select import order_key, plan_select
from evertide.sql.plan.set_operation import combine
from evertide.sql.plan.subquery import attach_all
from evertide.sql.plan.values import plan_literal_values, plan_values
from evertide.sql.resolve import position_of
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import (
    CommonTable,
    OrderItem,
    Query,
    QueryBody,
    Select,
    SetOperation,
    Values,
    With,
)
from evertide.vocab.errors import DuplicateAlias, InvalidColumnReference
from evertide.vocab.relation_desc import RelationDesc, renamed


def plan_query(query: Query, context: QueryContext) -> PlannedQuery:
    """A query whose constants of no type are text."""
    return plan_untyped_query(query, context, keep_untyped=False)


def plan_untyped_query(
    query: Query, context: QueryContext, *, keep_untyped: bool = True
) -> PlannedQuery:
    """A query; constants of no type are left to whoever takes it in, with `keep_untyped`."""
    bindings = None
    inner = context
    if query.with_ is not None and query.with_.mutually:
        bindings = Bindings(query.with_, context, plan_untyped_query)
        inner = bindings.context
    elif query.with_ is not None:
        inner = _with_named_queries(query.with_, context)
    planned = _plan_body(query.body, query.order_by, inner, keep_untyped=keep_untyped)
    if bindings is not None:
        planned = bindings.around(planned)
    if query.limit is None and query.offset is None:
        return planned
    if planned.limit is not None or planned.offset:  # a body in parentheses had its own
        planned = _closed(planned)
    limit = None if query.limit is None else plan_limit(query.limit, inner)
    offset = 0 if query.offset is None else plan_offset(query.offset, inner)
    return replace(planned, limit=limit, offset=offset)


def _with_named_queries(with_: With, context: QueryContext) -> QueryContext:
    """Each query of the list sees those before it."""
    named: dict[str, NamedQuery | None] = dict(context.named_queries)
    seen: set[str] = set()
    for table in with_.tables:
        if table.name in seen:
            raise DuplicateAlias(
                f'WITH query name "{table.name}" specified more than once',
                position=position_of(table.at),
            )
        seen.add(table.name)
        before = replace(context, named_queries=dict(named))
        if with_.recursive:
            before = replace(context, named_queries={**named, table.name: None})
        named[table.name] = _named_query(table, before)
    return replace(context, named_queries=named)


def _named_query(table: CommonTable, context: QueryContext) -> NamedQuery:
    planned = plan_query(table.query, context)
    if len(table.columns) > planned.desc.arity:
        raise InvalidColumnReference(
            f'WITH query "{table.name}" has {planned.desc.arity} columns available but'
            f" {len(table.columns)} columns specified",
            position=position_of(table.at),
        )
    desc = renamed(planned.desc, table.columns)
    return NamedQuery(fold_finishing(planned), desc, len(context.outer))


def _plan_body(
    body: QueryBody, order_by: Sequence[OrderItem], context: QueryContext, *, keep_untyped: bool
) -> PlannedQuery:
    match body:
        case Select():
            return plan_select(body, order_by, context, keep_untyped=keep_untyped)
        case Query():
            planned = plan_untyped_query(body, context, keep_untyped=keep_untyped)
            return _ordered(_closed(planned), order_by, context) if order_by else planned
        case Values():
            return _ordered(plan_values(body, context), order_by, context)
        case LiteralValues():
            return _ordered(plan_literal_values(body), order_by, context)
        case SetOperation(inputs=inputs):
            parts = [_plan_body(part, (), context, keep_untyped=True) for part in inputs]
            combined = combine(body, parts, context)
            return _ordered(combined, order_by, context, Clause.SET_ORDER_BY)
        case _:
            assert_never(body)


def _closed(planned: PlannedQuery) -> PlannedQuery:
    """The same rows as a relation of its own; its order is lost unless a limit needs it."""
    relation = fold_finishing(planned)
    columns = tuple(range(planned.desc.arity))
    return PlannedQuery(relation, columns, planned.desc, untyped=planned.untyped, ats=planned.ats)


def _ordered(
    planned: PlannedQuery,
    order_by: Sequence[OrderItem],
    context: QueryContext,
    clause: Clause = Clause.ORDER_BY,
) -> PlannedQuery:
    """The rows of something that is no SELECT, ordered by its output columns, or by what is
    computed from them."""
    if not order_by:
        return planned
    deferred = Deferred()
    scope = scope_of(planned.desc, None)
    keys_context = plain_context(scope, context, clause, deferred)
    items = _items(planned.desc)
    keys = [bind_key(item.expression, items, keys_context) for item in order_by]
    builder = RelationBuilder(planned.relation, [c.nullable for c in planned.desc.columns])
    fill = fill_places(attach_all(deferred, builder))
    scalars = [items[key].scalar if isinstance(key, int) else fill(key) for key in keys]
    order: list[OrderKey] = []
    for column, item in zip(builder.map(scalars), order_by, strict=True):
        order.append(order_key(column, item))
    return replace(planned, relation=builder.relation, order=tuple(order))


def _items(desc: RelationDesc) -> list[OutputItem]:
    return [
        OutputItem(column.name, ColumnRef(index, column.type), None)
        for index, column in enumerate(desc.columns)
    ]
