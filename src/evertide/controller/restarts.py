"""Replicas that ended by themselves, noted in the audit log.

One that ends again and again is noted at once, then once a minute with how often that was: the log
is read by every opener.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from evertide.catalog.ops import RecordReplicaRestartOp
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.append import append_ops
from evertide.controller.orchestrator import replicas_of_process
from evertide.persist.trouble import until_done
from evertide.vocab.clock import Clock

AGAIN_SECONDS: Final = 60.0


class RestartKeeper:
    """Takes notes from the loop that restarts; appends them to the catalog."""

    def __init__(
        self, catalog: CatalogService, clock: Clock, again_s: float = AGAIN_SECONDS
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._again_s = again_s
        # By process: why it ended last, and how often since that was noted.
        self._waiting: dict[str, tuple[str, int]] = {}
        self._noted_at_s: dict[str, float] = {}
        self._came = asyncio.Event()

    def ended(self, process: str, reason: str) -> None:
        """A process ended by itself, and is started again."""
        _, count = self._waiting.get(process, ("", 0))
        self._waiting[process] = (reason, count + 1)
        self._came.set()

    def forget(self, process: str) -> None:
        """It is not wanted any more."""
        self._waiting.pop(process, None)
        self._noted_at_s.pop(process, None)

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._came.wait()
            self._came.clear()
            now_s = asyncio.get_running_loop().time()
            due_s = {p: self._due_s(p, now_s) for p in self._waiting}
            due = {p: self._waiting.pop(p) for p, at_s in due_s.items() if at_s <= now_s}
            if due:
                self._noted_at_s.update(dict.fromkeys(due, now_s))
                await until_done("noting restarts", partial(self.note, due))
            if self._waiting:
                later_s = [at_s for p, at_s in due_s.items() if p not in due]
                # One that ended meanwhile is looked at right away.
                await self._wait_until(min(later_s, default=now_s))

    def _due_s(self, process: str, now_s: float) -> float:
        noted_at_s = self._noted_at_s.get(process)
        return now_s if noted_at_s is None else noted_at_s + self._again_s

    async def _wait_until(self, due_s: float) -> None:
        """Or until another process ends."""
        try:
            async with asyncio.timeout_at(due_s):
                await self._came.wait()
        except TimeoutError:
            self._came.set()

    async def note(self, ended: Mapping[str, tuple[str, int]]) -> None:
        """One transaction for all."""
        await append_ops(self._catalog, self._clock, partial(_ops, ended))


def _ops(ended: Mapping[str, tuple[str, int]], snapshot: Snapshot) -> list[RecordReplicaRestartOp]:
    """One for each replica that ran there; one that was dropped meanwhile needs none."""
    return [
        RecordReplicaRestartOp(
            replica_id=replica.replica_id,
            reason=reason if count == 1 else f"{reason}, {count} times",
        )
        for process, (reason, count) in ended.items()
        for replica in replicas_of_process(process, snapshot)
    ]
