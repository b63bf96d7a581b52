"""What replicas take and cost, as rows: measured by the supervisor, or derived from the audit log.

An adapter that cannot ask the supervisor, because it runs on another host, has no measurements to
show; it never waits long for them.
"""

import asyncio
from collections.abc import Iterator, Sequence
from decimal import Decimal

from evertide.adapter.environment import Environment
from evertide.catalog.objects import ClusterReplica
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import Facts
from evertide.controller.orchestrator import (
    process_name,
    replica_ids_of,
    replicas_of_process,
)
from evertide.controller.sizes import Size
from evertide.controller.statuses import OFFLINE, ONLINE, STARTING
from evertide.controller.usage import replica_history_rows, usage_rows
from evertide.vocab.datum import Datum, Row, reduce_numeric
from evertide.vocab.ids import ClusterId, ReplicaId

_NANO = 1_000_000_000


async def resource_rows(relation: str, env: Environment, snapshot: Snapshot) -> Sequence[Row]:
    """The rows of one of these relations; none of one that is not among them."""
    match relation:
        case "mz_cluster_replica_sizes":
            return _sizes(env)
        case "mz_cluster_usage" | "mz_cluster_replica_history":
            # On a thread: there is a row for every hour since the first replica came.
            events = await env.catalog.audit_events(snapshot.catalog_ts)
            rate = env.sizes.credits_per_hour
            if relation == "mz_cluster_usage":
                return await asyncio.to_thread(usage_rows, events, rate, env.clock.now_ms())
            return await asyncio.to_thread(replica_history_rows, events, rate)
        case "mz_cluster_replica_statuses":
            return await _statuses(env, snapshot)
        case "mz_cluster_replica_status_history":
            told = await env.compute.told_by_supervisor(relation) or ()
            return list(_by_replica(told, snapshot))
        case _ if relation.startswith("mz_cluster_"):
            return await _measured(relation, env, snapshot)
        case _:
            return []


def _sizes(env: Environment) -> list[Row]:
    """(size, processes, workers of each, nano cores, bytes, bytes of disk, credits per hour)."""
    return [
        (
            name,
            size.partitions,
            max(1, size.cores // size.partitions),
            size.cores * _NANO,
            size.total_mb << 20,
            None,
            reduce_numeric(size.credits_per_hour or Decimal(0)),
        )
        for name, size in env.sizes.listed()
    ]


async def _statuses(env: Environment, snapshot: Snapshot) -> list[Row]:
    """(replica, process, status, reason, since when) of every replica."""
    told = await env.compute.told_by_supervisor("mz_cluster_replica_statuses")
    if told is None:
        return await _seen_statuses(env, snapshot)
    known = {row[0]: row[1:] for row in told}
    unknown = (OFFLINE, STARTING, env.clock.now_ms() * 1_000)
    return [
        (replica.replica_id, 0, *known.get(process_name(replica), unknown))
        for replica in snapshot.replicas.values()
    ]


async def _seen_statuses(env: Environment, snapshot: Snapshot) -> list[Row]:
    """Without a supervisor to ask: online is whose process answers."""
    now_us = env.clock.now_ms() * 1_000
    rows: list[Row] = []
    for replica in snapshot.replicas.values():
        online = await env.compute.answers(process_name(replica))
        rows.append((replica.replica_id, 0, ONLINE if online else OFFLINE, None, now_us))
    return rows


def _by_replica(told: Sequence[Facts], snapshot: Snapshot) -> Iterator[Row]:
    """Rows that begin with a process become rows of each replica that it runs."""
    for process, *rest in told:
        for replica_id in replica_ids_of(str(process), snapshot):
            yield (replica_id, 0, *rest)


async def _measured(relation: str, env: Environment, snapshot: Snapshot) -> list[Row]:
    """Supervisors tell (process, nano cores, bytes, when); the size says how much that is."""
    asked = "mz_cluster_replica_metrics" + ("_history" if relation.endswith("_history") else "")
    told = await env.compute.told_by_supervisor(asked) or ()
    match relation:
        case "mz_cluster_cpu_usage":
            return list(_of_clusters(told, env, snapshot, column=1))
        case "mz_cluster_memory_usage":
            return list(_of_clusters(told, env, snapshot, column=2))
        case "mz_cluster_replica_metrics" | "mz_cluster_replica_metrics_history":
            return [_metrics(row, env, snapshot, when="history" in relation)
                    for row in _by_replica(told, snapshot)]  # fmt: skip
        case "mz_cluster_replica_utilization" | "mz_cluster_replica_utilization_history":
            return [_utilization(row, env, snapshot, when="history" in relation)
                    for row in _by_replica(told, snapshot)]  # fmt: skip
        case _:
            return []


def _metrics(row: Row, env: Environment, snapshot: Snapshot, *, when: bool) -> Row:
    replica_id, process_id, nano_cores, memory_bytes, at_us = row
    size = _size(snapshot.replicas.get(ReplicaId(str(replica_id))), env)
    limit = None if size is None or not size.is_limited else size.total_mb << 20
    taken = (replica_id, process_id, nano_cores, memory_bytes, None)
    return (*taken, *((at_us,) if when else ()), memory_bytes, limit)


def _utilization(row: Row, env: Environment, snapshot: Snapshot, *, when: bool) -> Row:
    replica_id, process_id, nano_cores, memory_bytes, at_us = row
    size = _size(snapshot.replicas.get(ReplicaId(str(replica_id))), env)
    memory = _percent(memory_bytes, _limits(size)[1])
    shares = (_percent(nano_cores, _limits(size)[0]), memory, None, memory)
    return (replica_id, process_id, *shares, *((at_us,) if when else ()))


def _of_clusters(
    told: Sequence[Facts], env: Environment, snapshot: Snapshot, *, column: int
) -> Iterator[Row]:
    """What each cluster's replicas take together. Virtual clusters share what the pool takes."""
    taken: dict[ClusterId, int] = {}
    limits: dict[ClusterId, int | None] = {}
    for row in told:
        amount = row[column]
        assert isinstance(amount, int), "what is measured is counted"
        for replica in replicas_of_process(str(row[0]), snapshot):
            cluster_id = replica.cluster_id
            taken[cluster_id] = taken.get(cluster_id, 0) + amount
            limit, before = _limits(_size(replica, env))[column - 1], limits.get(cluster_id, 0)
            limits[cluster_id] = None if limit is None or before is None else before + limit
    for cluster_id, amount in taken.items():
        yield cluster_id, amount, _percent(amount, limits[cluster_id])


def _size(replica: ClusterReplica | None, env: Environment) -> Size | None:
    return None if replica is None or replica.size is None else env.sizes.find(replica.size)


def _limits(size: Size | None) -> tuple[int | None, int | None]:
    """Nano cores and bytes; None: nothing here limits them."""
    if size is None or not size.is_limited:
        return None, None
    return size.cores * _NANO, size.total_mb << 20


def _percent(amount: Datum, limit: int | None) -> float | None:
    return None if limit is None or not isinstance(amount, int) else 100.0 * amount / limit
