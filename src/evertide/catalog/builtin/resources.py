"""mz_internal: what replicas take and cost, as a supervisor measures or the audit log says.

The peer's relations have the peer's columns.
"""

from typing import Final

from evertide.catalog.builtin.relation import Builtin, shape

_REPLICA: Final = "replica_id text!, process_id uint8!"
_TAKEN: Final = f"{_REPLICA}, cpu_nano_cores uint8, memory_bytes uint8, disk_bytes uint8"
_PERCENT: Final = (
    f"{_REPLICA}, cpu_percent float8, memory_percent float8, disk_percent float8, "
    "heap_percent float8"
)


def _internal(oid: int, name: str, columns: str) -> Builtin:
    return Builtin(oid=oid, schema="mz_internal", name=name, desc=shape(columns), rows=None)


RESOURCES: Final = (
    _internal(
        16_820,
        "mz_cluster_replica_status_history",
        f"{_REPLICA}, status text!, reason text, occurred_at timestamptz!",
    ),
    _internal(
        16_821, "mz_cluster_replica_metrics", f"{_TAKEN}, heap_bytes uint8, heap_limit uint8"
    ),
    _internal(
        16_822,
        "mz_cluster_replica_metrics_history",
        f"{_TAKEN}, occurred_at timestamptz!, heap_bytes uint8, heap_limit uint8",
    ),
    _internal(16_823, "mz_cluster_replica_utilization", _PERCENT),
    _internal(
        16_824,
        "mz_cluster_replica_utilization_history",
        f"{_PERCENT}, occurred_at timestamptz!",
    ),
    _internal(
        16_825,
        "mz_cluster_cpu_usage",
        "cluster_id text!, cpu_nano_cores uint8!, cpu_percent float8",
    ),
    _internal(
        16_826,
        "mz_cluster_memory_usage",
        "cluster_id text!, memory_bytes uint8!, memory_percent float8",
    ),
    _internal(
        16_827,
        "mz_cluster_usage",
        "cluster_id text!, profile_id text, hour timestamptz!, billed bool!, billed_as text, "
        "replica_hours numeric!, credits numeric",
    ),
    _internal(
        16_828,
        "mz_cluster_replica_history",
        "replica_id text!, size text!, cluster_id text!, cluster_name text!, replica_name text!, "
        "created_at timestamptz!, dropped_at timestamptz, credits_per_hour numeric",
    ),
)
