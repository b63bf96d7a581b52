"""DDL plans to catalog ops; pure, one small function per kind."""

from typing import assert_never

from evertide.adapter.ddl.cluster_ops import cluster_ops
from evertide.adapter.ddl.external_ops import create_sink, create_source
from evertide.adapter.ddl.named_ops import named_op
from evertide.adapter.stored_variables import checked_variables, system_ops
from evertide.catalog.drop import without_cascade
from evertide.catalog.dropped_ops import UndropItemsOp
from evertide.catalog.objects import (
    Index,
    IndexKey,
    View,
    stored_columns,
)
from evertide.catalog.ops import (
    CreateDatabaseOp,
    CreateItemOp,
    CreateSchemaOp,
    DropClusterOp,
    DropClusterReplicaOp,
    DropDatabaseOp,
    DropItemsOp,
    DropSchemaOp,
    DropSecretOp,
    NewMaterializedView,
    NewTable,
    Op,
    RenameItemOp,
    SetHistoryOp,
)
from evertide.catalog.replacement_ops import ApplyReplacementOp, NoteHydratedOp
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters.plans import (
    AlterClusterProfilePlan,
    ChangePlan,
    CreateClusterPlan,
    CreateClusterProfilePlan,
    ReconfigureClusterPlan,
)
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
from evertide.sql.plan.named.plans import AlterSecretPlan, CreateSecretPlan, CreateTypePlan
from evertide.sql.plan.plans import (
    AlterHistoryPlan,
    AlterSystemPlan,
    CreateDatabasePlan,
    CreateIndexPlan,
    CreateMaterializedViewPlan,
    CreateSchemaPlan,
    CreateTablePlan,
    CreateViewPlan,
    DdlPlan,
    DropPlan,
    PlannedKey,
    RenameItemPlan,
)
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.sql.pretty import to_sql
from evertide.sql.schema_list import variable_text
from evertide.vocab.ids import ItemId, RoleId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

TAGS: dict[type[DdlPlan], str] = {
    CreateTablePlan: "CREATE TABLE",
    CreateViewPlan: "CREATE VIEW",
    CreateIndexPlan: "CREATE INDEX",
    CreateSourcePlan: "CREATE SOURCE",
    CreateSinkPlan: "CREATE SINK",
    CreateSchemaPlan: "CREATE SCHEMA",
    CreateDatabasePlan: "CREATE DATABASE",
    CreateClusterPlan: "CREATE CLUSTER",
    CreateClusterProfilePlan: "CREATE CLUSTER PROFILE",
    AlterClusterProfilePlan: "ALTER CLUSTER PROFILE",
    ReconfigureClusterPlan: "ALTER CLUSTER",
    AlterSystemPlan: "ALTER SYSTEM",
    ApplyReplacementPlan: "ALTER MATERIALIZED VIEW",
    CreateTypePlan: "CREATE TYPE",
    CreateSecretPlan: "CREATE SECRET",
    AlterSecretPlan: "ALTER SECRET",
}


def ops_for(
    plan: DdlPlan, owner: RoleId, as_of: Timestamp, snapshot: Snapshot, *, now_ms: int = 0
) -> list[Op]:
    """What a plan asks of the catalog. `as_of` is that of a new view, source or sink."""
    match plan:
        case CreateTablePlan():
            return [_create_table(plan, owner)]
        case CreateViewPlan():
            return [*_replaced(plan.replaces, snapshot), _create_view(plan, owner)]
        case CreateMaterializedViewPlan():
            return [
                *_replaced(plan.replaces, snapshot),
                _create_materialized_view(plan, owner, as_of),
            ]
        case CreateIndexPlan():
            return [_create_index(plan, snapshot.items[plan.on_item].owner)]
        case RolePlan(ops=ops):
            return checked_variables(ops, snapshot)
        case CreateTypePlan() | CreateSecretPlan() | AlterSecretPlan():
            return [named_op(plan, owner)]
        case CreateSourcePlan():
            return create_source(plan, owner, as_of)
        case CreateSinkPlan():
            return create_sink(plan, owner, as_of)
        case CreateSchemaPlan():
            return [CreateSchemaOp(database_id=plan.database_id, name=plan.name, owner=owner)]
        case CreateDatabasePlan():
            return [CreateDatabaseOp(name=plan.name, owner=owner)]
        case (
            CreateClusterPlan()
            | CreateClusterProfilePlan()
            | AlterClusterProfilePlan()
            | ReconfigureClusterPlan()
            | ChangePlan()
        ):
            return cluster_ops(plan, owner, now_ms)
        case DropPlan():
            return _drop(plan)
        case RenameItemPlan():
            return [_rename(plan)]
        case AlterHistoryPlan(item_id=item_id, history_ms=history_ms, create_sql=create_sql):
            return [SetHistoryOp(item_id=item_id, history_ms=history_ms, create_sql=create_sql)]
        case ApplyReplacementPlan():
            return _apply(plan)
        case UndropPlan(items=items):
            return [UndropItemsOp(items)]
        case AlterSystemPlan(name=name, values=values, any_name=any_name):
            text = None if values is None else variable_text(name, values)
            return system_ops(name, text, snapshot, any_name=any_name)
        case _:
            assert_never(plan)


