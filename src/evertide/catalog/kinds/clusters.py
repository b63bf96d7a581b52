"""Clusters, their profiles and replicas, and what each cluster keeps about itself."""

from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

import msgspec

from evertide.catalog.kinds.kind import ObjectKind
from evertide.catalog.kinds.privileges import Acl
from evertide.vocab.ids import ClusterId, ClusterItemId, GlobalId, ProfileId, ReplicaId, RoleId

# Whom unbilled replicas are billed to: nobody.
UNBILLED: Final = "unbilled"


class Introspection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How closely replicas watch themselves."""

    interval_ms: int | None = 1_000  # between reports; None: no reports
    debugging: bool = False


USUAL_INTROSPECTION: Final = Introspection()


class OnTimeout(StrEnum):
    """What becomes of a reconfiguration that is not ready by its deadline."""

    COMMIT = "commit"
    ROLLBACK = "rollback"


class ManagedTarget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a managed cluster is to become."""

    size: str
    replication_factor: int
    introspection: Introspection = USUAL_INTROSPECTION


class Reconfiguration(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change of size that waits until new replicas, marked pending, have caught up.

    It is part of the cluster's record, so that whoever follows the catalog can finish it.
    """

    target: ManagedTarget
    started_at_ms: int
    deadline_ms: int
    on_timeout: OnTimeout
    # False: the old replicas stay until the deadline whatever the new ones have reached.
    until_ready: bool = True


class Ending(StrEnum):
    """How a reconfiguration came to its end."""

    COMMITTED = "committed"
    TIMED_OUT = "timed-out"  # rolled back at its deadline
    GIVEN_UP = "given-up"  # somebody asked for the size that the cluster had
    FAILED = "failed"  # it could not be committed, so it was rolled back


class EndedReconfiguration(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A cluster's last one, for whoever waits for it, in whichever process."""

    target: ManagedTarget
    started_at_ms: int
    ending: Ending
    user: str | None  # whose doing the end was; None: the system's
    fault: str | None = None  # why it could not be committed


class VirtualCluster(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="virtual", gc=False
):
    """Runs in the pool process that all virtual clusters share."""


class ManagedCluster(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="managed",
    gc=False,
):
    """Replicas r1..rN follow from size and replication factor."""

    size: str
    replication_factor: int
    introspection: Introspection = USUAL_INTROSPECTION
    pending: Reconfiguration | None = None  # None: it is what it says
    ended: EndedReconfiguration | None = None  # None: there was none


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
    privileges: Acl = ()
    workload_class: str | None = None

    @property
    def is_virtual(self) -> bool:
        return isinstance(self.variant, VirtualCluster)


class ClusterReplica(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="is",
    tag="replica",
    rename={"replica_id": "cluster_item_id"},
    gc=False,
):
    """One running copy of a cluster."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CLUSTER_ITEM
    KEY: ClassVar[tuple[str, ...]] = ("cluster_item_id",)

    replica_id: ReplicaId
    cluster_id: ClusterId
    profile_id: ProfileId | None = None  # None: the cluster's implicit profile
    name: str
    size: str | None  # None: runs in the pool of virtual clusters
    owner: RoleId
    internal: bool = False  # lent by the system's users, beside those that the size asks for
    billed_as: str | None = None  # None: as its profile is
    pending: bool = False  # made by a reconfiguration that has not finished
    introspection: Introspection = USUAL_INTROSPECTION

    @property
    def cluster_item_id(self) -> ClusterItemId:
        return self.replica_id


class ClusterProfile(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="is",
    tag="profile",
    rename={"profile_id": "cluster_item_id"},
    gc=False,
):
    """Settings that a group of a cluster's replicas share."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CLUSTER_ITEM
    KEY: ClassVar[tuple[str, ...]] = ("cluster_item_id",)

    profile_id: ProfileId
    cluster_id: ClusterId
    name: str
    owner: RoleId
    size: str | None  # None: unmanaged, its replicas are made by name
    replication_factor: int | None  # None: unmanaged
    billed_as: str | None = None  # None: to the customer; UNBILLED: to nobody
    introspection: Introspection = USUAL_INTROSPECTION
    expires_at_ms: int | None = None  # epoch; None: stays until it is dropped

    @property
    def cluster_item_id(self) -> ClusterItemId:
        return self.profile_id

    @property
    def managed(self) -> bool:
        """Whether its replicas follow from size and replication factor."""
        return self.size is not None


# What lives in a cluster: the variants of one kind of object, with one namespace per cluster and
# one family of ids.
ClusterItem: TypeAlias = ClusterReplica | ClusterProfile


def billed_as(replica: ClusterReplica, profile: ClusterProfile | None) -> str | None:
    """Who pays for a replica: whoever it names itself, or its profile; None: the customer."""
    if replica.billed_as is not None or profile is None:
        return replica.billed_as
    return profile.billed_as


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
