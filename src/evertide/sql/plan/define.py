"""CREATE TABLE, VIEW and MATERIALIZED VIEW."""

from collections.abc import Sequence
from dataclasses import replace

from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.objects import Item, ItemKind
from evertide.catalog.replacements import refuse_staged
from evertide.catalog.temporary import refuse_lasting
from evertide.expr.locality import interpreted_only
from evertide.expr.relation import Get, Relation
from evertide.expr.relation_walk import in_order_of_use, rewrite_scalars
from evertide.expr.scalar import Scalar, SessionCall
from evertide.expr.temporal import MZ_NOW, check_temporal, has_temporal
from evertide.expr.transform.passes import optimize
from evertide.persist.coding.encoding import is_storable
from evertide.sql.normalize import normal_materialized_view, normal_table, normal_view
from evertide.sql.plan.assertions import (
    ASSERT_NOT_NULL,
    asserted_columns,
    with_assertions,
    without_nulls,
)
from evertide.sql.plan.assignment import check_default
from evertide.sql.plan.coercion import with_position
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.data_type import resolve_type
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.free_name import free_destination
from evertide.sql.plan.history import RETAIN_HISTORY, history_option
from evertide.sql.plan.incremental import (
    REQUIRE_INCREMENTAL,
    check_incremental,
    with_requirement,
)
from evertide.sql.plan.keys import check_keys, with_keys
from evertide.sql.plan.named.create_type import refuse_named_types
from evertide.sql.plan.planned import PlannedQuery, fold_finishing
from evertide.sql.plan.plans import (
    CreateMaterializedViewPlan,
    CreateTablePlan,
    CreateViewPlan,
    ItemName,
)
from evertide.sql.plan.refresh import REFRESH, plan_refresh
from evertide.sql.plan.replacements.create import (
    APPLY_WHEN_HYDRATED,
    check_replacement,
    replaced_view,
)
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.structure import check_collation
from evertide.sql.pretty import to_sql
from evertide.sql.resolve import (
    Destination,
    position_of,
    resolve_cluster,
    resolve_destination,
)
from evertide.sql.syntax.definition import (
    ColumnDefinition,
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
)
from evertide.sql.syntax.option import Option
from evertide.sql.views import inline_views
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedParameter,
    WrongObjectType,
)
from evertide.vocab.ids import ItemId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc, renamed
from evertide.vocab.sql_type import Kind


def plan_create_table(statement: CreateTableStatement, query: QueryContext) -> CreateTablePlan:
    """A table and the defaults of its columns."""
    destination = free_destination(
        statement.name, query, statement.if_not_exists, temporary=statement.temporary
    )
    statement = replace(statement, temporary=destination.temporary)
    if destination.temporary and statement.options:
        raise FeatureNotSupported(
            "temporary tables keep no history", position=position_of(statement.at)
        )
    check_keys(statement, query)
    desc = with_keys(
        RelationDesc(tuple(_column(column, query) for column in statement.columns)), statement.keys
    )
    check_distinct_names(desc, [column.at for column in statement.columns])
    _check_storable(desc, statement.at)
    types = tuple(query.dependencies)
    for definition, column in zip(statement.columns, desc.columns, strict=True):
        if definition.default is not None:
            check_default(definition.default, column, query)
            refuse_named_types(definition.default, query, types, Clause.DEFAULT)
    return CreateTablePlan(
        name=item_name(destination),
        desc=desc,
        defaults=tuple(
            None if column.default is None else to_sql(column.default)
            for column in statement.columns
        ),
        create_sql=normal_table(statement, destination, query.plan.names),
        if_not_exists=statement.if_not_exists,
        history_ms=history_option(statement.options),
        depends_on=types,
        on_commit=statement.on_commit,
    )


def _column(column: ColumnDefinition, query: QueryContext) -> ColumnDesc:
    if column.collation is not None:
        check_collation(column.collation)
    return ColumnDesc(column.name, resolve_type(column.type_, query), not column.not_null)


def _check_storable(desc: RelationDesc, at: int) -> None:
    for column in desc.columns:
        if not is_storable(column.type):
            raise FeatureNotSupported(
                f'column "{column.name}" has type {column.type}, which cannot be stored',
                position=position_of(at),
            )


