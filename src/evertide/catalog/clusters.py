"""The ops that create and drop clusters and their replicas."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import msgspec

from evertide.catalog.acl import new_acl
from evertide.catalog.builtin.mz_catalog import REPORTED_BY_REPLICAS
from evertide.catalog.create import is_reserved, refuse_unknown_role
from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.drop import CASCADE_HINT
from evertide.catalog.objects import (
    AuditDetail,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    Introspection,
    IntrospectionSourceIndex,
    ManagedCluster,
    UnmanagedCluster,
    VirtualCluster,
    billed_as,
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

# Before the name of a derived replica whose own name another replica was given.
DEFAULT_PREFIX: Final = "default_"


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
        privileges=new_acl(draft.snapshot, "cluster", op.owner),
        workload_class=op.workload_class,
    )
    draft.create(cluster)
    draft.audit("create", "cluster", {"id": cluster.cluster_id, "name": cluster.name})
    for name in REPORTED_BY_REPLICAS:
        draft.create(introspection_index(draft, cluster, name))
    for replica in (*derived_replicas(cluster), *op.replicas):
        create_replica(draft, cluster, replica, op.owner)


def introspection_index(draft: Draft, cluster: Cluster, name: str) -> IntrospectionSourceIndex:
    """The index that this cluster is to keep on a relation its replicas report."""
    return IntrospectionSourceIndex(
        cluster_id=cluster.cluster_id,
        name=name,
        index_id=GlobalId(f"si{draft.allocate(Allocator.INTROSPECTION_SOURCE_INDEX)}"),
        oid=draft.allocate(Allocator.OID),
    )


def derived_replicas(cluster: Cluster) -> Iterator[NewReplica]:
    """What the cluster's own settings ask for; of an unmanaged one, nothing."""
    match cluster.variant:
        case VirtualCluster():
            yield NewReplica(name="r1", size=None)
        case ManagedCluster(size=size, replication_factor=factor, introspection=introspection):
            for number in range(1, factor + 1):
                yield NewReplica(name=f"r{number}", size=size, introspection=introspection)
        case UnmanagedCluster():
            return


def create_cluster_replica(draft: Draft, op: CreateClusterReplicaOp) -> None:
    cluster = existing_cluster(draft, op.cluster_id)
    profile = None if op.profile_id is None else draft.snapshot.profiles.get(op.profile_id)
    if op.profile_id is not None and (profile is None or profile.cluster_id != cluster.cluster_id):
        raise UndefinedObject(f"unknown cluster profile '{op.profile_id}'")
    refuse_virtual(cluster)
    if profile is not None and profile.managed:
        raise FeatureNotSupported(f"cannot modify managed profile {cluster.name}.{profile.name}")
    managed = profile is None and isinstance(cluster.variant, ManagedCluster)
    if managed and not op.replica.internal:
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
    reason: str | None = None,
) -> None:
    """One replica, of the cluster's implicit profile unless one is given."""
    if profile is not None:
        _make_way(draft, cluster, new.name)
    if draft.snapshot.named((MEMBER_NAME, cluster.cluster_id, new.name)):
        raise DuplicateObject(
            f"cannot create multiple replicas named '{new.name}' on cluster '{cluster.name}'"
        )
    replica = ClusterReplica(
        replica_id=ReplicaId(draft.allocate_id(Allocator.CLUSTER_ITEM)),
        cluster_id=cluster.cluster_id,
        profile_id=None if profile is None else profile.profile_id,
        name=new.name,
        size=new.size,
        owner=owner,
        internal=new.internal,
        billed_as=new.billed_as,
        pending=new.pending,
        introspection=new.introspection,
    )
    draft.create(replica)
    draft.audit("create", "cluster-replica", replica_details(draft, replica, reason))


def _make_way(draft: Draft, cluster: Cluster, name: str) -> None:
    """A replica that nobody named leaves its name to one that somebody names in a profile."""
    replica = draft.snapshot.replica_named(cluster.cluster_id, name)
    if not isinstance(cluster.variant, ManagedCluster) or replica is None:
        return
    if replica.profile_id is not None or replica.internal or replica.pending:
        return
    renamed = msgspec.structs.replace(replica, name=f"{DEFAULT_PREFIX}{name}")
    if draft.snapshot.named((MEMBER_NAME, cluster.cluster_id, renamed.name)):
        return
    draft.replace(replica, renamed)
    names = {"id": replica.replica_id, "old_name": name, "new_name": renamed.name}
    draft.audit("alter", "cluster-replica", {**names})