def _replaced(item_id: ItemId | None, snapshot: Snapshot) -> list[Op]:
    """OR REPLACE: the old one goes first, with its indexes; refused if anything else needs it."""
    return [] if item_id is None else [DropItemsOp(without_cascade(snapshot, (item_id,)))]


def _create_table(plan: CreateTablePlan, owner: RoleId) -> CreateItemOp:
    return CreateItemOp(
        schema_id=plan.name.schema_id,
        name=plan.name.name,
        owner=owner,
        create_sql=plan.create_sql,
        columns=stored_columns(plan.desc, plan.defaults),
        depends_on=plan.depends_on,
        definition=NewTable(history_ms=plan.history_ms),
    )


def _create_view(plan: CreateViewPlan, owner: RoleId) -> CreateItemOp:
    return CreateItemOp(
        schema_id=plan.name.schema_id,
        name=plan.name.name,
        owner=owner,
        create_sql=plan.create_sql,
        columns=stored_columns(plan.desc),
        depends_on=plan.depends_on,
        definition=View(),
    )


def _create_materialized_view(
    plan: CreateMaterializedViewPlan, owner: RoleId, as_of: Timestamp
) -> CreateItemOp:
    return CreateItemOp(
        schema_id=plan.name.schema_id,
        name=plan.name.name,
        owner=owner,
        create_sql=plan.create_sql,
        columns=stored_columns(plan.desc),
        depends_on=plan.depends_on,
        definition=NewMaterializedView(
            cluster_id=plan.cluster_id,
            as_of=as_of,
            history_ms=plan.history_ms,
            replacement=plan.replacement,
            refresh=plan.refresh,
        ),
        planned_against=plan.planned_against,
    )


def _create_index(plan: CreateIndexPlan, owner: RoleId) -> CreateItemOp:
    key_desc = RelationDesc(tuple(key.column for key in plan.keys))
    return CreateItemOp(
        schema_id=plan.name.schema_id,
        name=plan.name.name,
        owner=owner,
        create_sql=plan.create_sql,
        columns=stored_columns(key_desc),
        depends_on=(plan.on_item,),
        definition=Index(
            on_id=plan.on_item,
            cluster_id=plan.cluster_id,
            keys=tuple(_index_key(key) for key in plan.keys),
            history_ms=plan.history_ms,
        ),
    )


def _index_key(key: PlannedKey) -> IndexKey:
    if key.position is not None:
        return IndexKey(position=key.position)
    return IndexKey(expression=to_sql(key.node))


def _rename(plan: RenameItemPlan) -> RenameItemOp:
    return RenameItemOp(
        item_id=plan.item_id,
        new_name=plan.new_name,
        create_sql=plan.create_sql,
        dependants_sql=plan.others_sql,
    )


def _apply(plan: ApplyReplacementPlan) -> list[Op]:
    """What is applied was hydrated before, though nobody may have had the time to note it."""
    apply = ApplyReplacementOp(
        item_id=plan.item_id,
        replacement_id=plan.replacement_id,
        create_sql=plan.create_sql,
        forward_time=plan.forward_time,
    )
    return [NoteHydratedOp(replacement_id=plan.replacement_id), apply]


def _drop(plan: DropPlan) -> list[Op]:
    """Items first, then what held them."""
    ops: list[Op] = [DropItemsOp(plan.items, keep=True)] if plan.items else []
    ops += [DropSecretOp(secret_id) for secret_id in plan.secrets]
    ops += [DropSchemaOp(schema_id) for schema_id in plan.schemas]
    ops += [DropDatabaseOp(database_id) for database_id in plan.databases]
    ops += [DropClusterReplicaOp(replica_id) for replica_id in plan.replicas]
    ops += [DropClusterOp(cluster_id) for cluster_id in plan.clusters]
    return ops
