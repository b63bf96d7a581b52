"""Clusters, their profiles and replicas, and what each cluster keeps about itself."""

from typing import ClassVar, TypeAlias

import msgspec

from evertide.catalog.kinds.kind import ObjectKind
from evertide.vocab.ids import ClusterId, GlobalId, ProfileId, ReplicaId, RoleId


class VirtualCluster(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="virtual", gc=False
):
    """Runs in the pool process that all virtual clusters share."""


class ManagedCluster(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="managed", gc=False
):
    """Replicas r1..rN follow from size and replication factor."""

    size: str
    replication_factor: int


class UnmanagedCluster(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="unmanaged", gc=False
):
    """Replicas are created and dropped by name."""


ClusterVariant: TypeAlias = VirtualCluster | ManagedCluster | UnmanagedCluster


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A named set of replicas that run the same dataflows."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CLUSTER
    KEY: ClassVar[tuple[str, ...]] = ("cluster_id",)

    cluster_id: ClusterId
    name: str
    owner: RoleId
    variant: ClusterVariant

    @property
    def is_virtual(self) -> bool:
        return isinstance(self.variant, VirtualCluster)


class ClusterReplica(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """One running copy of a cluster."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CLUSTER_REPLICA
    KEY: ClassVar[tuple[str, ...]] = ("replica_id",)

    replica_id: ReplicaId
    cluster_id: ClusterId
    profile_id: ProfileId | None = None  # None: the cluster's implicit profile
    name: str
    size: str | None  # None: runs in the pool of virtual clusters
    owner: RoleId


class ClusterProfile(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """Settings that a group of a cluster's replicas share.

    Profiles and replicas of a cluster share one namespace.
    """

    KIND: ClassVar[ObjectKind] = ObjectKind.CLUSTER_PROFILE
    KEY: ClassVar[tuple[str, ...]] = ("profile_id",)

    profile_id: ProfileId
    cluster_id: ClusterId
    name: str
    owner: RoleId
    size: str | None  # None: unmanaged, its replicas are made by name
    replication_factor: int | None  # None: unmanaged
    billed: bool = True

    @property
    def managed(self) -> bool:
        """Whether its replicas follow from size and replication factor."""
        return self.size is not None


class IntrospectionSourceIndex(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """What a cluster's replicas report about themselves, arranged on each of them."""

    KIND: ClassVar[ObjectKind] = ObjectKind.INTROSPECTION_SOURCE_INDEX
    KEY: ClassVar[tuple[str, ...]] = ("cluster_id", "name")

    cluster_id: ClusterId
    name: str  # of the system relation that shows the reports
    index_id: GlobalId  # si<number>
    oid: int
