"""Plans of statements about clusters, replicas and profiles.

What such a statement asks for hardly ever needs more than the catalog: then its plan is the very
changes. Those that count from the time they run keep spans, which become times there.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.catalog.objects import ClusterVariant, Introspection, ManagedTarget, OnTimeout
from evertide.catalog.ops import AlterClusterOp, NewReplica, Op
from evertide.vocab.errors import Notice
from evertide.vocab.ids import ClusterId, ProfileId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClusterPlan:
    """`replicas` are the named ones of an unmanaged cluster."""

    name: str
    variant: ClusterVariant
    replicas: tuple[NewReplica, ...] = ()
    workload_class: str | None = None
    if_not_exists: bool = False
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClusterProfilePlan:
    """Managed if it has a size; `replicas` are the named ones of an unmanaged profile."""

    cluster_id: ClusterId
    name: str
    size: str | None
    replication_factor: int | None
    billed_as: str | None
    introspection: Introspection
    expires_after_ms: int | None  # None: it stays
    replicas: tuple[NewReplica, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClusterProfilePlan:
    """All properties as they shall be."""

    profile_id: ProfileId
    size: str | None
    replication_factor: int | None
    billed_as: str | None
    introspection: Introspection
    expires_at_ms: int | None  # as before; None: it stays
    expires_after_ms: int | None  # from now on; None: nothing was said


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconfigureClusterPlan:
    """ALTER CLUSTER ... WITH (WAIT ...): what happens at once, and what waits."""

    cluster_id: ClusterId
    at_once: AlterClusterOp
    target: ManagedTarget
    wait_ms: int
    until_ready: bool
    on_timeout: OnTimeout
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """Changes of the catalog that were decided from the snapshot alone."""

    tag: str
    ops: tuple[Op, ...]
    if_not_exists: bool = False
    notices: tuple[Notice, ...] = ()


ClusterPlan: TypeAlias = (
    CreateClusterPlan
    | CreateClusterProfilePlan
    | AlterClusterProfilePlan
    | ReconfigureClusterPlan
    | ChangePlan
)
