"""Ends profiles whose time is over, so that lent capacity cannot be forgotten."""

import asyncio
from functools import partial
from typing import Final

import structlog

from evertide.catalog.ops import DropClusterProfileOp
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.append import append_ops
from evertide.persist.trouble import until_done
from evertide.vocab.clock import Clock

POLL_SECONDS: Final = 0.5
# What the audit log says of why a profile and its replicas went.
EXPIRED: Final = "expired"

log = structlog.get_logger()


def expired(snapshot: Snapshot, now_ms: int) -> list[DropClusterProfileOp]:
    """The end of every profile whose time is over, its replicas with it."""
    return [
        DropClusterProfileOp(profile.profile_id, cascade=True, reason=EXPIRED)
        for profile in snapshot.profiles.values()
        if profile.expires_at_ms is not None and profile.expires_at_ms <= now_ms
    ]


class ExpiryKeeper:
    """One process of a generation runs it."""

    def __init__(self, catalog: CatalogService, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock

    async def run(self) -> None:
        """For ever."""
        while True:
            if expired(self._catalog.newest, self._clock.now_ms()):
                await until_done("ending profiles", self.end)
            await asyncio.sleep(POLL_SECONDS)

    async def end(self) -> None:
        """Drop them, in one transaction."""
        decide = partial(expired, now_ms=self._clock.now_ms())
        if await append_ops(self._catalog, self._clock, decide):
            log.info("a profile has expired")