def replica_details(
    draft: Draft, replica: ClusterReplica, reason: str | None = None
) -> dict[str, AuditDetail]:
    """What audit events say of a replica: what it is, what it costs whom, and why they are told.

    A reason of None is a user's wish, or the system's where no user asked.
    """
    cluster = draft.snapshot.clusters[replica.cluster_id]
    profile = None
    if replica.profile_id is not None:
        profile = draft.snapshot.profiles[replica.profile_id]
    details: dict[str, AuditDetail] = {
        "cluster_id": cluster.cluster_id,
        "cluster_name": cluster.name,
        "replica_id": replica.replica_id,
        "replica_name": replica.name,
        "logical_size": replica.size,
        "billed_as": billed_as(replica, profile),
        "internal": replica.internal,
        "reason": reason_of(draft, reason),
    }
    if profile is not None:
        details |= {"profile_id": profile.profile_id, "profile_name": profile.name}
    return details


def fit_replicas(
    draft: Draft,
    cluster: Cluster,
    wanted: Iterable[NewReplica],
    *,
    profile: ClusterProfile | None = None,
    reason: str | None = None,
) -> None:
    """Replicas that no longer fit go, missing ones come; those that fit are left alone.

    What was made by name, or waits for its reconfiguration, is none of them.
    """
    missing = {replica.name: replica for replica in wanted}
    profile_id = None if profile is None else profile.profile_id
    for replica in draft.snapshot.replicas_of(cluster.cluster_id):
        if replica.profile_id != profile_id or replica.internal or replica.pending:
            continue
        name = replica.name if profile is not None else replica.name.removeprefix(DEFAULT_PREFIX)
        if _fits(replica, missing.get(name)):
            del missing[name]
        else:
            remove_replica(draft, replica, reason=reason)
    owner = cluster.owner if profile is None else profile.owner
    for new in missing.values():
        taken = draft.snapshot.named((MEMBER_NAME, cluster.cluster_id, new.name))
        if taken and profile is None:
            new = replace(new, name=f"{DEFAULT_PREFIX}{new.name}")
        create_replica(draft, cluster, new, owner, profile=profile, reason=reason)


def watch_as(draft: Draft, replicas: Iterable[ClusterReplica], wanted: Introspection) -> None:
    """Replicas that go on running are watched as closely as is wanted now."""
    for replica in replicas:
        if replica.introspection != wanted:
            draft.replace(replica, msgspec.structs.replace(replica, introspection=wanted))


def _fits(replica: ClusterReplica, wanted: NewReplica | None) -> bool:
    """Whether it may go on running; how closely it is watched is not worth a new one."""
    return wanted is not None and wanted.size == replica.size


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
        remove_replica(draft, replica)
    for profile in draft.snapshot.profiles_of(cluster.cluster_id):
        remove_profile(draft, cluster, profile)
    draft.remove(cluster)
    draft.audit("drop", "cluster", {"id": cluster.cluster_id, "name": cluster.name})


def drop_cluster_replica(draft: Draft, op: DropClusterReplicaOp) -> None:
    replica = draft.snapshot.replicas.get(op.replica_id)
    if replica is None:
        raise UndefinedObject(f"unknown cluster replica '{op.replica_id}'")
    remove_replica(draft, replica)


def remove_profile(
    draft: Draft, cluster: Cluster, profile: ClusterProfile, *, reason: str | None = None
) -> None:
    """A profile whose replicas are gone already."""
    draft.remove(profile)
    draft.audit("drop", "cluster-profile", profile_details(draft, cluster, profile, reason))


def profile_details(
    draft: Draft, cluster: Cluster, profile: ClusterProfile, reason: str | None = None
) -> dict[str, AuditDetail]:
    """What audit events say of a profile: what it is, and all of its properties."""
    return {
        "cluster_id": cluster.cluster_id,
        "cluster_name": cluster.name,
        "profile_id": profile.profile_id,
        "profile_name": profile.name,
        "size": profile.size,
        "replication_factor": profile.replication_factor,
        "billed_as": profile.billed_as,
        "expires_at_ms": profile.expires_at_ms,
        "reason": reason_of(draft, reason),
    }


def remove_replica(draft: Draft, replica: ClusterReplica, *, reason: str | None = None) -> None:
    """The replica goes, and an event says so."""
    details = replica_details(draft, replica, reason)
    draft.remove(replica)
    draft.audit("drop", "cluster-replica", details)


def reason_of(draft: Draft, reason: str | None) -> str:
    """Why replicas come and go: what is given, a user's wish, or the system's own doing."""
    if reason is not None:
        return reason
    return "system" if draft.user is None else "manual"
