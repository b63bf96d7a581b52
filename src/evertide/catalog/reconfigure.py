"""The ops that change clusters: at once, by swapping names, or by way of pending replicas."""

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Final

import msgspec

from evertide.catalog.clusters import (
    DEFAULT_PREFIX,
    create_replica,
    derived_replicas,
    existing_cluster,
    fit_replicas,
    reason_of,
    remove_replica,
    replica_details,
    watch_as,
)
from evertide.catalog.draft import Draft
from evertide.catalog.objects import (
    AuditDetail,
    Cluster,
    ClusterReplica,
    ClusterVariant,
    EndedReconfiguration,
    Ending,
    ManagedCluster,
    Reconfiguration,
    UnmanagedCluster,
    VirtualCluster,
)
from evertide.catalog.ops import (
    AlterClusterOp,
    FinishReconfigurationOp,
    NewReplica,
    RecordReplicaRestartOp,
    StartReconfigurationOp,
    SwapClustersOp,
)
from evertide.catalog.references import MEMBER_NAME
from evertide.catalog.rewriting import rewrite
from evertide.vocab.errors import FeatureNotSupported, ObjectInUse, UndefinedObject

# Behind the name that a replica is to have once its reconfiguration has finished.
PENDING_SUFFIX: Final = "-pending"
RECONFIGURATION: Final = "reconfiguration"


def alter_cluster(draft: Draft, op: AlterClusterOp) -> None:
    """Replicas made by name are left alone, unless the cluster becomes virtual."""
    before = existing_cluster(draft, op.cluster_id)
    refuse_pending(before)
    after = msgspec.structs.replace(
        before, variant=_with_end(op.variant, before), workload_class=op.workload_class
    )
    if after == before:
        return
    _change(draft, before, after)
    match after.variant:
        case VirtualCluster():
            _refuse_members(draft, after)
            fit_replicas(draft, after, derived_replicas(after))
        case ManagedCluster():
            fit_replicas(draft, after, derived_replicas(after))
        case UnmanagedCluster():
            if before.is_virtual:
                fit_replicas(draft, after, ())
    _watch(draft, after)


def _with_end(variant: ClusterVariant, before: Cluster) -> ClusterVariant:
    """How the last reconfiguration ended is nobody's wish, so no statement changes it."""
    if not isinstance(variant, ManagedCluster):
        return variant
    ended = before.variant.ended if isinstance(before.variant, ManagedCluster) else None
    return msgspec.structs.replace(variant, ended=ended)


def _change(
    draft: Draft, before: Cluster, after: Cluster, reason: str | None = None, **more: AuditDetail
) -> None:
    draft.replace(before, after)
    draft.audit("alter", "cluster", {**_details(draft, after, reason), **more})


def _details(draft: Draft, cluster: Cluster, reason: str | None) -> dict[str, AuditDetail]:
    managed = cluster.variant if isinstance(cluster.variant, ManagedCluster) else None
    target = None if managed is None or managed.pending is None else managed.pending.target
    details: dict[str, AuditDetail] = {
        "id": cluster.cluster_id,
        "name": cluster.name,
        "managed": managed is not None,
        "virtual": cluster.is_virtual,
        "size": None if managed is None else managed.size,
        "replication_factor": None if managed is None else managed.replication_factor,
        "reason": reason_of(draft, reason),
    }
    if target is not None:
        details |= {
            "pending_size": target.size,
            "pending_replication_factor": target.replication_factor,
        }
    return details


def _watch(draft: Draft, cluster: Cluster) -> None:
    """Replicas that go on running watch themselves as the cluster now says."""
    if not isinstance(cluster.variant, ManagedCluster):
        return
    watch_as(draft, own_replicas(draft, cluster), cluster.variant.introspection)


def _refuse_members(draft: Draft, cluster: Cluster) -> None:
    """Virtual clusters share one pool, so there is nothing that others could be members of."""
    internal = [r for r in draft.snapshot.replicas_of(cluster.cluster_id) if r.internal]
    if internal or draft.snapshot.profiles_of(cluster.cluster_id):
        raise FeatureNotSupported(
            f"cannot make cluster {cluster.name} virtual: it has profiles or internal replicas",
            hint="Drop its profiles and internal replicas first.",
        )


def own_replicas(draft: Draft, cluster: Cluster) -> list[ClusterReplica]:
    """Those that the cluster's own settings account for, pending ones left out."""
    return [
        replica
        for replica in draft.snapshot.replicas_of(cluster.cluster_id)
        if replica.profile_id is None and not replica.internal and not replica.pending
    ]


