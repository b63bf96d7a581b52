"""What a plan takes to be allowed. Pure, and told by the snapshot that the plan was made with."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from evertide.adapter.rights.changes import cluster_needs
from evertide.adapter.rights.dropping import drop_needs
from evertide.adapter.rights.reading import looks_back, on_item, relations
from evertide.catalog.kinds.temporary import TEMPORARY_SCHEMA_ID
from evertide.catalog.objects import ItemKind
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters.plans import ClusterPlan
from evertide.sql.plan.entry import Planned
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
from evertide.sql.plan.named.plans import AlterSecretPlan, CreateSecretPlan, CreateTypePlan
from evertide.sql.plan.plans import (
    AlterHistoryPlan,
    AlterSystemPlan,
    CopyFromPlan,
    CopyToPlan,
    CreateDatabasePlan,
    CreateIndexPlan,
    CreateMaterializedViewPlan,
    CreateSchemaPlan,
    CreateTablePlan,
    CreateViewPlan,
    DataPlan,
    DdlPlan,
    DeclarePlan,
    DeletePlan,
    DropPlan,
    ExplainPlan,
    ExplainReplacementPlan,
    ExplainTimestampPlan,
    InsertPlan,
    RenameItemPlan,
    SelectPlan,
    SessionPlan,
    SubscribePlan,
    UpdatePlan,
)
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import NOTHING, Needs, Privilege, on_system
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.vocab.ids import ClusterId, ItemId, SchemaId


def needs_of(planned: Planned, cluster: str, snapshot: Snapshot, *, back: bool = False) -> Needs:
    """All that the statement takes; `cluster` is the session's.

    `back`: it reads at a time that was chosen before the snapshot was made.
    """
    plan = planned.plan
    if isinstance(plan, SessionPlan):
        return NOTHING
    if isinstance(plan, DdlPlan):
        return _ddl_needs(plan, planned.reads, snapshot)
    read = tuple(_reading(planned.reads, cluster, snapshot, back or looks_back(plan)))
    return Needs(privileges=(*read, *write_needs(plan, snapshot)))


def write_needs(plan: DataPlan, snapshot: Snapshot) -> Iterator[Privilege]:
    """What a statement does beside reading."""
    match plan:
        case InsertPlan(table_id=table_id, returning=returning):
            yield from on_item(table_id, "a" if returning is None else "ar", snapshot)
        case CopyFromPlan(table_id=table_id):
            yield from on_item(table_id, "a", snapshot)
        case UpdatePlan(table_id=table_id):
            yield from on_item(table_id, "rw", snapshot)
        case DeletePlan(table_id=table_id):
            yield from on_item(table_id, "rd", snapshot)
        case ExplainPlan(item_id=item_id) if item_id is not None:
            yield Privilege(("schema", snapshot.items[item_id].schema_id), "U")
        case (
            SelectPlan()
            | SubscribePlan()
            | CopyToPlan()
            | DeclarePlan()
            | ExplainPlan()
            | ExplainTimestampPlan()
            | ExplainReplacementPlan()
        ):
            return
        case _:
            assert_never(plan)


def _reading(
    item_ids: Iterable[ItemId], cluster: str, snapshot: Snapshot, back: bool
) -> Iterator[Privilege]:
    """Users' relations are read in a cluster; the system's are everyone's, without one."""
    found = list(relations(item_ids, snapshot, back=back))
    yield from found
    active = snapshot.cluster_named(cluster)
    if found and active is not None:
        yield Privilege(("cluster", active.cluster_id), "U")


def _ddl_needs(plan: DdlPlan, reads: tuple[ItemId, ...], snapshot: Snapshot) -> Needs:
    if isinstance(plan, ClusterPlan):
        return cluster_needs(plan, snapshot)
    match plan:
        case RolePlan(needs=needs) | UndropPlan(needs=needs):
            return needs
        case CreateTablePlan(name=name):
            return Needs(privileges=(*_created(name.schema_id), *_types(reads, snapshot)))
        case CreateViewPlan(name=name, replaces=replaces):
            created = (*_created(name.schema_id), *_types(reads, snapshot))
            return _replacing(replaces, created)
        case CreateMaterializedViewPlan(name=name, replaces=replaces, replacement=staged):
            target = replaces if staged is None else staged.target
            created = _created(name.schema_id, plan.cluster_id)
            return _replacing(target, (*created, *_types(reads, snapshot)))
        case CreateTypePlan(schema_id=schema_id):
            return Needs(privileges=(*_created(schema_id), *_types(reads, snapshot)))
        case CreateSecretPlan(schema_id=schema_id):
            return Needs(privileges=_created(schema_id))
        case AlterSecretPlan(secret_id=secret_id):
            return Needs(owner_of=(("secret", secret_id),))
        case ApplyReplacementPlan(item_id=item_id, replacement_id=replacement_id):
            return Needs(owner_of=(("item", item_id), ("item", replacement_id)))
        case CreateIndexPlan(name=name):
            created = _created(name.schema_id, plan.cluster_id)
            return Needs(owner_of=(("item", plan.on_item),), privileges=created)
        case CreateSourcePlan(item=item):
            others = dict.fromkeys(table.item.schema_id for table in plan.tables)
            elsewhere = [p for s in others if s != item.schema_id for p in _created(s)]
            return Needs(privileges=(*_created(item.schema_id, plan.cluster_id), *elsewhere))
        case CreateSinkPlan(item=item):
            read = tuple(relations((plan.from_id, *reads), snapshot))
            return Needs(privileges=(*read, *_created(item.schema_id, plan.cluster_id)))
        case CreateSchemaPlan(database_id=database_id):
            return Needs(privileges=(Privilege(("database", database_id), "C"),))
        case CreateDatabasePlan():
            return Needs(privileges=(on_system("B"),))
        case DropPlan():
            return drop_needs(plan, snapshot)
        case RenameItemPlan(item_id=item_id) | AlterHistoryPlan(item_id=item_id):
            return Needs(owner_of=(("item", item_id),))
        case AlterSystemPlan():
            return Needs(superuser="alter system")
        case _:
            assert_never(plan)


def _created(schema_id: SchemaId, cluster_id: ClusterId | None = None) -> tuple[Privilege, ...]:
    """To create something in a schema, and let a cluster work for it.

    Whoever has a session may have temporary objects in it.
    """
    if schema_id == TEMPORARY_SCHEMA_ID:
        return ()
    schema = Privilege(("schema", schema_id), "C")
    if cluster_id is None:
        return (schema,)
    return schema, Privilege(("cluster", cluster_id), "C")


def _types(reads: Iterable[ItemId], snapshot: Snapshot) -> Iterator[Privilege]:
    """The use of the types that a definition names."""
    for item_id in reads:
        item = snapshot.items.get(item_id)
        if item is not None and item.kind is ItemKind.TYPE:
            yield from on_item(item_id, "U", snapshot)


def _replacing(replaces: ItemId | None, privileges: tuple[Privilege, ...]) -> Needs:
    owned = () if replaces is None else (("item", replaces),)
    return Needs(owner_of=owned, privileges=privileges)
