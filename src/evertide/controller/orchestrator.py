"""Keeps the replica processes that the catalog asks for, no more and no fewer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from evertide.catalog.objects import ClusterReplica, Introspection
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import ClusterId, ReplicaId

# All virtual clusters share this process.
POOL = "pool"
# Tells what becomes of the others, on a socket like theirs.
SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One replica process: which clusters' dataflows it runs and at which size."""

    name: str
    cluster_ids: tuple[ClusterId, ...]
    size: str | None  # None: the pool, which promises no isolation
    introspection: Introspection | None = None  # None: the pool, which is watched as is usual


def process_name(replica: ClusterReplica) -> str:
    """The process that runs a replica. Ids, not names: a name can be given again."""
    if replica.size is None:
        return POOL
    return f"replica-{replica.cluster_id}-{replica.replica_id}"


def replicas_of_process(name: str, snapshot: Snapshot) -> list[ClusterReplica]:
    """The replicas that the process of this name runs: several where it is the pool."""
    return [r for r in snapshot.replicas.values() if process_name(r) == name]


def replica_ids_of(name: str, snapshot: Snapshot) -> list[ReplicaId]:
    """The same by id, of processes too whose replica is gone; a pool that is gone had none."""
    if name == POOL:
        return [replica.replica_id for replica in replicas_of_process(name, snapshot)]
    return [ReplicaId(name.rpartition("-")[2])]


def wanted_processes(snapshot: Snapshot) -> dict[str, ProcessSpec]:
    """Every process that must run for this catalog, by name."""
    specs = {}
    virtual = tuple(sorted(c.cluster_id for c in snapshot.clusters.values() if c.is_virtual))
    if virtual:
        specs[POOL] = ProcessSpec(POOL, virtual, None)
    for replica in snapshot.replicas.values():
        if replica.size is not None:
            name = process_name(replica)
            own = (replica.cluster_id,)
            specs[name] = ProcessSpec(name, own, replica.size, replica.introspection)
    return specs


def clusters_of(name: str, snapshot: Snapshot) -> tuple[ClusterId, ...]:
    """The clusters that the process of this name runs; none once it is not wanted any more."""
    spec = wanted_processes(snapshot).get(name)
    return () if spec is None else spec.cluster_ids


class Orchestrator(Protocol):
    """Starts and stops processes: on this host, or wherever an implementation reaches."""

    def ensure(self, wanted: Mapping[str, ProcessSpec]) -> None:
        """Run exactly these from now on; one that ends by itself is started again.

        Waits for nothing: one that is slow to end keeps no other from starting.
        """
        ...

    async def stop(self) -> None:
        """End all of them."""
        ...
