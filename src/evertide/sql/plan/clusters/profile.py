"""Cluster profiles: replicas of one cluster with common settings, lent by the system's users."""

from typing import Final

import msgspec

from evertide.catalog.objects import (
    USUAL_INTROSPECTION,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    UnmanagedCluster,
)
from evertide.catalog.ops import (
    AlterClusterOp,
    DropClusterProfileOp,
    DropClusterReplicaOp,
    Op,
)
from evertide.catalog.profiles import profile_has_objects
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters import options as given
from evertide.sql.plan.clusters.options import Options
from evertide.sql.plan.clusters.plans import (
    AlterClusterProfilePlan,
    ChangePlan,
    CreateClusterProfilePlan,
)
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.new_name import check_new_name
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.resolve import position_of, resolve_cluster
from evertide.sql.syntax.cluster import (
    AlterClusterProfileResetStatement,
    AlterClusterProfileSetStatement,
    CreateClusterProfileStatement,
)
from evertide.sql.syntax.definition import DropStatement
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameterValue,
    Notice,
    SqlSyntaxError,
    UndefinedObject,
)

# The name of a cluster's own settings, unless a profile is called so.
IMPLICIT: Final = "default"
_TAG: Final = "ALTER CLUSTER PROFILE"


def refuse_outsiders(query: QueryContext, at: int) -> None:
    """Profiles decide who pays, so only the system's own users work with them."""
    if not given.is_internal(query):
        raise InsufficientPrivilege(
            "cluster profiles are reserved for internal users",
            hint="System users connect to the internal SQL address.",
            position=position_of(at),
        )


def resolve_profile(
    cluster: Cluster, name: str, snapshot: Snapshot, *, at: int
) -> ClusterProfile | None:
    """The profile of this name; None: the cluster's implicit one."""
    profile = snapshot.profile_named(cluster.cluster_id, name)
    if profile is None and name != IMPLICIT:
        raise UndefinedObject(
            f'CLUSTER {cluster.name} has no CLUSTER PROFILE named "{name}"',
            position=position_of(at),
        )
    return profile


def named_profile(name: Name, snapshot: Snapshot) -> ClusterProfile:
    """The profile `cluster.profile`, which must be a record of its own."""
    cluster = resolve_cluster(name.parts[0], snapshot, at=name.at)
    profile = resolve_profile(cluster, name.parts[1], snapshot, at=name.at)
    if profile is None:
        raise FeatureNotSupported(
            f"cannot modify the implicit profile of cluster {cluster.name}",
            hint="Use ALTER CLUSTER.",
            position=position_of(name.at),
        )
    return profile


def plan_create_profile(
    statement: CreateClusterProfileStatement, query: QueryContext
) -> CreateClusterProfilePlan:
    """Managed by a size, or unmanaged with the replicas that are named."""
    refuse_outsiders(query, statement.at)
    snapshot = query.plan.snapshot
    cluster = resolve_cluster(statement.cluster, snapshot, at=statement.at)
    options = given.by_name(statement.options, given.PROFILE)
    check_new_name(statement.name, statement.at)
    managed = _is_managed(options, statement.at)
    taken = snapshot.profile_named(cluster.cluster_id, statement.name)
    if taken is not None and not statement.if_not_exists:
        raise DuplicateObject(
            f"cluster profile '{cluster.name}.{statement.name}' already exists",
            position=position_of(statement.at),
        )
    return CreateClusterProfilePlan(
        cluster_id=cluster.cluster_id,
        name=statement.name,
        size=given.text_of(options["SIZE"]) if managed else None,
        replication_factor=_factor(options, 1) if managed else None,
        billed_as=given.billed_as(options),
        introspection=given.introspection(options),
        expires_after_ms=_expires_after(options),
        replicas=given.new_replicas(cluster.name, options.get("REPLICAS"), query),
        if_not_exists=statement.if_not_exists,
    )


def _is_managed(options: Options, at: int) -> bool:
    """A size or a factor makes it managed; named replicas, or nothing, do not."""
    shaped = [name for name in ("SIZE", "REPLICATION FACTOR") if name in options]
    managed = given.flag(options.get("MANAGED"), default=bool(shaped))
    if managed and "REPLICAS" in options:
        raise FeatureNotSupported(
            "REPLICAS not supported for managed profiles",
            position=position_of(options["REPLICAS"].at),
        )
    if managed and "SIZE" not in options:
        raise SqlSyntaxError(
            "SIZE must be specified for managed profiles", position=position_of(at)
        )
    if shaped and not managed:
        raise FeatureNotSupported(
            f"{shaped[0]} not supported for unmanaged profiles",
            position=position_of(options[shaped[0]].at),
        )
    return managed


def _factor(options: Options, before: int | None) -> int | None:
    option = options.get("REPLICATION FACTOR")
    return before if option is None else given.factor(option)


def _expires_after(options: Options) -> int | None:
    option = options.get("EXPIRES AFTER")
    if option is None:
        return None
    milliseconds = given.span_ms(option)
    if milliseconds == 0:
        raise given.bad_value(option, "must be longer than nothing")
    return milliseconds