def check_distinct_names(desc: RelationDesc, ats: Sequence[int]) -> None:
    """A stored relation's columns have names of their own."""
    seen: set[str] = set()
    for name, at in zip(desc.names, ats, strict=True):
        if name in seen:
            raise DuplicateColumn(
                f'column "{name}" specified more than once', position=position_of(at)
            )
        seen.add(name)


def item_name(destination: Destination) -> ItemName:
    """Where a new item goes, by ids."""
    database_id = None if destination.database is None else destination.database.database_id
    return ItemName(database_id, destination.schema.schema_id, destination.name)


def existing_item(destination: Destination, query: QueryContext) -> Item | None:
    """What has this name now."""
    snapshot = query.plan.snapshot
    return snapshot.item_named(destination.schema.schema_id, destination.name)


def plan_create_view(statement: CreateViewStatement, query: QueryContext) -> CreateViewPlan:
    """A name for a query."""
    destination, replaces = _view_destination(statement, ItemKind.VIEW, query)
    statement = replace(statement, temporary=destination.temporary)
    planned = query.plan_query(statement.query, replace(query, stored=True))
    desc = _view_desc(planned, statement.columns, query, statement.at)
    return CreateViewPlan(
        name=item_name(destination),
        relation=fold_finishing(planned),
        desc=desc,
        depends_on=_dependencies(destination, replaces, query),
        create_sql=normal_view(statement, destination, query.plan.names),
        if_not_exists=statement.if_not_exists,
        replaces=replaces,
    )


def plan_create_materialized_view(
    statement: CreateMaterializedViewStatement, query: QueryContext
) -> CreateMaterializedViewPlan:
    """A query whose result one cluster keeps up to date."""
    for option in statement.options:
        _check_option(option)
    asked_refresh = plan_refresh(statement.options, query)
    query = with_requirement(statement.options, query)
    destination, replaces = _view_destination(statement, ItemKind.MATERIALIZED_VIEW, query)
    target = replaced_view(statement, query)
    cluster = resolve_cluster(
        query.plan.cluster if statement.cluster is None else statement.cluster,
        query.plan.snapshot,
        at=statement.at,
    )
    planned = query.plan_query(statement.query, replace(query, stored=True, maintained=True))
    _check_named(statement.columns, planned.desc, destination, statement.at)
    desc = _view_desc(planned, statement.columns, query, statement.at)
    _check_storable(desc, statement.at)
    asserted = asserted_columns(statement.options, desc)
    relation = with_assertions(fold_finishing(planned), asserted, desc)
    desc = without_nulls(desc, asserted)
    check_maintainable(relation, "materialized view", query, statement.at)
    replacement = None
    if target is not None:
        replacement = check_replacement(target, statement, destination, desc, query)
    return CreateMaterializedViewPlan(
        name=item_name(destination),
        cluster_id=cluster.cluster_id,
        relation=relation,
        desc=desc,
        depends_on=_dependencies(destination, replaces, query),
        create_sql=normal_materialized_view(statement, destination, cluster.name, query.plan.names),
        if_not_exists=statement.if_not_exists,
        replaces=replaces,
        history_ms=history_option(statement.options),
        replacement=replacement,
        asked_refresh=asked_refresh,
    )


def _check_named(
    names: Sequence[str], desc: RelationDesc, destination: Destination, at: int
) -> None:
    """What is stored has all of its columns named, or none."""
    if names and len(names) != desc.arity:
        which = f'materialized view "{".".join(destination.parts)}"'
        raise InvalidTableDefinition(
            f"{which} definition names {_columns(len(names))}, but {which} has"
            f" {_columns(desc.arity)}",
            position=position_of(at),
        )


def _columns(count: int) -> str:
    return f"{count} column" if count == 1 else f"{count} columns"


_OPTIONS = frozenset(
    {RETAIN_HISTORY, REQUIRE_INCREMENTAL, APPLY_WHEN_HYDRATED, ASSERT_NOT_NULL, REFRESH}
)


def _check_option(option: Option) -> None:
    """A promise that nobody keeps is worse than none."""
    if option.name not in _OPTIONS:
        raise FeatureNotSupported(
            f"materialized view option {option.name} is not supported",
            position=position_of(option.at),
        )


