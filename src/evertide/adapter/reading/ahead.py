"""A view's newest changes, told by its replica before its shard has them.

A view is a function of its inputs, so what a replica computed from durable inputs is right whether
or not it is stored already, as an index is. Waiting for the store would cost a reader who has just
written half as much again (docs/adr/2026-11-16-views-are-read-before-they-are-stored.md).

Unless another definition may have taken the view over by then: the replica might compute by one
that is not in force at that timestamp. A new definition begins beyond every timestamp that could be
read when the catalog switched to it. So once a timestamp can be read, a look at the catalog tells
whether the definition holds there (docs/adr/2026-11-16-how-a-view-changes-hands.md).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from evertide.adapter.environment import Environment
from evertide.adapter.reading.asking import Ahead, ask, settled, told
from evertide.adapter.reading.metrics import count_read_ahead
from evertide.catalog.snapshot import Snapshot
from evertide.dataflow.description import Import
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timeline, Timestamp

# A replica that has not answered by then may be dead or far behind: the shard is watched as well.
_PATIENCE_S: Final = 0.05


async def changes(
    ahead: Ahead, env: Environment, as_of: Timestamp
) -> Sequence[tuple[Row, int]] | None:
    """What was asked for, as rows that come and go; None: the shard itself has it.

    Errors are left to the shard as well: they are rare, and nobody hurries for them.
    """
    if not await _in_force(ahead, env, as_of):
        return None
    found, waiting = await ahead.first_told(_PATIENCE_S)
    if found is None and waiting:
        stored = asyncio.create_task(env.storage.wait_for_upper(ahead.view, as_of))
        try:
            while found is None and waiting and not stored.done():
                both: set[asyncio.Future[Any]] = {stored, *waiting}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                found, waiting = told(waiting)
            if found is None:
                await stored
        finally:
            stored.cancel()
    rows = None if found is None else ahead.rows(found)
    count_read_ahead(by_replica=rows is not None)
    return rows


async def _in_force(ahead: Ahead, env: Environment, as_of: Timestamp) -> bool:
    """Whether the definition holds at as_of, which is looked at while the replicas compute.

    In this order: the catalog must not have switched after as_of could be read.
    """
    if as_of > await env.oracle.read_ts(Timeline.EPOCH_MS):
        return False
    item = (await env.catalog.current()).items.get(ahead.item.item_id)
    return item is not None and item.global_id == ahead.item.global_id and settled(item)


@dataclass(frozen=True, slots=True)
class Early:
    """A timestamp at which a view is readable, and what its replicas were asked for before the rest
    of its read was worked out.

    They compute meanwhile, and have mostly answered when somebody wants to know.
    """

    as_of: Timestamp
    # None: nothing needs to be asked for.
    ahead: Ahead | None


async def look_early(
    view: Import, snapshot: Snapshot, env: Environment, as_of: Timestamp
) -> Early | None:
    """Ask for what a read at as_of, which is known to the oracle, is likely to need; None where
    the view is no longer readable there."""
    look = await env.storage.look([view])
    if look.state(view).since > as_of:
        return None
    return Early(as_of, ask(view, snapshot, env.compute, look, as_of))


async def look_ahead(
    view: Import, snapshot: Snapshot, env: Environment, as_of: Timestamp
) -> Ahead | None:
    """Ask the view's replicas for what its shard lacks; None where there is nothing to ask for."""
    if await env.storage.following.noted_upper(view) > as_of:
        return None
    look = await env.storage.look([view])
    return ask(view, snapshot, env.compute, look, as_of)
