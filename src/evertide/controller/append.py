"""What the system changes in the catalog by itself, for no statement."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import structlog

from evertide.catalog.ops import Op
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult, transact
from evertide.persist.handle import Appended
from evertide.persist.state import ShardChange, UpperMismatch
from evertide.vocab.clock import Clock

# What is to be done, seen from a snapshot; nothing if somebody else did it.
Deciding: TypeAlias = Callable[[Snapshot], Sequence[Op]]
# What a transaction decided on a snapshot does to shards.
ShardsOf: TypeAlias = Callable[[TransactResult, Snapshot], Sequence[ShardChange]]

log = structlog.get_logger()


def _no_shards(_result: TransactResult, _snapshot: Snapshot) -> Sequence[ShardChange]:
    return ()


async def append_ops(
    catalog: CatalogService, clock: Clock, decide: Deciding, shards: ShardsOf = _no_shards
) -> bool:
    """One transaction; decided anew when somebody else was first. Whether it changed anything.

    A shard that is not as the catalog says keeps it from happening: whoever asks looks again later.
    """
    while True:
        snapshot = await catalog.current()
        ops = decide(snapshot)
        if not ops:
            return False
        result = transact(snapshot, ops, now_ms=clock.now_ms(), user=None)
        if not result.updates:
            return False
        outcome = await catalog.compare_and_append(
            result.updates,
            expected_upper=snapshot.upper,
            shard_changes=shards(result, snapshot),
        )
        match outcome:
            case Appended():
                return True
            case UpperMismatch():
                continue
            case refused:
                log.warning("a shard refused what the catalog wants", reason=str(refused))
                return False
