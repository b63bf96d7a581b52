"""The ops on cluster profiles, and the replicas that follow from them."""

from collections.abc import Iterable, Iterator

import msgspec

from evertide.catalog.clusters import (
    create_replica,
    existing_cluster,
    fit_replicas,
    profile_details,
    refuse_virtual,
    remove_profile,
    remove_replica,
    replica_details,
    watch_as,
)
from evertide.catalog.create import refuse_unknown_role
from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.objects import (
    ClusterProfile,
    ClusterReplica,
    ManagedCluster,
    billed_as,
    object_key,
)
from evertide.catalog.ops import (
    AlterClusterProfileOp,
    CreateClusterProfileOp,
    DropClusterProfileOp,
    MoveReplicaOp,
    NewReplica,
)
from evertide.catalog.references import MEMBER_NAME
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    UndefinedObject,
)
from evertide.vocab.ids import ProfileId


def create_cluster_profile(draft: Draft, op: CreateClusterProfileOp) -> None:
    cluster = existing_cluster(draft, op.cluster_id)
    refuse_virtual(cluster)
    if draft.snapshot.named((MEMBER_NAME, cluster.cluster_id, op.name)):
        raise DuplicateObject(f"cluster profile '{cluster.name}.{op.name}' already exists")
    _refuse_half_managed(op.size, op.replication_factor)
    refuse_unknown_role(draft, op.owner)
    profile = ClusterProfile(
        profile_id=ProfileId(draft.allocate_id(Allocator.CLUSTER_ITEM)),
        cluster_id=cluster.cluster_id,
        name=op.name,
        owner=op.owner,
        size=op.size,
        replication_factor=op.replication_factor,
        billed_as=op.billed_as,
        introspection=op.introspection,
        expires_at_ms=op.expires_at_ms,
    )
    draft.create(profile)
    draft.audit("create", "cluster-profile", profile_details(draft, cluster, profile))
    for replica in (*_derived(profile), *op.replicas):
        create_replica(draft, cluster, replica, op.owner, profile=profile)


def alter_cluster_profile(draft: Draft, op: AlterClusterProfileOp) -> None:
    before = existing_profile(draft, op.profile_id)
    cluster = draft.snapshot.clusters[before.cluster_id]
    _refuse_half_managed(op.size, op.replication_factor)
    if before.managed != (op.size is not None):
        raise FeatureNotSupported(
            f"cannot change whether cluster profile {cluster.name}.{before.name} is managed",
            hint="Drop the profile and create it again.",
        )
    after = msgspec.structs.replace(
        before,
        size=op.size,
        replication_factor=op.replication_factor,
        billed_as=op.billed_as,
        introspection=op.introspection,
        expires_at_ms=op.expires_at_ms,
    )
    if after == before:
        return
    draft.replace(before, after)
    draft.audit("alter", "cluster-profile", profile_details(draft, cluster, after))
    running = replicas_in(draft, before)
    if after.managed:
        fit_replicas(draft, cluster, _derived(after), profile=after)
        watch_as(draft, replicas_in(draft, after), after.introspection)
    if after.billed_as != before.billed_as:
        _rebill(draft, before, after, running)


def _rebill(
    draft: Draft, before: ClusterProfile, after: ClusterProfile, running: list[ClusterReplica]
) -> None:
    """Replicas that go on running are paid for by somebody else from now on: events say so."""
    for replica in running:
        if replica.replica_id in draft.snapshot.replicas and replica.billed_as is None:
            _refuse_unbilling(billed_as(replica, before), after)
            draft.audit("alter", "cluster-replica", replica_details(draft, replica))


def _refuse_unbilling(payer: str | None, profile: ClusterProfile | None) -> None:
    """What a customer pays for does not become free by a change of profile."""
    if payer is None and profile is not None and profile.billed_as is not None:
        raise ObjectNotInPrerequisiteState("Cannot move billed replica to unbilled profile.")


def move_replica(draft: Draft, op: MoveReplicaOp) -> None:
    """The replica goes on running; only its settings are those of another profile."""
    before = draft.snapshot.replicas.get(op.replica_id)
    if before is None:
        raise UndefinedObject(f"unknown cluster replica '{op.replica_id}'")
    if before.profile_id == op.profile_id:
        return
    cluster = draft.snapshot.clusters[before.cluster_id]
    old = None if before.profile_id is None else existing_profile(draft, before.profile_id)
    new = None if op.profile_id is None else existing_profile(draft, op.profile_id)
    if new is not None and new.cluster_id != before.cluster_id:
        raise UndefinedObject(f"unknown cluster profile '{cluster.name}.{new.name}'")
    refuse_virtual(cluster)
    if before.billed_as is None:
        _refuse_unbilling(billed_as(before, old), new)
    for profile in (old, new):
        if profile is not None and profile.managed:
            raise FeatureNotSupported(
                f"cannot modify managed profile {cluster.name}.{profile.name}"
            )
    managed = isinstance(cluster.variant, ManagedCluster)
    if managed and not before.internal and (old is None or new is None):
        raise FeatureNotSupported(f"cannot modify managed cluster {cluster.name}")
    after = msgspec.structs.replace(before, profile_id=op.profile_id)
    draft.replace(before, after)
    draft.audit("alter", "cluster-replica", replica_details(draft, after))


def drop_cluster_profile(draft: Draft, op: DropClusterProfileOp) -> None:
    profile = existing_profile(draft, op.profile_id)
    cluster = draft.snapshot.clusters[profile.cluster_id]
    replicas = replicas_in(draft, profile)
    if replicas and not profile.managed and not op.cascade:
        raise profile_has_objects(cluster.name, profile.name, replicas)
    for replica in replicas:
        remove_replica(draft, replica, reason=op.reason)
    remove_profile(draft, cluster, profile, reason=op.reason)


def profile_has_objects(
    cluster: str, profile: str, replicas: Iterable[ClusterReplica]
) -> DependentObjectsStillExist:
    """Why a profile whose replicas were made by name stays."""
    return DependentObjectsStillExist(
        f"Cluster profile {cluster}.{profile} has objects",
        detail="\n".join(f"replica {cluster}.{replica.name}" for replica in replicas),
        hint="Drop objects first, or specify CASCADE.",
    )


def existing_profile(draft: Draft, profile_id: ProfileId) -> ClusterProfile:
    """The profile, or the user's mistake."""
    profile = draft.snapshot.profiles.get(profile_id)
    if profile is None:
        raise UndefinedObject(f"unknown cluster profile '{profile_id}'")
    return profile


def replicas_in(draft: Draft, profile: ClusterProfile) -> list[ClusterReplica]:
    """The profile's replicas by name."""
    found = draft.snapshot.referrers(ClusterReplica, object_key(profile))
    return sorted(found, key=lambda replica: replica.name)


def replica_name(profile_name: str, number: int) -> str:
    """What a managed profile calls its replicas: the prefix keeps profiles apart."""
    return f"{profile_name}_r{number}"


def _derived(profile: ClusterProfile) -> Iterator[NewReplica]:
    for number in range(1, (profile.replication_factor or 0) + 1):
        name = replica_name(profile.name, number)
        yield NewReplica(name=name, size=profile.size, introspection=profile.introspection)


def _refuse_half_managed(size: str | None, replication_factor: int | None) -> None:
    if (size is None) != (replication_factor is None):
        raise InvalidParameterValue(
            "a cluster profile has both SIZE and REPLICATION FACTOR, or neither",
            hint="Leave out both to create its replicas by name.",
        )
