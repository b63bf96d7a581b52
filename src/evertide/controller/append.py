"""What the system changes in the catalog by itself, for no statement."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from evertide.catalog.ops import Op
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.persist.handle import Appended
from evertide.vocab.clock import Clock

# What is to be done, seen from a snapshot; nothing if somebody else did it.
Deciding: TypeAlias = Callable[[Snapshot], Sequence[Op]]


async def append_ops(catalog: CatalogService, clock: Clock, decide: Deciding) -> bool:
    """One transaction; decided anew when somebody else was first. Whether there was anything."""
    while True:
        snapshot = await catalog.current()
        ops = decide(snapshot)
        if not ops:
            return False
        updates = transact(snapshot, ops, now_ms=clock.now_ms(), user=None).updates
        if not updates:
            return False
        outcome = await catalog.compare_and_append(updates, expected_upper=snapshot.upper)
        if isinstance(outcome, Appended):
            return True
