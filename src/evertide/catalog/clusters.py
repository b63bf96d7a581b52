"""The ops that create and drop clusters and their replicas."""

from collections.abc import Iterator
from typing import Final

from evertide.catalog.builtin.mz_catalog import REPORTED_BY_REPLICAS
from evertide.catalog.create import is_reserved, refuse_unknown_role
from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.drop import CASCADE_HINT
from evertide.catalog.objects import (
    AuditDetail,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    IntrospectionSourceIndex,
    ManagedCluster,
    UnmanagedCluster,
    VirtualCluster,
)
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateClusterReplicaOp,
    DropClusterOp,
    DropClusterReplicaOp,
    NewReplica,
)
from evertide.catalog.references import MEMBER_NAME
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InvalidName,
    UndefinedObject,
)
from evertide.vocab.ids import ClusterId, GlobalId, ReplicaId, RoleId

# What audit events say of a replica that nobody pays for.
UNBILLED: Final = "unbilled"


def create_cluster(draft: Draft, op: CreateClusterOp) -> None:
    if is_reserved(op.name):
        raise InvalidName(
            f'cluster name "{op.name}" is reserved',
            detail='The prefixes "mz_" and "pg_" are reserved for system clusters.',
        )
    if draft.snapshot.cluster_named(op.name) is not None:
        raise DuplicateObject(f"cluster '{op.name}' already exists")
    refuse_unknown_role(draft, op.owner)
    cluster = Cluster(
        cluster_id=ClusterId(draft.allocate_id(Allocator.CLUSTER)),
        name=op.name,
        owner=op.owner,
        variant=op.variant,
    )
    draft.create(cluster)
    draft.audit("create", "cluster", {"id": cluster.cluster_id, "name": cluster.name})
    for name in REPORTED_BY_REPLICAS:
        draft.create(introspection_index(draft, cluster, name))
    for replica in _first_replicas(op):
        create_replica(draft, cluster, replica, op.owner)


def introspection_index(draft: Draft, cluster: Cluster, name: str) -> IntrospectionSourceIndex:
    """The index that this cluster is to keep on a relation its replicas report."""
    return IntrospectionSourceIndex(
        cluster_id=cluster.cluster_id,
        name=name,
        index_id=GlobalId(f"si{draft.allocate(Allocator.INTROSPECTION_SOURCE_INDEX)}"),
        oid=draft.allocate(Allocator.OID),
    )


def _first_replicas(op: CreateClusterOp) -> Iterator[NewReplica]:
    match op.variant:
        case VirtualCluster():
            yield NewReplica(name="r1", size=None)
        case ManagedCluster(size=size, replication_factor=factor):
            for number in range(1, factor + 1):
                yield NewReplica(name=f"r{number}", size=size)
        case UnmanagedCluster():
            yield from op.replicas


def create_cluster_replica(draft: Draft, op: CreateClusterReplicaOp) -> None:
    cluster = existing_cluster(draft, op.cluster_id)
    profile = None if op.profile_id is None else draft.snapshot.profiles.get(op.profile_id)
    if op.profile_id is not None and (profile is None or profile.cluster_id != cluster.cluster_id):
        raise UndefinedObject(f"unknown cluster profile '{op.profile_id}'")
    refuse_virtual(cluster)
    if profile is not None and profile.managed:
        raise FeatureNotSupported(f"cannot modify managed profile {cluster.name}.{profile.name}")
    if profile is None and isinstance(cluster.variant, ManagedCluster):
        raise FeatureNotSupported(f"cannot modify managed cluster {cluster.name}")
    refuse_unknown_role(draft, op.owner)
    create_replica(draft, cluster, op.replica, op.owner, profile=profile)


def refuse_virtual(cluster: Cluster) -> None:
    """Virtual clusters share one pool: there is nothing of their own to add to."""
    if cluster.is_virtual:
        raise FeatureNotSupported(
            f"cannot modify virtual cluster {cluster.name}",
            hint="Use ALTER CLUSTER ... SET (SIZE ...) to give it replicas of its own.",
        )