def refuse_pending(cluster: Cluster) -> None:
    """One change of shape at a time."""
    if isinstance(cluster.variant, ManagedCluster) and cluster.variant.pending is not None:
        raise ObjectInUse(
            f"cannot alter cluster {cluster.name} with pending updates",
            hint="Wait until its reconfiguration has finished, or give it up by SET (SIZE …)"
            " with the size that it has.",
        )


def swap_clusters(draft: Draft, op: SwapClustersOp) -> None:
    """What runs in a cluster goes on running there, under the other name."""
    first = existing_cluster(draft, op.cluster_id)
    second = existing_cluster(draft, op.other_id)
    if first == second:
        return
    for before, name in ((first, second.name), (second, first.name)):
        draft.replace(before, msgspec.structs.replace(before, name=name))
        names = {"id": before.cluster_id, "old_name": before.name, "new_name": name}
        draft.audit("alter", "cluster", {**names})
    rewrite(draft, op.items_sql)


def start_reconfiguration(draft: Draft, op: StartReconfigurationOp) -> None:
    before = existing_cluster(draft, op.cluster_id)
    refuse_pending(before)
    if not isinstance(before.variant, ManagedCluster):
        raise FeatureNotSupported(f"cluster {before.name} is not managed")
    variant = msgspec.structs.replace(before.variant, pending=op.pending)
    after = msgspec.structs.replace(before, variant=variant)
    _change(draft, before, after, RECONFIGURATION)
    for replica in _pending_replicas(op.pending):
        create_replica(draft, after, replica, after.owner, reason=RECONFIGURATION)


def _pending_replicas(pending: Reconfiguration) -> Iterator[NewReplica]:
    target = pending.target
    for number in range(1, target.replication_factor + 1):
        yield NewReplica(
            name=f"r{number}{PENDING_SUFFIX}",
            size=target.size,
            pending=True,
            introspection=target.introspection,
        )


def finish_reconfiguration(draft: Draft, op: FinishReconfigurationOp) -> None:
    before = draft.snapshot.clusters.get(op.cluster_id)
    if before is None or not isinstance(before.variant, ManagedCluster):
        return
    if before.variant.pending != op.pending:
        return
    target, commit = op.pending.target, op.ending is Ending.COMMITTED
    ended = EndedReconfiguration(
        target=target,
        started_at_ms=op.pending.started_at_ms,
        ending=op.ending,
        user=draft.user,
        fault=op.fault,
    )
    variant = msgspec.structs.replace(before.variant, pending=None, ended=ended)
    if commit:
        variant = msgspec.structs.replace(
            variant,
            size=target.size,
            replication_factor=target.replication_factor,
            introspection=target.introspection,
        )
    after = msgspec.structs.replace(before, variant=variant)
    waiting = [r for r in draft.snapshot.replicas_of(after.cluster_id) if r.pending]
    going = own_replicas(draft, before) if commit else waiting
    _change(draft, before, after, RECONFIGURATION, ending=op.ending.value, fault=op.fault)
    for replica in going:
        remove_replica(draft, replica, reason=RECONFIGURATION)
    if commit:
        _take_names(draft, waiting)


def _take_names(draft: Draft, waiting: Sequence[ClusterReplica]) -> None:
    """A pending replica goes on running as what it was made to be."""
    for replica in waiting:
        name = _free_name(draft, replica, len(waiting))
        renamed = msgspec.structs.replace(replica, name=name, pending=False)
        draft.replace(replica, renamed)
        details = replica_details(draft, renamed, RECONFIGURATION)
        draft.audit("alter", "cluster-replica", {**details, "old_name": replica.name})


def _free_name(draft: Draft, replica: ClusterReplica, waiting: int) -> str:
    """The name that it was to have, unless a replica or profile that somebody named has it; then
    one that no other replica of the reconfiguration waits for."""
    wanted = replica.name.removesuffix(PENDING_SUFFIX)
    others = (f"r{number}" for number in count(waiting + 1))
    return next(
        name
        for name in chain((wanted, f"{DEFAULT_PREFIX}{wanted}"), others)
        if not draft.snapshot.named((MEMBER_NAME, replica.cluster_id, name))
    )


def record_replica_restart(draft: Draft, op: RecordReplicaRestartOp) -> None:
    replica = draft.snapshot.replicas.get(op.replica_id)
    if replica is None:
        raise UndefinedObject(f"unknown cluster replica '{op.replica_id}'")
    draft.audit("restart", "cluster-replica", replica_details(draft, replica, op.reason))
