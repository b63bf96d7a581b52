"""What statements about clusters take: told by the changes that they ask of the catalog."""

from collections.abc import Iterator

from evertide.catalog.objects import ClusterProfile, ObjectKey
from evertide.catalog.ops import (
    AlterClusterOp,
    AlterClusterProfileOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    DropClusterProfileOp,
    DropClusterReplicaOp,
    FinishReconfigurationOp,
    MoveReplicaOp,
    Op,
    RenameObjectOp,
    SetClusterOp,
    SwapClustersOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters.plans import (
    AlterClusterProfilePlan,
    ChangePlan,
    ClusterPlan,
    CreateClusterPlan,
    CreateClusterProfilePlan,
    ReconfigureClusterPlan,
)
from evertide.sql.plan.roles.rights import NOTHING, Needs, Privilege, on_system


def cluster_needs(plan: ClusterPlan, snapshot: Snapshot) -> Needs:
    """Clusters are their owners'. Profiles are the operators', whom the planner tells by name."""
    match plan:
        case CreateClusterPlan():
            return Needs(privileges=(on_system("N"),))
        case CreateClusterProfilePlan() | AlterClusterProfilePlan():
            return NOTHING
        case ReconfigureClusterPlan(cluster_id=cluster_id):
            return Needs(owner_of=(("cluster", cluster_id),))
        case ChangePlan(ops=ops):
            unknown = [op for op in ops if not isinstance(op, _KNOWN)]
            if unknown:
                return Needs(superuser=f"run {plan.tag}")
            owned = tuple(dict.fromkeys(key for op in ops for key in _owned(op, snapshot)))
            placed = (
                Privilege(("cluster", op.cluster_id), "C")
                for op in ops
                if isinstance(op, SetClusterOp)
            )
            return Needs(owner_of=owned, privileges=tuple(placed))


_PROFILES = (CreateClusterProfileOp, AlterClusterProfileOp, DropClusterProfileOp)
_KNOWN = (
    *_PROFILES,
    AlterClusterOp,
    CreateClusterReplicaOp,
    DropClusterReplicaOp,
    FinishReconfigurationOp,
    MoveReplicaOp,
    RenameObjectOp,
    SetClusterOp,
    SwapClustersOp,
)


def _owned(op: Op, snapshot: Snapshot) -> Iterator[ObjectKey]:
    match op:
        case AlterClusterOp(cluster_id=cluster_id) | FinishReconfigurationOp(cluster_id=cluster_id):
            yield "cluster", cluster_id
        case CreateClusterReplicaOp(cluster_id=cluster_id, replica=replica, profile_id=None):
            if not replica.internal:
                yield "cluster", cluster_id
        case DropClusterReplicaOp(replica_id=replica_id):
            if snapshot.replicas[replica_id].profile_id is None:
                yield "cluster_item", replica_id
        case SwapClustersOp(cluster_id=cluster_id, other_id=other_id):
            yield "cluster", cluster_id
            yield "cluster", other_id
        case RenameObjectOp(target=target):
            if not isinstance(snapshot.find(target), ClusterProfile):
                yield target
        case SetClusterOp(item_id=item_id):
            yield "item", item_id
        case _:
            return
