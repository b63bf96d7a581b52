"""What goes with an object, what keeps it from going, and the ops that drop."""

from collections.abc import Collection, Iterable

from evertide.catalog.draft import Draft
from evertide.catalog.objects import Cluster, ClusterReplica, Item
from evertide.catalog.ops import (
    DropClusterOp,
    DropClusterReplicaOp,
    DropDatabaseOp,
    DropItemsOp,
    DropSchemaOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    InsufficientPrivilege,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
)
from evertide.vocab.ids import ItemId

CASCADE_HINT = "Use DROP ... CASCADE to drop the dependent objects too."


def with_dependants(snapshot: Snapshot, item_ids: Iterable[ItemId]) -> tuple[ItemId, ...]:
    """These items and all that depend on them, directly or not, dependants first."""
    seen: set[ItemId] = set()
    ordered: list[ItemId] = []
    stack = [(item_id, False) for item_id in reversed(list(item_ids))]
    while stack:
        item_id, dependants_done = stack.pop()
        if dependants_done:
            ordered.append(item_id)
        elif item_id not in seen:
            seen.add(item_id)
            stack.append((item_id, True))
            dependants = snapshot.dependants(item_id)
            stack.extend((dependant.item_id, False) for dependant in reversed(dependants))
    return tuple(ordered)


def without_cascade(snapshot: Snapshot, item_ids: Collection[ItemId]) -> tuple[ItemId, ...]:
    """These items and their indexes, dependants first; refused if anything else depends on them.

    An index is part of its relation's life: nobody queries it by name.
    """
    indexes = [index for item_id in item_ids for index in snapshot.indexes_on(item_id)]
    going = {*item_ids, *(index.item_id for index in indexes)}
    _refuse_dependants(snapshot, going)
    return with_dependants(snapshot, item_ids)


def _refuse_dependants(snapshot: Snapshot, going: Collection[ItemId]) -> None:
    """Whatever depends on something that goes must go too."""
    for item_id in going:
        for dependant in snapshot.dependants(item_id):
            if dependant.item_id not in going:
                raise _still_depended_upon(snapshot.items[item_id], dependant)


def _still_depended_upon(item: Item, dependant: Item) -> DependentObjectsStillExist:
    what = f'{item.kind.sql_words} "{item.name}"'
    who = f'{dependant.kind.sql_words} "{dependant.name}"'
    return DependentObjectsStillExist(
        f"cannot drop {what}: still depended upon by {who}",
        detail=f"{who} depends on {what}",
        hint=CASCADE_HINT,
    )


def drop_items(draft: Draft, op: DropItemsOp) -> None:
    """Dependants first, whatever the order asked for."""
    for item_id in op.item_ids:
        if item_id not in draft.snapshot.items:
            raise UndefinedTable(f"unknown catalog item '{item_id}'")
    _refuse_dependants(draft.snapshot, op.item_ids)
    for item_id in with_dependants(draft.snapshot, op.item_ids):
        item = draft.snapshot.items[item_id]
        draft.audit_item("drop", item)
        draft.remove(item)


def drop_schema(draft: Draft, op: DropSchemaOp) -> None:
    schema = draft.snapshot.schemas.get(op.schema_id)
    if schema is None:
        raise UndefinedSchema(f"unknown schema '{op.schema_id}'")
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
    database = draft.snapshot.databases[schema.database_id]
    if draft.snapshot.items_in_schema(schema.schema_id):
        raise DependentObjectsStillExist(
            f"schema '{database.name}.{schema.name}' cannot be dropped without CASCADE "
            "while it contains objects",
            hint=CASCADE_HINT,
        )
    draft.remove(schema)
    details = {"id": schema.schema_id, "name": schema.name, "database_name": database.name}
    draft.audit("drop", "schema", {**details})


def drop_database(draft: Draft, op: DropDatabaseOp) -> None:
    database = draft.snapshot.databases.get(op.database_id)
    if database is None:
        raise UndefinedDatabase(f"unknown database '{op.database_id}'")
    if any(s.database_id == database.database_id for s in draft.snapshot.schemas.values()):
        raise DependentObjectsStillExist(
            f"database '{database.name}' cannot be dropped with RESTRICT while it contains schemas",
            hint=CASCADE_HINT,
        )
    draft.remove(database)
    draft.audit("drop", "database", {"id": database.database_id, "name": database.name})


def drop_cluster(draft: Draft, op: DropClusterOp) -> None:
    cluster = draft.snapshot.clusters.get(op.cluster_id)
    if cluster is None:
        raise UndefinedObject(f"unknown cluster '{op.cluster_id}'")
    running = draft.snapshot.items_in_cluster(cluster.cluster_id)
    if running:
        names = (f'{item.kind.sql_words} "{item.name}"' for item in running)
        raise DependentObjectsStillExist(
            f'cannot drop cluster "{cluster.name}" because other objects depend on it',
            detail="\n".join(f'{name} runs in cluster "{cluster.name}"' for name in names),
            hint=CASCADE_HINT,
        )
    for replica in draft.snapshot.replicas_of(cluster.cluster_id):
        _remove_replica(draft, cluster, replica)
    draft.remove(cluster)
    draft.audit("drop", "cluster", {"id": cluster.cluster_id, "name": cluster.name})


def drop_cluster_replica(draft: Draft, op: DropClusterReplicaOp) -> None:
    replica = draft.snapshot.replicas.get(op.replica_id)
    if replica is None:
        raise UndefinedObject(f"unknown cluster replica '{op.replica_id}'")
    _remove_replica(draft, draft.snapshot.clusters[replica.cluster_id], replica)


def _remove_replica(draft: Draft, cluster: Cluster, replica: ClusterReplica) -> None:
    draft.remove(replica)
    details = {
        "cluster_id": cluster.cluster_id,
        "cluster_name": cluster.name,
        "replica_id": replica.replica_id,
        "replica_name": replica.name,
        "reason": "manual",
    }
    draft.audit("drop", "cluster-replica", {**details})
