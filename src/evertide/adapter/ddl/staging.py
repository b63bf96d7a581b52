"""Where a replacement begins: at the write frontier of its target, if its inputs reach back so far.

A view's history has contents at every readable time, so the new definition must be computed from
where the old one ends. Where an input's history has been merged beyond that, the replacement begins
later, and the target must come there before it is replaced.
"""

from collections.abc import Sequence

from evertide.adapter.environment import Environment
from evertide.catalog.objects import Item
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.sql.plan.plans import CreateMaterializedViewPlan, DdlPlan
from evertide.vocab.errors import ObjectNotInPrerequisiteState
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_back


def replacement_as_of(
    *, read_ts: Timestamp, target_upper: Timestamp, sinces: Sequence[Timestamp]
) -> Timestamp:
    """Just below what the target has yet to write, never in the future, and where all that is read
    is exact: its inputs, and the target itself, from which the difference is taken."""
    return max([min(read_ts, step_back(target_upper)), *sinces])


async def settled(plan: DdlPlan, catalog: CatalogService, snapshot: Snapshot) -> bool:
    """Whether what is to be replaced is free for it; waits while it changes hands already."""
    if not isinstance(plan, CreateMaterializedViewPlan) or plan.replacement is None:
        return True
    target_id, free = plan.replacement.target, True
    while (target := snapshot.items.get(target_id)) is not None and target.outgoing is not None:
        free = False
        snapshot = await catalog.snapshot_at(snapshot.upper)
    return free


def cannot_change(collection: Import) -> bool:
    """Whether it follows from nothing that changes: then it is finished, or will be in a moment."""
    derived = collection.derived
    if derived is None or derived.by_time:
        return False
    return all(cannot_change(below) for below in derived.inputs)


def stored_target(target: Item, snapshot: Snapshot) -> Import:
    """The collection that a replacement is to continue."""
    collection = collection_of(target, snapshot)
    assert collection is not None, "a view that is no replacement is stored"
    return collection


async def target_upper(target: Item, env: Environment, snapshot: Snapshot) -> Timestamp:
    """How far the target is. One that is finished has no time left at which it could change."""
    collection = stored_target(target, snapshot)
    upper = await env.storage.upper(collection)
    if upper == EMPTY_FRONTIER or cannot_change(collection):
        raise ObjectNotInPrerequisiteState(
            f"materialized view {target.name} is sealed and thus cannot be replaced",
            detail="Nothing that it reads can change any more.",
            hint="Use CREATE OR REPLACE MATERIALIZED VIEW, or drop it and create it anew.",
        )
    return upper
