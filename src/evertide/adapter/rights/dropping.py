"""DROP: whose things must be one's own."""

from collections.abc import Iterator

from evertide.catalog.objects import ObjectKey
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.plans import DropPlan
from evertide.sql.plan.roles.rights import Needs


def drop_needs(plan: DropPlan, snapshot: Snapshot) -> Needs:
    """What holds all else that goes must be one's own; dependants go with what they depend on.

    That is no way around anyone: who owns a thing decides whether others may go on using it.
    """
    return Needs(owner_of=tuple(dict.fromkeys(_roots(plan, snapshot))))


def _roots(plan: DropPlan, snapshot: Snapshot) -> Iterator[ObjectKey]:
    items, schemas, clusters = set(plan.items), set(plan.schemas), set(plan.clusters)
    for item_id in plan.items:
        item = snapshot.items[item_id]
        if item.schema_id in schemas or item.cluster_id in clusters:
            continue
        if not items.intersection(item.depends_on):
            yield "item", item_id
    for secret_id in plan.secrets:
        if snapshot.secrets[secret_id].schema_id not in schemas:
            yield "secret", secret_id
    for schema_id in plan.schemas:
        if snapshot.schemas[schema_id].database_id not in plan.databases:
            yield "schema", schema_id
    yield from (("database", database_id) for database_id in plan.databases)
    yield from (("cluster", cluster_id) for cluster_id in plan.clusters)
    for replica_id in plan.replicas:
        if snapshot.replicas[replica_id].cluster_id not in clusters:
            yield "cluster_item", replica_id
