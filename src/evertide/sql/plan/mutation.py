"""UPDATE and DELETE: which rows change, and into what."""

from collections.abc import Sequence

from evertide.catalog.objects import Item
from evertide.expr.relation import Get, Relation
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.sql.plan.assignment import assign
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.from_clause import plan_table
from evertide.sql.plan.no_clock import refuse_mz_now
from evertide.sql.plan.place import start_of
from evertide.sql.plan.plans import DeletePlan, UpdatePlan
from evertide.sql.plan.scope import Scope
from evertide.sql.plan.set_operation import intersect_all
from evertide.sql.plan.source import Source, product
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
from evertide.sql.syntax.expression import DefaultValue, Expression
from evertide.sql.syntax.query import TableExpression
from evertide.vocab.errors import FeatureNotSupported, SqlSyntaxError


def plan_update(statement: UpdateStatement, query: QueryContext) -> UpdatePlan:
    """New values for the columns of some rows."""
    table = writable_table(statement.table, "update", query)
    if statement.from_:
        raise FeatureNotSupported(
            "UPDATE ... FROM is not supported",
            hint="Use a subquery in WHERE.",
            position=position_of(statement.from_[0].at),
        )
    scope = table_scope(table, statement.alias, query)
    selection = _selection(table, scope, (), statement.where, query)
    assignments = _assignments(statement.assignments, table, scope, query)
    returning = plan_returning(statement.returning, scope, query)
    refuse_mz_now(selection, returning, assignments)
    return UpdatePlan(table.item_id, selection, assignments, returning)


def plan_delete(statement: DeleteStatement, query: QueryContext) -> DeletePlan:
    """Rows that go."""
    table = writable_table(statement.table, "delete from", query)
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
    query.dependencies.setdefault(table.item_id)
    rows = Get(table.global_id, table.desc.types)
    source = Source(rows, scope)
    for other in using:
        source = product(source, plan_table(other, query), at=other.at)
    builder = source.builder()
    plan_where(where, source.scope, builder, query)
    builder.project(range(table.desc.arity))
    return intersect_all(rows, builder.relation) if using else builder.relation


def _assignments(
    assignments: Sequence[Assignment], table: Item, scope: Scope, query: QueryContext
) -> tuple[Scalar, ...]:
    """Every column's new value, over the old ones."""
    deferred = Deferred()
    context = plain_context(scope, query, Clause.UPDATE, deferred)
    values: list[Scalar] = [ColumnRef(i, t) for i, t in enumerate(table.desc.types)]
    assigned: set[int] = set()
    for assignment in assignments:
        position = column_position(assignment.column, table, assignment.at)
        if position in assigned:
            raise SqlSyntaxError(
                f'multiple assignments to same column "{assignment.column}"',
                position=position_of(assignment.at),
            )
        assigned.add(position)
        if isinstance(assignment.value, DefaultValue):
            values[position] = default_of(table, position, query)
        else:
            value = context.bind(assignment.value)
            column = table.desc.columns[position]
            values[position] = assign(value, column, query, at=start_of(assignment.value))
    if deferred.values:
        raise FeatureNotSupported(
            "subqueries in SET are not supported", position=position_of(assignments[0].at)
        )
    return tuple(values)
