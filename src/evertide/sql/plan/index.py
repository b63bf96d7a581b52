"""CREATE INDEX and CREATE DEFAULT INDEX."""

from collections.abc import Sequence

from evertide.catalog.objects import ItemKind
from evertide.catalog.temporary import cannot_depend_on, is_temporary
from evertide.expr.relation import Get
from evertide.sql.normalize import normal_index
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.define import check_maintainable, existing_item, item_name
from evertide.sql.plan.free_name import free_destination
from evertide.sql.plan.history import history_option
from evertide.sql.plan.index_keys import column_keys, plan_keys, with_expressions
from evertide.sql.plan.plans import CreateIndexPlan, PlannedKey
from evertide.sql.plan.scope import TableName
from evertide.sql.resolve import (
    Destination,
    Readable,
    position_of,
    resolve_cluster,
    resolve_destination,
    resolve_readable,
)
from evertide.sql.syntax.definition import CreateIndexStatement
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import FeatureNotSupported, UndefinedObject, UndefinedParameter

METHODS = {"arrangement", "btree"}


def plan_create_index(statement: CreateIndexStatement, query: QueryContext) -> CreateIndexPlan:
    """An arrangement of a relation in a cluster; the session's if none is named."""
    if statement.method is not None and statement.method not in METHODS:
        raise UndefinedObject(
            f'access method "{statement.method}" does not exist', position=position_of(statement.at)
        )
    on = resolve_readable(statement.on, query.plan.names)
    if on.item is None:
        raise FeatureNotSupported(
            f"index on system relation {'.'.join(on.name.parts)} is not supported",
            position=position_of(statement.on.at),
        )
    if on.item.replacement is not None:
        raise FeatureNotSupported(
            f"index cannot be created on {'.'.join(on.name.parts)} because it is a replacement"
            " materialized view",
            position=position_of(statement.on.at),
        )
    if is_temporary(on.item):
        raise cannot_depend_on(on.item.name)
    cluster_name = query.plan.cluster if statement.cluster is None else statement.cluster
    cluster = resolve_cluster(cluster_name, query.plan.snapshot, at=statement.at)
    keys = _keys(statement, on, query)
    if query.parameters.finish():
        raise UndefinedParameter("there is no parameter $1", position=position_of(statement.at))
    expressions = [key.scalar for key in keys if key.position is None]
    relation = with_expressions(Get(on.global_id, on.desc.types), expressions)
    if on.item.kind is ItemKind.VIEW or not isinstance(relation, Get):
        check_maintainable(relation, "index", query, statement.at)
    destination = _destination(statement, on, [key.column.name for key in keys], query)
    return CreateIndexPlan(
        name=item_name(destination),
        cluster_id=cluster.cluster_id,
        on_item=on.item_id,
        on_id=on.global_id,
        keys=keys,
        relation=relation,
        create_sql=normal_index(
            statement, destination.name, on.name, tuple(key.node for key in keys), cluster.name
        ),
        if_not_exists=statement.if_not_exists,
        history_ms=history_option(statement.options),
    )


def _keys(
    statement: CreateIndexStatement, on: Readable, query: QueryContext
) -> tuple[PlannedKey, ...]:
    """No unique keys are known, so a default index has all columns."""
    if statement.default or not statement.keys:
        return column_keys(on.desc)
    table = TableName(on.name.name, on.name.parts[:-1])
    return plan_keys(statement.keys, on.desc, table, query)


def _destination(
    statement: CreateIndexStatement, on: Readable, columns: Sequence[str], query: QueryContext
) -> Destination:
    """An index lives beside its relation. A name made for it is made unique by a number."""
    parts = on.name.parts[:-1]
    if statement.name is not None:
        wanted = Name((*parts, statement.name), at=statement.at)
        return free_destination(wanted, query, statement.if_not_exists)
    default = statement.default or not statement.keys
    stem = f"{on.name.name}_{'primary' if default else '_'.join(columns)}_idx"
    number = 0
    while True:
        name = stem if number == 0 else f"{stem}{number}"
        destination = resolve_destination(Name((*parts, name)), query.plan.names)
        if existing_item(destination, query) is None:
            return destination
        number += 1
