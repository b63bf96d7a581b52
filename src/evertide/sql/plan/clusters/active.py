"""Whether the active cluster can answer a query."""

from evertide.catalog.objects import ManagedCluster
from evertide.expr.relation import FlatMap, Relation
from evertide.expr.traverse import walk
from evertide.sql.plan.context import QueryContext
from evertide.sql.resolve import position_of, resolve_cluster
from evertide.vocab.errors import FeatureNotSupported


def check_active_cluster(relation: Relation, query: QueryContext, at: int) -> None:
    """Refused where a query needs replicas and there are none.

    System relations and plain constants are answered without any.
    """
    if not _needs_replicas(relation, query):
        return
    snapshot = query.plan.snapshot
    cluster = resolve_cluster(query.plan.cluster, snapshot, at=at)
    if snapshot.replicas_of(cluster.cluster_id):
        return
    hint = "Use CREATE CLUSTER REPLICA to attach cluster replicas to the cluster"
    if isinstance(cluster.variant, ManagedCluster):
        hint = (
            "Use ALTER CLUSTER to adjust the replication factor of the cluster. "
            "Example:`ALTER CLUSTER <cluster-name> SET (REPLICATION FACTOR 1)`"
        )
    raise FeatureNotSupported(
        f'CLUSTER "{cluster.name}" has no replicas available to service request',
        hint=hint,
        position=position_of(at),
    )


def check_cluster_of_write(query: QueryContext) -> None:
    """What a write reads is looked for in indexes of the active cluster: there must be one.

    Replicas it need not have, as rows are found without them.
    """
    if any(not item_id.startswith("s") for item_id in query.dependencies):
        resolve_cluster(query.plan.cluster, query.plan.snapshot)


def _needs_replicas(relation: Relation, query: QueryContext) -> bool:
    system = [item_id.startswith("s") for item_id in query.dependencies]
    if not all(system):
        return True
    return not system and any(isinstance(node, FlatMap) for node in walk(relation))
