"""Ends what was dropped for good, once nobody may bring it back any more."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import structlog

from evertide.catalog.dropped_ops import PurgeDroppedOp
from evertide.catalog.grace import expired
from evertide.catalog.ops import Op
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.append import Deciding
from evertide.persist.trouble import until_done
from evertide.vocab.clock import Clock

POLL_SECONDS: Final = 0.5

log = structlog.get_logger()

# One transaction of the system's own, with what it does to shards; whether it changed anything.
Append: TypeAlias = Callable[[Deciding], Awaitable[bool]]


class DropKeeper:
    """One process of a generation runs it."""

    def __init__(self, catalog: CatalogService, clock: Clock, append: Append) -> None:
        self._catalog = catalog
        self._clock = clock
        self._append = append

    async def run(self) -> None:
        """For ever."""
        while True:
            if self._decide(self._catalog.newest):
                await until_done("ending what was dropped", self.end)
            await asyncio.sleep(POLL_SECONDS)

    async def end(self) -> None:
        """Stop keeping all that is over, in one transaction."""
        if await self._append(self._decide):
            log.info("dropped items are gone for good")

    def _decide(self, snapshot: Snapshot) -> list[Op]:
        found = expired(snapshot, self._clock.now_ms())
        return [PurgeDroppedOp(tuple(one.item_id for one in found))] if found else []
