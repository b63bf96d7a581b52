"""UPDATE and DELETE: which rows change, and into what."""

from collections.abc import Sequence

from evertide.catalog.objects import Item
from evertide.expr.functions.cast import CastContext
from evertide.expr.relation import Get, Join, Map, Relation, TopK
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.sql.plan.assignment import assign
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred, fill_places
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.from_clause import plan_from
from evertide.sql.plan.no_clock import refuse_mz_now
from evertide.sql.plan.place import start_of
from evertide.sql.plan.plans import DeletePlan, UpdatePlan
from evertide.sql.plan.row import key_of
from evertide.sql.plan.scope import Scope
from evertide.sql.plan.set_operation import intersect_all
from evertide.sql.plan.source import Source, product
from evertide.sql.plan.subquery import attach_all
from evertide.sql.plan.target import (
    column_position,
    default_of,
    plan_returning,
    table_scope,
    writable_table,
)
from evertide.sql.plan.where import plan_where
from evertide.sql.resolve import position_of
from evertide.sql.syntax.command import Assignment, DeleteStatement, UpdateStatement
from evertide.sql.syntax.expression import DefaultValue, Expression, Star
from evertide.sql.syntax.query import SelectItem, TableExpression
from evertide.vocab.errors import FeatureNotSupported, SqlSyntaxError
from evertide.vocab.sql_type import TEXT, Kind, SqlType


def plan_update(statement: UpdateStatement, query: QueryContext) -> UpdatePlan:
    """New values for the columns of some rows."""
    table = writable_table(statement.table, "update", query)
    query.dependencies.setdefault(table.item_id)
    scope = table_scope(table, statement.alias, query)
    if statement.from_:
        _check_returning(statement.returning)
    plan = _update_from if statement.from_ else _update_alone
    selection, assignments = plan(statement, table, scope, query)
    returning = plan_returning(statement.returning, scope, query)
    refuse_mz_now(selection, returning, assignments)
    return UpdatePlan(table.item_id, selection, assignments, returning)


def _check_returning(items: Sequence[SelectItem]) -> None:
    """RETURNING sees the table's row alone, but * would be the columns of FROM too."""
    for item in items:
        if isinstance(item.expression, Star) and not item.expression.qualifier:
            raise FeatureNotSupported(
                "RETURNING * of UPDATE ... FROM is not supported",
                hint="Name the columns, or the table as in t.*.",
                position=position_of(item.at),
            )


def _update_alone(
    statement: UpdateStatement, table: Item, scope: Scope, query: QueryContext
) -> tuple[Relation, tuple[Scalar, ...]]:
    """The rows that match, with what subqueries in SET need, and the new values over that."""
    selection = _selection(table, scope, (), statement.where, query)
    builder = RelationBuilder(selection, [column.nullable for column in table.desc.columns])
    values = _assignments(statement.assignments, table, scope, builder, query)
    kept = [ColumnRef(i, sql_type) for i, sql_type in enumerate(table.desc.types)]
    return builder.relation, tuple(values.get(i, column) for i, column in enumerate(kept))


def _update_from(
    statement: UpdateStatement, table: Item, scope: Scope, query: QueryContext
) -> tuple[Relation, tuple[Scalar, ...]]:
    """A row that matches several rows of FROM takes its values from one of them.

    Rows are told apart by a key, over which the values that one of them gets are joined to it.
    """
    types, arity = table.desc.types, table.desc.arity
    kept = [ColumnRef(i, sql_type) for i, sql_type in enumerate(types)]
    at = statement.from_[0].at
    rows = Map(Get(table.global_id, types), (_telling_key(kept, query, at),))
    source = product(Source(rows, scope), plan_from(statement.from_, query), at=at)
    builder = source.builder()
    plan_where(statement.where, source.scope, builder, query)
    values = _assignments(statement.assignments, table, source.scope, builder, query)
    builder.project((arity, *builder.map(list(values.values()))))
    one = TopK(builder.relation, (0,), (), 1)
    first = arity + 2  # behind the row, its key, and the same key
    given = {i: ColumnRef(first + n, types[i]) for n, i in enumerate(values)}
    joined = Join((rows, one), ((arity, arity + 1),))
    return joined, tuple(given.get(i, column) for i, column in enumerate(kept))


def _telling_key(columns: Sequence[ColumnRef], query: QueryContext, at: int) -> Scalar:
    """By which rows are told apart, also such as are equal and yet not the same: '1 month' and
    '30 days', 0 and -0. Their texts differ."""
    texts = [
        coerce(column, TEXT, CastContext.EXPLICIT, query, at=at)
        for column in columns
        if _has_more_than_its_value(column.type)
    ]
    return key_of([*columns, *texts], at)


def _has_more_than_its_value(sql_type: SqlType) -> bool:
    if sql_type.element is not None:
        return _has_more_than_its_value(sql_type.element)
    return sql_type.kind in (Kind.INTERVAL, Kind.FLOAT4, Kind.FLOAT8)


def plan_delete(statement: DeleteStatement, query: QueryContext) -> DeletePlan:
    """Rows that go."""
    table = writable_table(statement.table, "delete from", query)
    query.dependencies.setdefault(table.item_id)
    scope = table_scope(table, statement.alias, query)
    selection = _selection(table, scope, statement.using, statement.where, query)
    returning = plan_returning(statement.returning, scope, query)
    refuse_mz_now(selection, returning)
    return DeletePlan(table.item_id, selection, returning)


def _selection(
    table: Item,
    scope: Scope,
    using: Sequence[TableExpression],
    where: Expression | None,
    query: QueryContext,
) -> Relation:
    """The table's rows that match; with USING, as often as they are there and not as they match."""
    rows = Get(table.global_id, table.desc.types)
    source = Source(rows, scope)
    if using:  # whose members may look at each other, but not at the table
        source = product(source, plan_from(tuple(using), query), at=using[0].at)
    builder = source.builder()
    plan_where(where, source.scope, builder, query)
    builder.project(range(table.desc.arity))
    return intersect_all(rows, builder.relation) if using else builder.relation


def _assignments(
    assignments: Sequence[Assignment],
    table: Item,
    scope: Scope,
    builder: RelationBuilder,
    query: QueryContext,
) -> dict[int, Scalar]:
    """New values over the builder's row, by the columns that get them."""
    deferred = Deferred()
    context = plain_context(scope, query, Clause.UPDATE, deferred)
    values: dict[int, Scalar] = {}
    for assignment in assignments:
        position = column_position(assignment.column, table, assignment.at)
        if position in values:
            raise SqlSyntaxError(
                f'multiple assignments to same column "{assignment.column}"',
                position=position_of(assignment.at),
            )
        if isinstance(assignment.value, DefaultValue):
            values[position] = default_of(table, position, query)
        else:
            value = context.bind(assignment.value)
            column = table.desc.columns[position]
            values[position] = assign(value, column, query, at=start_of(assignment.value))
    fill = fill_places(attach_all(deferred, builder))
    return {position: fill(value) for position, value in values.items()}
