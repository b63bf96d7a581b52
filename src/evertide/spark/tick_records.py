"""What ticks did, for mz_internal.mz_tick_records."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from evertide.dataflow.description import DataflowDescription
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# The word of tick records for what is computed as a whole.
RECOMPUTE = "recompute"
KEPT_TICK_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class TickRecord:
    """What one tick of one dataflow did."""

    object_id: GlobalId
    cluster_id: ClusterId
    started_at_us: int
    rows_in: int
    rows_out: int
    executor: str
    duration_ms: float
    upper: Timestamp


def tick_record(
    described: DataflowDescription,
    executor: str,
    started: float,
    rows_in: int,
    output: Sequence[Update],
    upper: Timestamp,
) -> TickRecord:
    """Of a tick that began at `started` by the performance counter and ends now."""
    elapsed_ms = (time.perf_counter() - started) * 1_000
    return TickRecord(
        described.global_id,
        described.cluster_id,
        time.time_ns() // 1_000 - int(elapsed_ms * 1_000),
        rows_in,
        len(output),
        executor,
        elapsed_ms,
        upper,
    )
