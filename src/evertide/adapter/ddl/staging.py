"""Where a replacement begins: at the write frontier of its target, if its inputs reach back so far.

A view's history has contents at every readable time, so the new definition must be computed from
where the old one ends. Where an input's history has been merged beyond that, the replacement begins
later, and the target must come there before it is replaced.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from evertide.adapter.environment import Environment
from evertide.catalog.objects import Item
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.readiness import sealed, sealed_message
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.sql.plan.plans import CreateMaterializedViewPlan, DdlPlan
from evertide.vocab.errors import ObjectNotInPrerequisiteState
from evertide.vocab.timestamp import Timestamp, step_back

# How long a view may take to change hands before the next replacement is refused.
SETTLE_SECONDS: Final = 10.0


def replacement_as_of(
    *, read_ts: Timestamp, target_upper: Timestamp, sinces: Sequence[Timestamp]
) -> Timestamp:
    """Just below what the target has yet to write, never in the future, and where all that is read
    is exact: its inputs, and the target itself, from which the difference is taken."""
    return max([min(read_ts, step_back(target_upper)), *sinces])


async def settled(plan: DdlPlan, catalog: CatalogService, snapshot: Snapshot) -> bool:
    """Whether what is to be replaced is free for it; waits a while if it changes hands already."""
    if not isinstance(plan, CreateMaterializedViewPlan) or plan.replacement is None:
        return True
    target = snapshot.items.get(plan.replacement.target)
    if target is None or target.outgoing is None:
        return True
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            while target is not None and target.outgoing is not None:
                snapshot = await catalog.snapshot_at(snapshot.upper)
                target = snapshot.items.get(plan.replacement.target)
    except TimeoutError:
        assert target is not None, "it was waited for"
        raise _unsettled(target, snapshot) from None
    return False


def _unsettled(target: Item, snapshot: Snapshot) -> ObjectNotInPrerequisiteState:
    """The old definition must still bring the view to the time of the change."""
    before = target.outgoing
    assert before is not None, "it is handing over"
    assert before.cluster_id is not None, "a materialized view runs in a cluster"
    cluster = snapshot.clusters[before.cluster_id].name
    return ObjectNotInPrerequisiteState(
        f'materialized view "{target.name}" is still being handed over to its last replacement',
        detail=f'Its earlier definition, in cluster "{cluster}", has not come to the time of the'
        " change.",
        hint=f'See that cluster "{cluster}" has a replica which keeps up, and try again.',
    )


def stored_target(target: Item, snapshot: Snapshot) -> Import:
    """The collection that a replacement is to continue."""
    collection = collection_of(target, snapshot)
    assert collection is not None, "a view that is no replacement is stored"
    return collection


async def target_upper(target: Item, env: Environment, snapshot: Snapshot) -> Timestamp:
    """How far the target is. One that is finished has no time left at which it could change."""
    collection = stored_target(target, snapshot)
    upper = await env.storage.upper(collection)
    if sealed(collection, upper):
        raise ObjectNotInPrerequisiteState(
            sealed_message(target),
            detail="Nothing that it reads can change any more.",
            hint="Use CREATE OR REPLACE MATERIALIZED VIEW, or drop it and create it anew.",
        )
    return upper
