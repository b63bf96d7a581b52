"""Plans of sources and sinks to catalog ops; pure."""

from evertide.catalog.new_external import Beside, NewIndex, NewSink, NewSource, NewSubsource
from evertide.catalog.objects import IndexKey, stored_columns
from evertide.catalog.ops import CreateItemOp, NewDefinition, Op
from evertide.sql.plan.external.plans import (
    CreateSinkPlan,
    CreateSourcePlan,
    NewIndexPlan,
    NewTablePlan,
    Placed,
)
from evertide.vocab.ids import ItemId, RoleId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp


def create_source(plan: CreateSourcePlan, owner: RoleId, as_of: Timestamp) -> list[Op]:
    """The source first, then what belongs to it: all of it or nothing."""
    definition = NewSource(
        cluster_id=plan.cluster_id,
        as_of=as_of,
        load=plan.load,
        stored=not plan.tables,
        history_ms=plan.history_ms,
    )
    ops: list[Op] = [_create(plan.item, owner, plan.desc, definition)]
    ops += [_table(plan, table, owner, as_of) for table in plan.tables]
    ops += [_index(plan, index, owner) for index in plan.indexes]
    return ops


def _table(
    plan: CreateSourcePlan, table: NewTablePlan, owner: RoleId, as_of: Timestamp
) -> CreateItemOp:
    definition = NewSubsource(
        of=Beside(plan.item.schema_id, plan.item.name),
        table=table.table,
        as_of=as_of,
        history_ms=plan.history_ms,
    )
    return _create(table.item, owner, table.desc, definition)


def _index(plan: CreateSourcePlan, index: NewIndexPlan, owner: RoleId) -> CreateItemOp:
    definition = NewIndex(
        on=Beside(index.on.schema_id, index.on.name),
        cluster_id=plan.cluster_id,
        keys=tuple(IndexKey(position=i) for i in range(index.desc.arity)),
    )
    return _create(index.item, owner, index.desc, definition)


def create_sink(plan: CreateSinkPlan, owner: RoleId, as_of: Timestamp) -> list[Op]:
    """A sink has no columns: nobody reads it."""
    definition = NewSink(
        from_id=plan.from_id,
        cluster_id=plan.cluster_id,
        as_of=as_of,
        path=plan.path,
        snapshot=plan.snapshot,
    )
    return [_create(plan.item, owner, RelationDesc(()), definition, plan.from_id)]


def _create(
    item: Placed,
    owner: RoleId,
    desc: RelationDesc,
    definition: NewDefinition,
    *depends_on: ItemId,
) -> CreateItemOp:
    return CreateItemOp(
        schema_id=item.schema_id,
        name=item.name,
        owner=owner,
        create_sql=item.create_sql,
        columns=stored_columns(desc),
        depends_on=depends_on,
        definition=definition,
    )