def _view_destination(
    statement: CreateViewStatement | CreateMaterializedViewStatement,
    kind: ItemKind,
    query: QueryContext,
) -> tuple[Destination, ItemId | None]:
    """Where a view goes, and with OR REPLACE the view that makes room for it."""
    temporary = isinstance(statement, CreateViewStatement) and statement.temporary
    if not statement.or_replace:
        exists_ok = statement.if_not_exists
        return free_destination(statement.name, query, exists_ok, temporary=temporary), None
    destination = resolve_destination(statement.name, query.plan.names, temporary=temporary)
    old = existing_item(destination, query)
    if old is None:
        return destination, None
    if old.kind is not kind:
        raise WrongObjectType(
            f'"{old.name}" is not a {kind.sql_words}', position=position_of(statement.name.at)
        )
    if old.replacement is not None:
        raise ObjectNotInPrerequisiteState(
            f"cannot replace {old.name} because it is a replacement itself",
            hint="Drop it, and create another one.",
            position=position_of(statement.name.at),
        )
    dependants = [
        one
        for one in query.plan.snapshot.dependants(old.item_id)
        if one.kind is not ItemKind.INDEX  # these go with their relation
    ]
    if dependants:
        who = [f'{one.kind.sql_words} "{one.name}"' for one in dependants]
        raise DependentObjectsStillExist(
            f'cannot drop {kind.sql_words} "{old.name}": still depended upon by {who[0]}',
            detail="\n".join(f'{one} depends on {kind.sql_words} "{old.name}"' for one in who),
            hint=f"Drop the dependent objects first, or create the {kind.sql_words} under another"
            " name.",
            position=position_of(statement.name.at),
        )
    return destination, old.item_id


def _dependencies(
    destination: Destination, replaces: ItemId | None, query: QueryContext
) -> tuple[ItemId, ...]:
    if replaces in query.dependencies:
        raise DependentObjectsStillExist(
            f"cannot replace view {destination.name}: depended upon by new"
            f" {destination.name} definition"
        )
    refuse_staged(query.plan.snapshot, query.dependencies)
    refuse_lasting(destination.schema.schema_id, query.dependencies, query.plan.snapshot)
    return tuple(query.dependencies)


def _view_desc(
    planned: PlannedQuery, names: Sequence[str], query: QueryContext, at: int
) -> RelationDesc:
    if query.parameters.finish():
        raise UndefinedParameter("there is no parameter $1", position=position_of(at))
    if len(names) > planned.desc.arity:
        raise SqlSyntaxError(
            f"view definition names {len(names)} columns, but query has {planned.desc.arity}"
            " columns",
            position=position_of(at),
        )
    desc = renamed(planned.desc, names)
    for column in desc.columns:
        if column.type.kind is Kind.RECORD:
            raise InvalidTableDefinition(
                f'column "{column.name}" has pseudo-type record', position=position_of(at)
            )
    check_distinct_names(desc, [at] * desc.arity)
    return desc


def check_maintainable(relation: Relation, what: str, query: QueryContext, at: int) -> None:
    """Refuse what has no single meaning over time, and relations that are not kept anywhere.

    Views are looked into: what they hold is maintained too.
    """
    inlined = inline_views(relation, query.plan.snapshot, ())
    check_incremental(inlined, what, query, at)
    local = interpreted_only(inlined)
    if local is not None:
        raise FeatureNotSupported(
            f"{local} is not supported in {'an' if what == 'index' else 'a'} {what}",
            hint="Create a view instead.",
            position=position_of(at),
        )
    for node in in_order_of_use(inlined):
        if isinstance(node, Get) and builtin_of(node.global_id) is not None:
            builtin = builtin_of(node.global_id)
            assert builtin is not None
            raise FeatureNotSupported(
                f"{what} over system relation {builtin.schema}.{builtin.name} is not supported",
                hint="Create a view instead.",
                position=position_of(at),
            )
        rewrite_scalars(node, lambda scalar: _refuse_session_calls(scalar, what, at))
    if has_temporal(inlined):
        with with_position(at):
            check_temporal(optimize(inlined))


def _refuse_session_calls(scalar: Scalar, what: str, at: int) -> Scalar:
    for part in walk_parts(scalar):
        if isinstance(part, SessionCall) and part != MZ_NOW:
            raise FeatureNotSupported(
                f"cannot materialize call to {part.name}",
                detail=f"Its value differs between statements; no {what} could hold all of them.",
                position=position_of(at),
            )
    return scalar
