"""Finishes what clusters are to become: new replicas catch up, then the old ones go.

That a reconfiguration is under way stands in the catalog, so it goes on after a restart, and
whoever asked for it may have left long ago.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

import structlog

from evertide.catalog.faults import CatalogFault
from evertide.catalog.kinds.refresh import StoredRefresh
from evertide.catalog.objects import (
    Cluster,
    Ending,
    Item,
    ManagedCluster,
    MaterializedView,
    OnTimeout,
    Reconfiguration,
)
from evertide.catalog.ops import FinishReconfigurationOp
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.append import append_ops
from evertide.controller.follow import running
from evertide.controller.orchestrator import process_name
from evertide.controller.statuses import Facts
from evertide.persist.trouble import Trouble, until_done
from evertide.vocab.clock import Clock
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER

POLL_SECONDS: Final = 0.25
# New replicas have caught up when they are no further behind the old ones than this. Time goes on
# once a second without writes, so a replica may look this late although it is not.
LAG_MS: Final = 2_000
HYDRATION: Final = "mz_hydration_statuses"
FRONTIERS: Final = "mz_cluster_replica_frontiers"

log = structlog.get_logger()

Told: TypeAlias = Mapping[str, Sequence[Facts]]


def reconfigured(snapshot: Snapshot) -> Iterator[tuple[Cluster, Reconfiguration]]:
    """Clusters that are to become something else, and what."""
    for cluster in snapshot.clusters.values():
        if isinstance(cluster.variant, ManagedCluster) and cluster.variant.pending is not None:
            yield cluster, cluster.variant.pending


def verdict(pending: Reconfiguration, *, caught_up: bool, now_ms: int) -> Ending | None:
    """How it shall end; None: wait."""
    if pending.until_ready and caught_up:
        return Ending.COMMITTED
    if now_ms < pending.deadline_ms:
        return None
    return Ending.COMMITTED if pending.on_timeout is OnTimeout.COMMIT else Ending.TIMED_OUT


def is_caught_up(
    snapshot: Snapshot,
    cluster_id: ClusterId,
    hydration: Told,
    frontiers: Told,
    *,
    now_ms: int = EMPTY_FRONTIER,
) -> bool:
    """Whether every new replica has all of the cluster's dataflows, as far as the old ones.

    Those that have nothing to do before some time to come are not waited for.

    Told are, by process, rows of (object, cluster, …) as replicas give them. A new replica that
    does not answer has not caught up; an old one that does not holds nobody back.
    """
    replicas = snapshot.replicas_of(cluster_id)
    new = [process_name(replica) for replica in replicas if replica.pending]
    old = [process_name(replica) for replica in replicas if not replica.pending]
    wanted = set(_dataflows(snapshot, cluster_id, now_ms))
    reached = [_uppers(frontiers.get(process, ()), cluster_id) for process in old]
    for process in new:
        if process not in hydration or process not in frontiers:
            return False
        hydrated = {row[0] for row in hydration[process] if row[1] == cluster_id and row[2]}
        if not wanted <= hydrated:
            return False
        own = _uppers(frontiers[process], cluster_id)
        if any(_is_late(own, other, global_id) for other in reached for global_id in wanted):
            return False
    return True


def _dataflows(snapshot: Snapshot, cluster_id: ClusterId, now_ms: int) -> Iterator[GlobalId]:
    for item in running(snapshot, cluster_id):
        if not _begins_later(item, snapshot, now_ms):
            yield item.global_id


def _begins_later(item: Item, snapshot: Snapshot, now_ms: int) -> bool:
    """Whether it waits for a first refresh, its own or of something that it reads."""
    waiting = [item]
    while waiting:
        one = waiting.pop()
        match one.definition:
            case MaterializedView(refresh=StoredRefresh(), as_of=first) if first > now_ms:
                return True
        waiting.extend(snapshot.stored_inputs(one.reads))
    return False


def _uppers(rows: Sequence[Facts], cluster_id: ClusterId) -> dict[object, float]:
    """How far each dataflow is; what is finished is beyond everything."""
    return {
        row[0]: row[2] if isinstance(row[2], int) else float("inf")
        for row in rows
        if row[1] == cluster_id
    }


def _is_late(own: Mapping[object, float], other: Mapping[object, float], which: GlobalId) -> bool:
    if which not in other:
        return False
    return which not in own or own[which] + LAG_MS < other[which]


class Introspecting(Protocol):
    """Who can ask replicas how far they are."""

    async def introspect(self, snapshot: Snapshot, relation: str, /) -> Told:
        """Rows of the relation by process; silent ones are left out."""
        ...


class _Failing(NamedTuple):
    """A reconfiguration that could not be committed."""

    trouble: Trouble
    fault: str


class ReconfigurationKeeper:
    """One process of a generation runs it."""

    def __init__(self, catalog: CatalogService, compute: Introspecting, clock: Clock) -> None:
        self._catalog = catalog
        self._compute = compute
        self._clock = clock
        # Those that could not be committed, and why: they are rolled back, as soon as that can be
        # done.
        self._failing: dict[tuple[ClusterId, Reconfiguration], _Failing] = {}

    async def run(self) -> None:
        """For ever."""
        while True:
            await self.look()
            await asyncio.sleep(POLL_SECONDS)

    async def look(self) -> None:
        """Once, at all that are under way."""
        snapshot = self._catalog.newest
        found = list(reconfigured(snapshot))
        under_way = {(cluster.cluster_id, pending) for cluster, pending in found}
        self._failing = {key: self._failing[key] for key in self._failing.keys() & under_way}
        hydration: Told = {}
        frontiers: Told = {}
        if any(pending.until_ready for _, pending in found):
            hydration = await self._compute.introspect(snapshot, HYDRATION)
            frontiers = await self._compute.introspect(snapshot, FRONTIERS)
        for cluster, pending in found:
            now_ms = self._clock.now_ms()
            caught_up = is_caught_up(
                snapshot, cluster.cluster_id, hydration, frontiers, now_ms=now_ms
            )
            ending = verdict(pending, caught_up=caught_up, now_ms=now_ms)
            if (cluster.cluster_id, pending) in self._failing:
                await self._roll_back(cluster.cluster_id, pending)
            elif ending is not None:
                await self._end(cluster.cluster_id, pending, ending)

    async def _end(self, cluster_id: ClusterId, pending: Reconfiguration, ending: Ending) -> None:
        """One that the catalog refuses concerns its own cluster, and must end nothing else."""
        try:
            await self._finish(cluster_id, pending, ending)
        except (CatalogFault, SqlError) as fault:
            log.error(
                "a reconfiguration could not be ended as it should, rolling it back",
                cluster=cluster_id,
                reason=str(fault),
            )
            trouble = Trouble(f"rolling back the reconfiguration of cluster {cluster_id}")
            self._failing[cluster_id, pending] = _Failing(trouble, str(fault))
            await self._roll_back(cluster_id, pending)

    async def _roll_back(self, cluster_id: ClusterId, pending: Reconfiguration) -> None:
        """Unless that failed a moment ago; it is forgotten when the catalog has it no more."""
        trouble, fault_of_commit = self._failing[cluster_id, pending]
        if trouble.wait_s > 0:
            return
        try:
            await self._finish(cluster_id, pending, Ending.FAILED, fault_of_commit)
            trouble.over()
        except (CatalogFault, SqlError) as fault:
            trouble.met(fault)

    async def _finish(
        self,
        cluster_id: ClusterId,
        pending: Reconfiguration,
        ending: Ending,
        fault: str | None = None,
    ) -> None:
        op = FinishReconfigurationOp(
            cluster_id=cluster_id, pending=pending, ending=ending, fault=fault
        )
        append = partial(append_ops, self._catalog, self._clock, lambda _: [op])
        if await until_done("finishing a reconfiguration", append):
            log.info("a reconfiguration has ended", cluster=cluster_id, ending=ending.value)
