"""FROM: tables, subqueries and joins to one relation and the scope over its row."""

from typing import assert_never

from evertide.catalog.builtin.postgres import vector_columns
from evertide.catalog.builtin.registry import builtin_of
from evertide.expr.outer_columns import move_free
from evertide.expr.relation import Get
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.join import plan_join
from evertide.sql.plan.planned import NamedQuery, fold_finishing
from evertide.sql.plan.scope import TableName, scope_of, table_name, with_table_oid, with_vectors
from evertide.sql.plan.show import plan_listing
from evertide.sql.plan.show_create import plan_show_create
from evertide.sql.plan.source import NOTHING, Source, product, with_alias
from evertide.sql.plan.table_function import plan_function_table
from evertide.sql.resolve import position_of, resolve_readable
from evertide.sql.syntax.command import ShowCreateStatement, ShowObjectsStatement
from evertide.sql.syntax.query import (
    FunctionTable,
    Join,
    ShowTable,
    Subquery,
    TableExpression,
    TableRef,
)
from evertide.vocab.errors import FeatureNotSupported


def plan_from(tables: tuple[TableExpression, ...], query: QueryContext) -> Source:
    """The product of a FROM list."""
    if not tables:
        return NOTHING
    source = plan_table(tables[0], query)
    for table in tables[1:]:
        lateral = _is_lateral(table)
        right = plan_table(table, query.within(source.scope) if lateral else query)
        source = product(source, right, at=table.at, lateral=lateral)
    return source


def _is_lateral(table: TableExpression) -> bool:
    """Whether it sees what stands before it: LATERAL, which functions are without saying so."""
    match table:
        case FunctionTable():
            return True
        case Subquery(lateral=lateral):
            return lateral
        case Join(left=left, right=right):
            return _is_lateral(left) or _is_lateral(right)
        case _:
            return False


def plan_table(table: TableExpression, query: QueryContext) -> Source:
    """One member of a FROM list."""
    match table:
        case TableRef():
            return with_alias(_named_table(table, query), table.alias)
        case Subquery():
            return with_alias(_subquery(table, query), table.alias)
        case FunctionTable():
            return with_alias(plan_function_table(table, query), table.alias)
        case ShowTable():
            return with_alias(_shown(table, query), table.alias)
        case Join(left=left_table, right=right_table):
            left = plan_table(left_table, query)
            lateral = _is_lateral(right_table)
            right = plan_table(right_table, query.within(left.scope) if lateral else query)
            joined = plan_join(table, left, right, query, lateral=lateral)
            return with_alias(joined, table.alias)
        case _:
            assert_never(table)


def _subquery(table: Subquery, query: QueryContext) -> Source:
    planned = query.plan_query(table.query, query)
    return Source(fold_finishing(planned), scope_of(planned.desc, None))


def _shown(table: ShowTable, query: QueryContext) -> Source:
    """A SHOW list or a definition in FROM. Variables are not relations."""
    if query.stored:
        raise FeatureNotSupported(
            "SHOW commands are not allowed in views", position=position_of(table.at)
        )
    if isinstance(table.show, ShowCreateStatement):
        shown = plan_show_create(table.show, query)
        return Source(shown.relation, scope_of(shown.desc, None))
    if not isinstance(table.show, ShowObjectsStatement):
        raise FeatureNotSupported(
            "only SHOW statements that list or create objects are supported in FROM",
            position=position_of(table.at),
        )
    planned = plan_listing(table.show, query)
    return Source(fold_finishing(planned), scope_of(planned.desc, None))


def _named_table(table: TableRef, query: QueryContext) -> Source:
    """A name means a query of WITH first, then a relation of the catalog."""
    named = _named_query(table, query)
    if named is not None:
        relation = move_free(named.relation, len(query.outer) - named.depth)
        return Source(relation, scope_of(named.desc, TableName(table.name.parts[0])))
    found = resolve_readable(table.name, query.plan.names)
    query.dependencies.setdefault(found.item_id)
    relation = Get(found.global_id, found.desc.types)
    scope = scope_of(found.desc, table_name(found.name))
    if found.item is not None:
        return Source(relation, with_table_oid(scope, found.item.oid))
    builtin = builtin_of(found.item_id)
    assert builtin is not None, "what is no item is a builtin"
    scope = with_vectors(scope, vector_columns(builtin.schema, builtin.name))
    return Source(relation, with_table_oid(scope, builtin.oid))


def _named_query(table: TableRef, query: QueryContext) -> NamedQuery | None:
    parts = table.name.parts
    if len(parts) != 1 or parts[0] not in query.named_queries:
        return None
    named = query.named_queries[parts[0]]
    if named is None:
        raise FeatureNotSupported(
            f'query "{parts[0]}" refers to itself, which is not supported',
            hint="Use WITH MUTUALLY RECURSIVE, and give every column its type.",
            position=position_of(table.name.at),
        )
    return named
