"""ALTER CLUSTER ... WITH (WAIT ...): the wait until a reconfiguration has come to its end.

The intent is in the catalog, so whoever waits may be cancelled or go away: it goes on without them.
"""

import asyncio

from evertide.catalog.objects import ManagedCluster, ManagedTarget
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters.plans import ReconfigureClusterPlan
from evertide.vocab.errors import ObjectNotInPrerequisiteState, QueryCanceled


async def wait_reconfigured(plan: ReconfigureClusterPlan, catalog: CatalogService) -> None:
    """Returns once the cluster is what was asked for; raises if it never will be.

    A cancel that came too late for the commit comes in time for the wait.
    """
    current = asyncio.current_task()
    if current is not None and current.cancelling():
        raise asyncio.CancelledError
    snapshot = await catalog.current()
    while not is_reconfigured(plan, snapshot):
        snapshot = await catalog.snapshot_at(snapshot.upper)


def is_reconfigured(plan: ReconfigureClusterPlan, snapshot: Snapshot) -> bool:
    """Whether it has happened; an error says that it was given up."""
    cluster = snapshot.clusters.get(plan.cluster_id)
    if cluster is None:
        raise ObjectNotInPrerequisiteState("the cluster was dropped while it was reconfigured")
    if not isinstance(cluster.variant, ManagedCluster):
        return True
    if cluster.variant.pending is not None:
        return False
    if not _is(cluster.variant, plan.target):
        raise QueryCanceled("canceling statement, provided timeout lapsed")
    return True


def _is(variant: ManagedCluster, target: ManagedTarget) -> bool:
    return (variant.size, variant.replication_factor) == (target.size, target.replication_factor)
