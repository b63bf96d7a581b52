"""ALTER CLUSTER: another shape, at once or by way of new replicas, another name, another owner."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from evertide.catalog.clusters import DEFAULT_PREFIX
from evertide.catalog.objects import (
    USUAL_INTROSPECTION,
    Cluster,
    ClusterReplica,
    ClusterVariant,
    Ending,
    ManagedCluster,
    ManagedTarget,
    OnTimeout,
    UnmanagedCluster,
    VirtualCluster,
)
from evertide.catalog.ops import AlterClusterOp, FinishReconfigurationOp, SwapClustersOp
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters import options as given
from evertide.sql.plan.clusters.create import OF_MANAGED, refuse_of_managed, refuse_shape
from evertide.sql.plan.clusters.options import Options
from evertide.sql.plan.clusters.plans import ChangePlan, ReconfigureClusterPlan
from evertide.sql.plan.clusters.schedule import check_schedule
from evertide.sql.plan.clusters.texts import moved_texts
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.resolve import position_of, resolve_cluster
from evertide.sql.syntax.definition import (
    AlterClusterResetStatement,
    AlterClusterSetStatement,
    SwapStatement,
)
from evertide.sql.syntax.expression import Name, StringLiteral
from evertide.sql.syntax.option import Option, OptionGroup
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    Notice,
    SqlSyntaxError,
    UndefinedObject,
)

_TAG = "ALTER CLUSTER"
# Until it ends a cluster can be changed in no other way, and has twice the replicas.
LONGEST_WAIT_MS: Final = 24 * 60 * 60 * 1_000


class _Wait(NamedTuple):
    """How long, whether it may end before, and what then."""

    wait_ms: int
    until_ready: bool
    on_timeout: OnTimeout


def plan_alter_cluster(
    statement: AlterClusterSetStatement, query: QueryContext
) -> ReconfigureClusterPlan | ChangePlan | NoticePlan:
    """SET: the cluster as it shall be."""
    cluster = _found(statement, query)
    if isinstance(cluster, NoticePlan):
        return cluster
    options = given.by_name(statement.options, given.CLUSTER)
    given_up = _given_up(cluster, options)
    if given_up:
        cluster = _without_pending(cluster)
    variant = _altered(cluster, options, query, statement.at)
    workload = given.workload_class(options, cluster.workload_class, query)
    op = AlterClusterOp(cluster_id=cluster.cluster_id, variant=variant, workload_class=workload)
    option = given.by_name(statement.with_options, ("WAIT",)).get("WAIT")
    wait = None if option is None else _wait(option)
    if wait is not None and _waits(cluster.variant, variant):
        return _reconfigure(cluster, op, wait)
    return ChangePlan(tag=_TAG, ops=(*given_up, op))


def _given_up(cluster: Cluster, options: Options) -> tuple[FinishReconfigurationOp, ...]:
    """Whoever asks for the size that a cluster has gives up the change to another one."""
    variant = cluster.variant
    if not isinstance(variant, ManagedCluster) or variant.pending is None:
        return ()
    if "SIZE" not in options or given.text_of(options["SIZE"]) != variant.size:
        return ()
    pending = variant.pending
    return (
        FinishReconfigurationOp(
            cluster_id=cluster.cluster_id, pending=pending, ending=Ending.GIVEN_UP
        ),
    )


def _without_pending(cluster: Cluster) -> Cluster:
    assert isinstance(cluster.variant, ManagedCluster), "others have nothing pending"
    variant = msgspec.structs.replace(cluster.variant, pending=None)
    return msgspec.structs.replace(cluster, variant=variant)


def _found(
    statement: AlterClusterSetStatement | AlterClusterResetStatement, query: QueryContext
) -> Cluster | NoticePlan:
    try:
        return resolve_cluster(statement.name, query.plan.snapshot, at=statement.at)
    except UndefinedObject as error:
        if not statement.if_exists:
            raise
        return NoticePlan(_TAG, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))


def _altered(cluster: Cluster, options: Options, query: QueryContext, at: int) -> ClusterVariant:
    if "VIRTUAL" in options:
        refuse_shape(options, query)
        return VirtualCluster()
    if "REPLICAS" in options:
        raise FeatureNotSupported(
            "REPLICAS not supported for ALTER CLUSTER",
            hint="Use CREATE CLUSTER REPLICA and DROP CLUSTER REPLICA.",
            position=position_of(options["REPLICAS"].at),
        )
    if not _is_managed(cluster.variant, options):
        refuse_of_managed(options)
        stays_virtual = cluster.is_virtual and "MANAGED" not in options
        return cluster.variant if stays_virtual else UnmanagedCluster()
    match cluster.variant:
        case ManagedCluster() as before:
            return _changed(before, options)
        case VirtualCluster():
            if "SIZE" not in options:
                raise _virtual_without_size(cluster, at)
            return _changed(ManagedCluster(size="", replication_factor=1), options)
        case UnmanagedCluster():
            return _gathered(cluster, options, query.plan.snapshot, at)


def _is_managed(before: ClusterVariant, options: Options) -> bool:
    """What MANAGED says; without it a size makes a virtual cluster managed."""
    if "MANAGED" in options:
        return given.flag(options["MANAGED"], default=True)
    if isinstance(before, VirtualCluster):
        return any(name in options for name in OF_MANAGED)
    return isinstance(before, ManagedCluster)


def _virtual_without_size(cluster: Cluster, at: int) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"cannot modify virtual cluster {cluster.name}",
        hint="Use ALTER CLUSTER ... SET (SIZE ...) to give it replicas of its own.",
        position=position_of(at),
    )


def _changed(before: ManagedCluster, options: Options) -> ManagedCluster:
    found = before
    if "SIZE" in options:
        found = msgspec.structs.replace(found, size=given.text_of(options["SIZE"]))
    if "REPLICATION FACTOR" in options:
        number = given.factor(options["REPLICATION FACTOR"])
        found = msgspec.structs.replace(found, replication_factor=number)
    check_schedule(options)
    settings = given.introspection(options, found.introspection)
    return msgspec.structs.replace(found, introspection=settings)


def _gathered(cluster: Cluster, options: Options, snapshot: Snapshot, at: int) -> ManagedCluster:
    """Named replicas become managed ones as they are, so they must be what a size would make."""
    own = [
        replica
        for replica in snapshot.replicas_of(cluster.cluster_id)
        if replica.profile_id is None and not replica.internal
    ]
    if not own and "SIZE" not in options:
        raise InvalidParameterValue("Missing SIZE for empty cluster", position=position_of(at))
    size = own[0].size if own else given.text_of(options["SIZE"])
    assert size is not None, "replicas of unmanaged clusters have a size"
    default = 1 if not own else len(own)
    wanted = _changed(ManagedCluster(size=size, replication_factor=default), options)
    _refuse_unlike(cluster, own, wanted, at)
    return wanted


def _refuse_unlike(
    cluster: Cluster, own: Sequence[ClusterReplica], wanted: ManagedCluster, at: int
) -> None:
    if not own:
        return
    number = wanted.replication_factor
    if number != len(own):
        raise InvalidParameterValue(
            f"REPLICATION FACTOR {number} does not match number of replicas ({len(own)})",
            position=position_of(at),
        )
    names = {f"r{number}" for number in range(1, len(own) + 1)}
    for replica in own:
        if replica.size != wanted.size:
            raise InvalidParameterValue(
                f"Cluster replicas have different sizes: {replica.name} has {replica.size},"
                f" not {wanted.size}",
                position=position_of(at),
            )
        if replica.name.removeprefix(DEFAULT_PREFIX) not in names:
            raise InvalidParameterValue(
                f"Cluster replica {cluster.name}.{replica.name} does not follow the names of a"
                f" managed cluster: r1 to r{len(own)}",
                position=position_of(at),
            )


def _waits(before: ClusterVariant, after: ClusterVariant) -> bool:
    """Only replicas of another size are worth waiting for: others go on, or come beside them."""
    if not isinstance(before, ManagedCluster) or not isinstance(after, ManagedCluster):
        return False
    return before.size != after.size and after.replication_factor > 0


def _reconfigure(cluster: Cluster, op: AlterClusterOp, wait: _Wait) -> ReconfigureClusterPlan:
    before, after = cluster.variant, op.variant
    assert isinstance(before, ManagedCluster), "only managed clusters wait"
    assert isinstance(after, ManagedCluster), "only managed clusters wait"
    return ReconfigureClusterPlan(
        cluster_id=cluster.cluster_id,
        at_once=AlterClusterOp(
            cluster_id=cluster.cluster_id, variant=before, workload_class=op.workload_class
        ),
        target=ManagedTarget(
            size=after.size,
            replication_factor=after.replication_factor,
            introspection=after.introspection,
        ),
        wait_ms=wait.wait_ms,
        until_ready=wait.until_ready,
        on_timeout=wait.on_timeout,
    )


def _wait(wait: Option) -> _Wait:
    group = wait.value
    assert isinstance(group, OptionGroup), "the grammar gives WAIT one of two forms"
    if group.words == "FOR":
        (duration,) = group.options
        return _Wait(_bounded(duration), False, OnTimeout.COMMIT)
    options = given.by_name(group.options, ("TIMEOUT", "ON TIMEOUT"))
    if "TIMEOUT" not in options:
        raise SqlSyntaxError("WAIT UNTIL READY needs a TIMEOUT", position=position_of(wait.at))
    return _Wait(_bounded(options["TIMEOUT"]), True, _on_timeout(options.get("ON TIMEOUT")))


def _bounded(option: Option) -> int:
    milliseconds = given.span_ms(option)
    if milliseconds > LONGEST_WAIT_MS:
        raise InvalidParameterValue(
            "a reconfiguration waits for one day at most",
            hint="Give a shorter duration, such as '1 hour'.",
            position=position_of(option.at),
        )
    return milliseconds


def _on_timeout(option: Option | None) -> OnTimeout:
    match None if option is None else option.value:
        case None:
            return OnTimeout.ROLLBACK
        case StringLiteral(value=word) | Name(parts=(word,)) if word.lower() in list(OnTimeout):
            return OnTimeout(word.lower())
        case _:
            assert option is not None
            raise given.bad_value(option, "must be COMMIT or ROLLBACK")


def plan_reset_cluster(
    statement: AlterClusterResetStatement, query: QueryContext
) -> ChangePlan | NoticePlan:
    """RESET: what CREATE CLUSTER would take if nothing were said."""
    cluster = _found(statement, query)
    if isinstance(cluster, NoticePlan):
        return cluster
    variant, workload = cluster.variant, cluster.workload_class
    for name in statement.option_names:
        if name == "WORKLOAD CLASS":
            asked = {name: Option(name, at=statement.at)}
            message = "WORKLOAD CLASS not supported for non-system users"
            given.refuse_users(asked, (name,), message, query)
            workload = None
        else:
            variant = _reset(cluster, variant, name, statement.at)
    op = AlterClusterOp(cluster_id=cluster.cluster_id, variant=variant, workload_class=workload)
    return ChangePlan(tag=_TAG, ops=(op,))


def _reset(cluster: Cluster, variant: ClusterVariant, name: str, at: int) -> ClusterVariant:
    if name in ("SIZE", "VIRTUAL", "REPLICAS"):
        raise InvalidParameterValue(f"{name} has no default value", position=position_of(at))
    if cluster.is_virtual:
        raise _virtual_without_size(cluster, at)
    if not isinstance(variant, ManagedCluster):
        raise FeatureNotSupported(
            f"{name} not supported for unmanaged clusters", position=position_of(at)
        )
    settings = variant.introspection
    match name:
        case "REPLICATION FACTOR":
            return msgspec.structs.replace(variant, replication_factor=1)
        case "SCHEDULE":
            return variant
        case "INTROSPECTION INTERVAL":
            usual = USUAL_INTROSPECTION.interval_ms
            settings = msgspec.structs.replace(settings, interval_ms=usual)
        case "INTROSPECTION DEBUGGING":
            settings = msgspec.structs.replace(settings, debugging=False)
        case _:
            return variant
    return msgspec.structs.replace(variant, introspection=settings)


def plan_swap_clusters(statement: SwapStatement, query: QueryContext) -> ChangePlan:
    """Both clusters under each other's name, and what they run with them."""
    snapshot = query.plan.snapshot
    first = resolve_cluster(statement.name.parts[0], snapshot, at=statement.name.at)
    second = resolve_cluster(statement.other, snapshot, at=statement.at)
    texts = (
        *moved_texts(first.cluster_id, second.name, snapshot),
        *moved_texts(second.cluster_id, first.name, snapshot),
    )
    op = SwapClustersOp(cluster_id=first.cluster_id, other_id=second.cluster_id, items_sql=texts)
    return ChangePlan(tag=_TAG, ops=(op,))