def existing_cluster(draft: Draft, cluster_id: ClusterId) -> Cluster:
    """The cluster, or the user's mistake."""
    cluster = draft.snapshot.clusters.get(cluster_id)
    if cluster is None:
        raise UndefinedObject(f"unknown cluster '{cluster_id}'")
    return cluster


def create_replica(
    draft: Draft,
    cluster: Cluster,
    new: NewReplica,
    owner: RoleId,
    *,
    profile: ClusterProfile | None = None,
) -> None:
    """One replica, of the cluster's implicit profile unless one is given."""
    if draft.snapshot.named((MEMBER_NAME, cluster.cluster_id, new.name)):
        raise DuplicateObject(
            f"cannot create multiple replicas named '{new.name}' on cluster '{cluster.name}'"
        )
    replica = ClusterReplica(
        replica_id=ReplicaId(draft.allocate_id(Allocator.CLUSTER_REPLICA)),
        cluster_id=cluster.cluster_id,
        profile_id=None if profile is None else profile.profile_id,
        name=new.name,
        size=new.size,
        owner=owner,
    )
    draft.create(replica)
    details: dict[str, AuditDetail] = {
        "cluster_id": cluster.cluster_id,
        "cluster_name": cluster.name,
        "replica_id": replica.replica_id,
        "replica_name": new.name,
        "logical_size": new.size,
        "billed_as": None if profile is None or profile.billed else UNBILLED,
        "internal": False,
        "reason": _reason(draft),
    }
    draft.audit("create", "cluster-replica", details)


def drop_cluster(draft: Draft, op: DropClusterOp) -> None:
    cluster = existing_cluster(draft, op.cluster_id)
    running = draft.snapshot.items_in_cluster(cluster.cluster_id)
    if running:
        names = (f'{item.kind.sql_words} "{item.name}"' for item in running)
        raise DependentObjectsStillExist(
            f'cannot drop cluster "{cluster.name}" because other objects depend on it',
            detail="\n".join(f'{name} runs in cluster "{cluster.name}"' for name in names),
            hint=CASCADE_HINT,
        )
    for replica in draft.snapshot.replicas_of(cluster.cluster_id):
        remove_replica(draft, cluster, replica)
    for profile in draft.snapshot.profiles_of(cluster.cluster_id):
        remove_profile(draft, cluster, profile)
    draft.remove(cluster)
    draft.audit("drop", "cluster", {"id": cluster.cluster_id, "name": cluster.name})


def drop_cluster_replica(draft: Draft, op: DropClusterReplicaOp) -> None:
    replica = draft.snapshot.replicas.get(op.replica_id)
    if replica is None:
        raise UndefinedObject(f"unknown cluster replica '{op.replica_id}'")
    remove_replica(draft, draft.snapshot.clusters[replica.cluster_id], replica)


def remove_profile(draft: Draft, cluster: Cluster, profile: ClusterProfile) -> None:
    """A profile whose replicas are gone already."""
    draft.remove(profile)
    draft.audit("drop", "cluster-profile", profile_details(cluster, profile))


def profile_details(cluster: Cluster, profile: ClusterProfile) -> dict[str, AuditDetail]:
    """What audit events say of a profile: what it is, and all of its properties."""
    return {
        "cluster_id": cluster.cluster_id,
        "cluster_name": cluster.name,
        "profile_id": profile.profile_id,
        "profile_name": profile.name,
        "size": profile.size,
        "replication_factor": profile.replication_factor,
        "billed_as": None if profile.billed else UNBILLED,
    }


def remove_replica(draft: Draft, cluster: Cluster, replica: ClusterReplica) -> None:
    """The replica goes, and an event says so."""
    draft.remove(replica)
    details = {
        "cluster_id": cluster.cluster_id,
        "cluster_name": cluster.name,
        "replica_id": replica.replica_id,
        "replica_name": replica.name,
        "reason": _reason(draft),
    }
    draft.audit("drop", "cluster-replica", {**details})


def _reason(draft: Draft) -> str:
    """Why replicas come and go: a user asked for it, or the system did on its own."""
    return "system" if draft.user is None else "manual"
