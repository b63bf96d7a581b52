"""ALTER CLUSTER ... WITH (WAIT ...): the wait until a reconfiguration has come to its end.

The intent is in the catalog, so whoever waits may be cancelled or go away: it goes on without them.
How it ended is in the catalog too, whichever process ended it.
"""

from evertide.adapter.see_through import raise_late_cancel
from evertide.catalog.objects import (
    Cluster,
    EndedReconfiguration,
    Ending,
    ManagedCluster,
    ManagedTarget,
)
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters.plans import ReconfigureClusterPlan
from evertide.vocab.errors import ObjectNotInPrerequisiteState, QueryCanceled, SqlError


async def wait_reconfigured(
    plan: ReconfigureClusterPlan, started_at_ms: int, catalog: CatalogService
) -> None:
    """Returns once the cluster is what was asked for; raises if it never will be."""
    raise_late_cancel()
    snapshot = await catalog.current()
    while not is_reconfigured(plan, started_at_ms, snapshot):
        snapshot = await catalog.snapshot_at(snapshot.upper)


def is_reconfigured(plan: ReconfigureClusterPlan, started_at_ms: int, snapshot: Snapshot) -> bool:
    """Whether it has happened; an error says what happened instead."""
    cluster = snapshot.clusters.get(plan.cluster_id)
    if cluster is None:
        raise ObjectNotInPrerequisiteState("the cluster was dropped while it was reconfigured")
    if not isinstance(cluster.variant, ManagedCluster):
        return True
    pending, ended = cluster.variant.pending, cluster.variant.ended
    own = (plan.target, started_at_ms)
    if pending is not None and (pending.target, pending.started_at_ms) == own:
        return False
    if ended is None or (ended.target, ended.started_at_ms) != own:
        # Others have changed the cluster again since: all that can be told is what it is.
        if _is(cluster.variant, plan.target):
            return True
        raise QueryCanceled(
            f'the reconfiguration of cluster "{cluster.name}" has ended, and others followed it'
        )
    if ended.ending is Ending.COMMITTED:
        return True
    raise _told(cluster, cluster.variant, ended)


def _told(cluster: Cluster, variant: ManagedCluster, ended: EndedReconfiguration) -> SqlError:
    """What became of a reconfiguration that was not committed."""
    what = f'the reconfiguration of cluster "{cluster.name}"'
    kept = f"were dropped; the cluster keeps its size '{variant.size}'."
    if ended.ending is Ending.TIMED_OUT:
        return QueryCanceled(
            "canceling statement, provided timeout lapsed",
            detail=f"The new replicas had not caught up by then and {kept}",
            hint="Give a longer TIMEOUT, or ON TIMEOUT COMMIT to go on with replicas that are not"
            " ready.",
        )
    if ended.ending is Ending.GIVEN_UP:
        by = "" if ended.user is None else f" by {ended.user}"
        return QueryCanceled(f"{what} was given up{by}", detail=f"The new replicas {kept}")
    return ObjectNotInPrerequisiteState(
        f"{what} could not be committed and was rolled back: {ended.fault}",
        detail=f"The new replicas {kept}",
    )


def _is(variant: ManagedCluster, target: ManagedTarget) -> bool:
    return (variant.size, variant.replication_factor) == (target.size, target.replication_factor)
