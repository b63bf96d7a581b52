"""ALTER MATERIALIZED VIEW ... APPLY REPLACEMENT: the waits around its two transactions.

First until the replacement has caught up; then, with the new definition in the catalog, until it
has the view's shard. What the catalog says goes on without whoever asked for it.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from evertide.adapter.client import CommandResponse
from evertide.adapter.ddl.append import append_with_shards
from evertide.adapter.ddl.entry import run_ddl
from evertide.adapter.ddl.staging import target_upper
from evertide.adapter.environment import Environment
from evertide.adapter.see_through import raise_late_cancel
from evertide.adapter.session import Session
from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.replacement_ops import FinishHandoverOp
from evertide.catalog.snapshot import Snapshot
from evertide.controller.readiness import EMPTY_TARGET, Readiness, hindrance
from evertide.persist.faults import ShardMissing
from evertide.sql.plan.plans import DdlPlan
from evertide.sql.plan.replacements.apply import TAG
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.vocab.errors import Notice, ObjectNotInPrerequisiteState
from evertide.vocab.timestamp import Timestamp

POLL_SECONDS: Final = 0.05
_GOES_ON: Final = "the replacement has been applied, and the view changes hands without you"


async def run_apply(
    plan: ApplyReplacementPlan,
    plan_again: Callable[[Snapshot], DdlPlan],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> CommandResponse:
    """Returns once every later read sees the new definition."""
    applying = _Applying(plan, env, snapshot)
    ready = await applying.wait_until_ready(snapshot)
    if ready is not None:
        await run_ddl(partial(applying.planned, plan_again), session, env, ready)
    try:
        raise_late_cancel()
        await applying.wait_until_taken()
    except asyncio.CancelledError:
        session.notices.append(Notice("WARNING", "01000", _GOES_ON))
        raise
    return CommandResponse(TAG)


def _refuse_idle(target: Item, snapshot: Snapshot) -> None:
    """A target that has no contents, and nobody to compute them, is not worth replacing."""
    assert target.cluster_id is not None, "a materialized view runs in a cluster"
    if not snapshot.replicas_of(target.cluster_id):
        raise ObjectNotInPrerequisiteState(
            f'materialized view "{target.name}" has never been hydrated, and its cluster has no'
            " replicas",
            hint="Drop it, and create it anew.",
        )


class _Applying:
    """One statement. Names may come to mean others while it waits: it goes by ids."""

    def __init__(self, plan: ApplyReplacementPlan, env: Environment, snapshot: Snapshot) -> None:
        self._plan = plan
        self._env = env
        self._readiness = Readiness(env.storage, env.compute, env.oracle)
        self._target = snapshot.items[plan.item_id]
        self._replacement = snapshot.items[plan.replacement_id]

    async def wait_until_ready(self, snapshot: Snapshot) -> Snapshot | None:
        """The snapshot in which it may be applied; None: somebody else has applied it."""
        while True:
            replacement = self._staged(snapshot)
            if replacement is None:
                return None
            await self._refuse_hindered(replacement, snapshot)
            try:
                waits = await self._readiness.waits_for(
                    replacement, snapshot, forward_time=self._plan.forward_time
                )
                if waits is None:
                    return snapshot
                if waits == EMPTY_TARGET:
                    _refuse_idle(snapshot.items[self._plan.item_id], snapshot)
            except ShardMissing:
                pass  # the target was dropped: the next snapshot says so
            await asyncio.sleep(POLL_SECONDS)
            snapshot = await self._env.catalog.current()

    def planned(self, plan_again: Callable[[Snapshot], DdlPlan], snapshot: Snapshot) -> DdlPlan:
        """The plan against a newer snapshot, if it still is about the same two views."""
        if self._staged(snapshot) is None:
            raise self._gone("applied by another statement")
        plan = plan_again(snapshot)
        assert isinstance(plan, ApplyReplacementPlan), "the same statement"
        ids = (plan.item_id, plan.replacement_id)
        if ids != (self._plan.item_id, self._plan.replacement_id):
            raise self._gone("renamed")
        return plan

    def _staged(self, snapshot: Snapshot) -> Item | None:
        """The replacement as it is now; None: it has been applied."""
        target = snapshot.items.get(self._plan.item_id)
        if target is None:
            raise ObjectNotInPrerequisiteState(
                f'materialized view "{self._target.name}" was dropped while its replacement'
                " waited to be applied"
            )
        found = snapshot.items.get(self._plan.replacement_id)
        if found is not None:
            return found
        if self._replacement.global_id in [one.global_id for one in target.versions]:
            return None
        raise self._gone("dropped")

    def _gone(self, what: str) -> ObjectNotInPrerequisiteState:
        return ObjectNotInPrerequisiteState(
            f'replacement materialized view "{self._replacement.name}" was {what} while it waited'
            " to be applied"
        )

    async def _refuse_hindered(self, replacement: Item, snapshot: Snapshot) -> None:
        """What waiting does not mend is told at once."""
        found = hindrance(replacement, snapshot, forward_time=self._plan.forward_time)
        if found is not None:
            raise ObjectNotInPrerequisiteState(
                f'cannot apply replacement "{replacement.name}": {found.message}', hint=found.hint
            )
        try:
            await target_upper(snapshot.items[self._plan.item_id], self._env, snapshot)
        except ShardMissing:
            pass  # dropped: the next snapshot says so

    async def wait_until_taken(self) -> None:
        """Until the new definition has the shard, and reads are at a time at which it has."""
        while True:
            snapshot = await self._env.catalog.current()
            item = snapshot.items.get(self._plan.item_id)
            if item is None:
                raise ObjectNotInPrerequisiteState(
                    f'materialized view "{self._target.name}" was dropped while its replacement'
                    " was being applied"
                )
            try:
                taken = await self._readiness.taken(item, snapshot)
            except ShardMissing:
                taken = None
            if taken is not None:
                await self._finish(item, taken)
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _finish(self, item: Item, upper: Timestamp) -> None:
        await self._readiness.let_reads_reach(upper)
        if isinstance(item.definition, MaterializedView) and item.definition.handing_over:
            op = FinishHandoverOp(item_id=item.item_id, global_id=item.global_id)
            await append_with_shards(self._env.catalog, self._env.clock, lambda _: [op])