def plan_alter_profile(
    statement: AlterClusterProfileSetStatement, query: QueryContext
) -> AlterClusterProfilePlan | NoticePlan:
    """SET: the profile as it shall be."""
    profile = _found(statement, query)
    if isinstance(profile, NoticePlan):
        return profile
    options = given.by_name(statement.options, given.PROFILE)
    if "REPLICAS" in options:
        raise FeatureNotSupported(
            "REPLICAS not supported for ALTER CLUSTER PROFILE",
            hint="Use CREATE CLUSTER REPLICA and DROP CLUSTER REPLICA.",
            position=position_of(options["REPLICAS"].at),
        )
    _refuse_other_kind(profile, options)
    size = given.text_of(options["SIZE"]) if "SIZE" in options else profile.size
    return AlterClusterProfilePlan(
        profile_id=profile.profile_id,
        size=size,
        replication_factor=_factor(options, profile.replication_factor),
        billed_as=given.billed_as(options, profile.billed_as),
        introspection=given.introspection(options, profile.introspection),
        expires_at_ms=profile.expires_at_ms,
        expires_after_ms=_expires_after(options),
    )


def _refuse_other_kind(profile: ClusterProfile, options: Options) -> None:
    """A profile is managed for life."""
    words = "managed" if profile.managed else "unmanaged"
    if given.flag(options.get("MANAGED"), default=profile.managed) != profile.managed:
        raise FeatureNotSupported(
            f"cannot change that cluster profile {profile.name} is {words}",
            hint="Drop the profile and create it again.",
            position=position_of(options["MANAGED"].at),
        )
    for name in ("SIZE", "REPLICATION FACTOR"):
        if name in options and not profile.managed:
            raise FeatureNotSupported(
                f"{name} not supported for unmanaged profiles",
                position=position_of(options[name].at),
            )


def plan_reset_profile(
    statement: AlterClusterProfileResetStatement, query: QueryContext
) -> AlterClusterProfilePlan | NoticePlan:
    """RESET: what CREATE CLUSTER PROFILE would take if nothing were said."""
    profile = _found(statement, query)
    if isinstance(profile, NoticePlan):
        return profile
    names = set(statement.option_names)
    for name in ("SIZE", "MANAGED", "REPLICAS"):
        if name in names:
            raise InvalidParameterValue(
                f"{name} has no default value", position=position_of(statement.at)
            )
    settings = profile.introspection
    if "INTROSPECTION INTERVAL" in names:
        settings = msgspec.structs.replace(settings, interval_ms=USUAL_INTROSPECTION.interval_ms)
    if "INTROSPECTION DEBUGGING" in names:
        settings = msgspec.structs.replace(settings, debugging=USUAL_INTROSPECTION.debugging)
    factor = 1 if profile.managed and "REPLICATION FACTOR" in names else profile.replication_factor
    return AlterClusterProfilePlan(
        profile_id=profile.profile_id,
        size=profile.size,
        replication_factor=factor,
        billed_as=None if names & {"BILLED", "BILLED AS"} else profile.billed_as,
        introspection=settings,
        expires_at_ms=None if "EXPIRES AFTER" in names else profile.expires_at_ms,
        expires_after_ms=None,
    )


def _found(
    statement: AlterClusterProfileSetStatement | AlterClusterProfileResetStatement,
    query: QueryContext,
) -> ClusterProfile | NoticePlan:
    refuse_outsiders(query, statement.at)
    name = Name((statement.cluster, statement.name), at=statement.at)
    try:
        return named_profile(name, query.plan.snapshot)
    except UndefinedObject as error:
        if not statement.if_exists:
            raise
        return NoticePlan(_TAG, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))


def plan_drop_profiles(statement: DropStatement, query: QueryContext) -> ChangePlan:
    """Named profiles, or what a cluster's own settings ask for."""
    refuse_outsiders(query, statement.at)
    ops: list[Op] = []
    notices: list[Notice] = []
    for name in statement.names:
        try:
            ops += _drop(name, statement, query.plan.snapshot)
        except UndefinedObject as error:
            if not statement.if_exists:
                raise
            notices.append(Notice("NOTICE", "00000", f"{error.message}, skipping"))
    return ChangePlan(tag="DROP CLUSTER PROFILE", ops=tuple(ops), notices=tuple(notices))


def _drop(name: Name, statement: DropStatement, snapshot: Snapshot) -> list[Op]:
    cluster = resolve_cluster(name.parts[0], snapshot, at=name.at)
    profile = resolve_profile(cluster, name.parts[1], snapshot, at=name.at)
    if profile is not None:
        return [DropClusterProfileOp(profile.profile_id, cascade=statement.cascade)]
    if cluster.is_virtual:
        raise FeatureNotSupported(
            f"cannot modify virtual cluster {cluster.name}", position=position_of(name.at)
        )
    own = _implicit_replicas(cluster, snapshot)
    if own and not statement.cascade:
        raise profile_has_objects(cluster.name, name.parts[1], own)
    bare = AlterClusterOp(
        cluster_id=cluster.cluster_id,
        variant=UnmanagedCluster(),
        workload_class=cluster.workload_class,
    )
    return [bare, *(DropClusterReplicaOp(replica.replica_id) for replica in own)]


def _implicit_replicas(cluster: Cluster, snapshot: Snapshot) -> list[ClusterReplica]:
    """Those of no profile, without what the system lends."""
    replicas = snapshot.replicas_of(cluster.cluster_id)
    return [one for one in replicas if one.profile_id is None and not one.internal]
