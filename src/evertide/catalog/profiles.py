"""The ops on cluster profiles, and the replicas that follow from them."""

from collections.abc import Iterator

import msgspec

from evertide.catalog.clusters import (
    create_replica,
    existing_cluster,
    profile_details,
    refuse_virtual,
    remove_profile,
    remove_replica,
)
from evertide.catalog.create import refuse_unknown_role
from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.objects import Cluster, ClusterProfile, ClusterReplica, object_key
from evertide.catalog.ops import (
    AlterClusterProfileOp,
    CreateClusterProfileOp,
    DropClusterProfileOp,
    NewReplica,
)
from evertide.catalog.references import MEMBER_NAME
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InvalidParameterValue,
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
        profile_id=ProfileId(draft.allocate_id(Allocator.CLUSTER_PROFILE)),
        cluster_id=cluster.cluster_id,
        name=op.name,
        owner=op.owner,
        size=op.size,
        replication_factor=op.replication_factor,
        billed=op.billed,
    )
    draft.create(profile)
    draft.audit("create", "cluster-profile", profile_details(cluster, profile))
    for replica in (*_derived(profile), *op.replicas):
        create_replica(draft, cluster, replica, op.owner, profile=profile)


def alter_cluster_profile(draft: Draft, op: AlterClusterProfileOp) -> None:
    """Replicas that no longer fit go, missing ones come; those that fit are left alone."""
    before = existing_profile(draft, op.profile_id)
    cluster = draft.snapshot.clusters[before.cluster_id]
    _refuse_half_managed(op.size, op.replication_factor)
    if before.managed != (op.size is not None):
        raise FeatureNotSupported(
            f"cannot change whether cluster profile {cluster.name}.{before.name} is managed",
            hint="Drop the profile and create it again.",
        )
    after = msgspec.structs.replace(
        before, size=op.size, replication_factor=op.replication_factor, billed=op.billed
    )
    draft.replace(before, after)
    draft.audit("alter", "cluster-profile", profile_details(cluster, after))
    if after.managed:
        _fit_replicas(draft, cluster, after)


def drop_cluster_profile(draft: Draft, op: DropClusterProfileOp) -> None:
    profile = existing_profile(draft, op.profile_id)
    cluster = draft.snapshot.clusters[profile.cluster_id]
    replicas = replicas_in(draft, profile)
    if replicas and not profile.managed:
        raise DependentObjectsStillExist(
            f"cluster profile {cluster.name}.{profile.name} has objects",
            detail="\n".join(f"replica {cluster.name}.{replica.name}" for replica in replicas),
            hint="Drop objects first, or specify CASCADE.",
        )
    for replica in replicas:
        remove_replica(draft, cluster, replica)
    remove_profile(draft, cluster, profile)


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


def _fit_replicas(draft: Draft, cluster: Cluster, profile: ClusterProfile) -> None:
    wanted = {replica.name: replica for replica in _derived(profile)}
    for replica in replicas_in(draft, profile):
        if wanted.get(replica.name) == NewReplica(name=replica.name, size=replica.size):
            del wanted[replica.name]
        else:
            remove_replica(draft, cluster, replica)
    for new in wanted.values():
        create_replica(draft, cluster, new, profile.owner, profile=profile)


def _derived(profile: ClusterProfile) -> Iterator[NewReplica]:
    for number in range(1, (profile.replication_factor or 0) + 1):
        yield NewReplica(name=replica_name(profile.name, number), size=profile.size)


def _refuse_half_managed(size: str | None, replication_factor: int | None) -> None:
    if (size is None) != (replication_factor is None):
        raise InvalidParameterValue(
            "a cluster profile has both SIZE and REPLICATION FACTOR, or neither",
            hint="Leave out both to create its replicas by name.",
        )
