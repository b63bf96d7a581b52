"""What the supervisor does for replacements that nobody waits for.

That a view is to change, or is changing hands, stands in the catalog. So it goes on after a
restart, and whoever asked for it may have left long ago.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import structlog

from evertide.catalog.faults import CatalogFault
from evertide.catalog.objects import Item
from evertide.catalog.ops import Op
from evertide.catalog.replacement_ops import (
    ApplyReplacementOp,
    FinishHandoverOp,
    GiveUpApplyOp,
    NoteHydratedOp,
)
from evertide.catalog.replacements import may_apply_itself
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.append import Deciding
from evertide.controller.readiness import (
    Readiness,
    handing_over,
    hindrance,
    sealed_message,
    staged,
    target_of,
)
from evertide.persist.faults import ShardMissing
from evertide.persist.trouble import PASSING, Trouble
from evertide.sql.plan.replacements.texts import applied_text
from evertide.vocab.errors import ObjectNotInPrerequisiteState, SqlError
from evertide.vocab.ids import ItemId

POLL_SECONDS: Final = 0.25

log = structlog.get_logger()

# One transaction of the system's own, with what it does to shards; whether it changed anything.
Append: TypeAlias = Callable[[Deciding], Awaitable[bool]]


def applying_ops(replacement: Item, snapshot: Snapshot, *, forward_time: bool) -> list[Op]:
    """The replacement's definition becomes its target's.

    It was hydrated, though that may have come to pass after the last look and not be noted.
    """
    target = target_of(replacement, snapshot)
    apply = ApplyReplacementOp(
        item_id=target.item_id,
        replacement_id=replacement.item_id,
        create_sql=applied_text(target, replacement, snapshot),
        forward_time=forward_time,
    )
    return [NoteHydratedOp(replacement_id=replacement.item_id), apply]


class ReplacementKeeper:
    """One process of a generation runs it."""

    def __init__(self, catalog: CatalogService, readiness: Readiness, append: Append) -> None:
        self._catalog = catalog
        self._readiness = readiness
        self._append = append

    async def run(self) -> None:
        """For ever."""
        trouble = Trouble("looking after replacements")
        while True:
            try:
                await self.look()
                trouble.over()
            except PASSING as fault:
                trouble.met(fault)
            await asyncio.sleep(max(POLL_SECONDS, trouble.wait_s))

    async def look(self) -> None:
        """Once, at all that are staged or changing hands."""
        snapshot = self._catalog.newest
        for item in handing_over(snapshot):
            await self._finish(item, snapshot)
        found = [one for one in staged(snapshot) if _is_due(one)]
        if not found:
            return
        progress = await self._readiness.progress(found, snapshot)
        for one in found:
            assert one.replacement is not None, "it is staged"
            if progress[one.item_id].hydrated and not one.replacement.hydrated:
                await self._note_hydrated(one)
            if one.replacement.apply_when_ready:
                await self._apply_if_ready(one, snapshot)

    async def _finish(self, item: Item, snapshot: Snapshot) -> None:
        try:
            taken = await self._readiness.taken(item, snapshot)
        except ShardMissing:
            return  # it was dropped a moment ago
        if taken is None:
            return
        # What the catalog says next is for reads that do not see the old contents any more.
        await self._readiness.let_reads_reach(taken)
        op = FinishHandoverOp(item_id=item.item_id, global_id=item.global_id)
        if await self._append(lambda _: [op]):
            log.info("a view has changed hands", item=item.item_id, version=item.global_id)

    async def _note_hydrated(self, replacement: Item) -> None:
        op = NoteHydratedOp(replacement_id=replacement.item_id)
        if await self._append(lambda _: [op]):
            log.info("a replacement is hydrated", item=replacement.item_id)

    async def _apply_if_ready(self, replacement: Item, snapshot: Snapshot) -> None:
        assert replacement.replacement is not None, "it is staged"
        forward_time = replacement.replacement.forward_time
        if hindrance(replacement, snapshot, forward_time=forward_time) is not None:
            return
        try:
            target = target_of(replacement, snapshot)
            if await self._readiness.is_sealed(target, snapshot):
                await self._refuse(replacement, sealed_message(target))
                return
            waits = await self._readiness.waits_for(
                replacement, snapshot, forward_time=forward_time
            )
            if waits is None and await self._append(_applying(replacement.item_id)):
                log.info("a replacement was applied", item=replacement.item_id)
        except ShardMissing:
            return  # its target was dropped a moment ago
        except (CatalogFault, SqlError) as fault:
            await self._refuse(replacement, str(fault))

    async def _refuse(self, replacement: Item, reason: str) -> None:
        """It stays staged, for somebody to look at."""
        log.error("a replacement cannot be applied", item=replacement.item_id, reason=reason)
        op = GiveUpApplyOp(replacement_id=replacement.item_id, reason=reason)
        await self._append(lambda _: [op])


def _is_due(item: Item) -> bool:
    replacement = item.replacement
    return replacement is not None and (replacement.apply_when_ready or not replacement.hydrated)


def _not_his(replacement: Item, snapshot: Snapshot) -> str:
    target = target_of(replacement, snapshot)
    return (
        f"the owner of replacement {replacement.name} does not own materialized view {target.name}"
    )


def _applying(replacement_id: ItemId) -> Deciding:
    """Decided on each snapshot anew: it may be gone, or no longer to be applied by itself."""

    def decide(snapshot: Snapshot) -> list[Op]:
        found = snapshot.items.get(replacement_id)
        if found is None or found.replacement is None or not found.replacement.apply_when_ready:
            return []
        if not may_apply_itself(found, snapshot):
            raise ObjectNotInPrerequisiteState(_not_his(found, snapshot))
        return applying_ops(found, snapshot, forward_time=found.replacement.forward_time)

    return decide
