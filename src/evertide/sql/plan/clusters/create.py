"""CREATE CLUSTER: managed by size and factor, unmanaged by named replicas, or virtual."""

from typing import Final

from evertide.catalog.create import is_reserved
from evertide.catalog.objects import ManagedCluster, UnmanagedCluster, VirtualCluster
from evertide.sql.plan.clusters import options as given
from evertide.sql.plan.clusters.options import Options
from evertide.sql.plan.clusters.plans import CreateClusterPlan
from evertide.sql.plan.clusters.schedule import check_schedule, check_unscheduled
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.new_name import check_new_name
from evertide.sql.resolve import position_of
from evertide.sql.syntax.definition import CreateClusterStatement
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidName,
    SqlSyntaxError,
)

# What a virtual cluster has none of: it shares what there is.
SHAPE: Final = ("SIZE", "REPLICATION FACTOR", "MANAGED", "REPLICAS", "SCHEDULE")
# What follows from a size, so not from named replicas.
OF_MANAGED: Final = (
    "SIZE",
    "REPLICATION FACTOR",
    "SCHEDULE",
    "INTROSPECTION INTERVAL",
    "INTROSPECTION DEBUGGING",
)


def plan_create_cluster(
    statement: CreateClusterStatement, query: QueryContext
) -> CreateClusterPlan:
    """A new cluster; whether its size exists is known to whoever starts replicas."""
    check_new_name(statement.name, statement.at)
    options = given.by_name(statement.options, given.CLUSTER)
    if is_reserved(statement.name):
        raise InvalidName(
            f'cluster name "{statement.name}" is reserved',
            detail='The prefixes "mz_" and "pg_" are reserved for system clusters.',
            position=position_of(statement.at),
        )
    plan = _planned(statement, options, query)
    known = query.plan.snapshot.cluster_named(statement.name)
    if known is not None and not statement.if_not_exists:
        raise DuplicateObject(
            f"cluster '{statement.name}' already exists", position=position_of(statement.at)
        )
    return plan


def _planned(
    statement: CreateClusterStatement, options: Options, query: QueryContext
) -> CreateClusterPlan:
    workload = given.workload_class(options, None, query)
    name, exists_ok = statement.name, statement.if_not_exists
    if "VIRTUAL" in options:
        refuse_shape(options, query)
        return CreateClusterPlan(
            name=name,
            variant=VirtualCluster(),
            workload_class=workload,
            if_not_exists=exists_ok,
        )
    if is_unmanaged(options):
        return CreateClusterPlan(
            name=name,
            variant=UnmanagedCluster(),
            replicas=given.new_replicas(name, options.get("REPLICAS"), query),
            workload_class=workload,
            if_not_exists=exists_ok,
        )
    if "SIZE" not in options:
        raise SqlSyntaxError(
            "SIZE must be specified for managed clusters", position=position_of(statement.at)
        )
    check_schedule(options)
    factor = options.get("REPLICATION FACTOR")
    variant = ManagedCluster(
        size=given.text_of(options["SIZE"]),
        replication_factor=1 if factor is None else given.factor(factor),
        introspection=given.introspection(options),
    )
    return CreateClusterPlan(
        name=name,
        variant=variant,
        workload_class=workload,
        if_not_exists=exists_ok,
    )


def is_unmanaged(options: Options) -> bool:
    """Named replicas, MANAGED = false, or nothing at all: a cluster without any profile.

    Options that contradict this are refused.
    """
    managed = options.get("MANAGED")
    if "REPLICAS" in options and managed is not None and given.flag(managed, default=True):
        raise FeatureNotSupported(
            "REPLICAS not supported for managed clusters",
            position=position_of(options["REPLICAS"].at),
        )
    if options and "REPLICAS" not in options and given.flag(managed, default=True):
        return False
    refuse_of_managed(options)
    return True


def refuse_of_managed(options: Options) -> None:
    """MANUAL is how the replicas of an unmanaged cluster run anyway."""
    check_unscheduled(options)
    for name in OF_MANAGED:
        if name in options and name != "SCHEDULE":
            raise FeatureNotSupported(
                f"{name} not supported for unmanaged clusters",
                position=position_of(options[name].at),
            )


def refuse_shape(options: Options, query: QueryContext) -> None:
    """A virtual cluster has no shape of its own, and is for those who experiment."""
    for name in SHAPE:
        if name in options:
            raise SqlSyntaxError(
                f"cannot specify both VIRTUAL and {name}",
                position=position_of(options[name].at),
            )
    if not query.plan.experimental:
        raise FeatureNotSupported(
            "virtual clusters are available in experimental mode only",
            hint="Start the server with --experimental, or give the cluster a SIZE.",
            position=position_of(options["VIRTUAL"].at),
        )
