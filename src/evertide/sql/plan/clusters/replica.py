"""Replicas by name: CREATE CLUSTER REPLICA, and which of them may be moved, renamed or dropped."""

import re
from typing import Final

from evertide.catalog.objects import Cluster, ClusterProfile, ClusterReplica, ManagedCluster
from evertide.catalog.ops import CreateClusterReplicaOp, MoveReplicaOp
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters import options as given
from evertide.sql.plan.clusters.plans import ChangePlan
from evertide.sql.plan.clusters.profile import refuse_outsiders, resolve_profile
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.resolve import position_of, resolve_cluster
from evertide.sql.syntax.cluster import MoveReplicaStatement
from evertide.sql.syntax.definition import CreateClusterReplicaStatement
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidName,
    Notice,
    UndefinedObject,
)

_OF_MANAGED: Final = re.compile(r"r[0-9]+(-pending)?")


def plan_create_replica(
    statement: CreateClusterReplicaStatement, query: QueryContext
) -> ChangePlan:
    """One more replica of an unmanaged cluster or profile, or an internal one of any."""
    snapshot = query.plan.snapshot
    cluster = resolve_cluster(statement.cluster, snapshot, at=statement.at)
    options = given.by_name(statement.options, given.REPLICA)
    profile = None
    if statement.profile is not None:
        refuse_outsiders(query, statement.at)
        profile = resolve_profile(cluster, statement.profile, snapshot, at=statement.at)
    internal = given.flag(options.get("INTERNAL"), default=False)
    _refuse_managed(cluster, profile, internal, statement)
    replica = given.new_replica(statement.name, options, query, at=statement.at)
    taken = snapshot.replica_named(cluster.cluster_id, statement.name)
    if taken is not None and not statement.if_not_exists:
        raise DuplicateObject(
            f"cannot create multiple replicas named '{statement.name}' on cluster '{cluster.name}'",
            position=position_of(statement.at),
        )
    op = CreateClusterReplicaOp(
        cluster_id=cluster.cluster_id,
        owner=cluster.owner,
        replica=replica,
        profile_id=None if profile is None else profile.profile_id,
    )
    return ChangePlan(
        tag="CREATE CLUSTER REPLICA", ops=(op,), if_not_exists=statement.if_not_exists
    )


def _refuse_managed(
    cluster: Cluster,
    profile: ClusterProfile | None,
    internal: bool,
    statement: CreateClusterReplicaStatement,
) -> None:
    """What follows from a size has no replicas by name, but for those that the system lends."""
    if not isinstance(cluster.variant, ManagedCluster):
        return
    if profile is None and not internal:
        raise FeatureNotSupported(
            f"cannot modify managed cluster {cluster.name}", position=position_of(statement.at)
        )
    if profile is None and _OF_MANAGED.fullmatch(statement.name):
        raise InvalidName(
            f"{statement.name} is reserved for replicas of managed clusters",
            position=position_of(statement.at),
        )


def plan_move_replica(
    statement: MoveReplicaStatement, query: QueryContext
) -> ChangePlan | NoticePlan:
    """ALTER CLUSTER REPLICA ... IN PROFILE: the replica goes on running."""
    tag = "ALTER CLUSTER REPLICA"
    refuse_outsiders(query, statement.at)
    snapshot = query.plan.snapshot
    name = Name((statement.cluster, statement.name), at=statement.at)
    try:
        cluster, replica = resolve_replica(name, snapshot)
    except UndefinedObject as error:
        if not statement.if_exists:
            raise
        return NoticePlan(tag, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    profile = resolve_profile(cluster, statement.profile, snapshot, at=statement.at)
    profile_id = None if profile is None else profile.profile_id
    return ChangePlan(
        tag=tag, ops=(MoveReplicaOp(replica_id=replica.replica_id, profile_id=profile_id),)
    )


def resolve_replica(name: Name, snapshot: Snapshot) -> tuple[Cluster, ClusterReplica]:
    """The replica `cluster.replica`."""
    cluster_name, replica_name = name.parts
    cluster = resolve_cluster(cluster_name, snapshot, at=name.at)
    replica = snapshot.replica_named(cluster.cluster_id, replica_name)
    if replica is None:
        raise UndefinedObject(
            f'CLUSTER {cluster.name} has no CLUSTER REPLICA named "{replica_name}"',
            position=position_of(name.at),
        )
    return cluster, replica


def own_replica(name: Name, snapshot: Snapshot, verb: str) -> ClusterReplica:
    """The replica, if it may be changed by itself: it does not follow from a size."""
    cluster, replica = resolve_replica(name, snapshot)
    position = position_of(name.at)
    if cluster.is_virtual:
        raise FeatureNotSupported(
            f"cannot modify virtual cluster {cluster.name}", position=position
        )
    if replica.internal:
        return replica
    if replica.profile_id is None:
        if isinstance(cluster.variant, ManagedCluster):
            raise FeatureNotSupported(
                f"cannot {verb} replica of managed cluster", position=position
            )
    elif snapshot.profiles[replica.profile_id].managed:
        profile = snapshot.profiles[replica.profile_id].name
        raise FeatureNotSupported(
            f"cannot {verb} replica of managed profile {cluster.name}.{profile}",
            position=position,
        )
    return replica
