"""What the supervisor opens and keeps beside its adapters: stores, catalog, replicas, sweepers.

A module of its own because it loads most of the program, and adapters load the same meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from evertide.cli.child import until_stopped
from evertide.cli.config import Boot, Config
from evertide.cli.replicas import ReplicaKeeper
from evertide.cli.runtime import announce_runtime, announce_sizes, find_runtime, remove_runtime
from evertide.cli.stores import Opened, notifying, open_generation
from evertide.controller.storage_usage import StorageUsageKeeper
from evertide.persist.faults import PersistFault
from evertide.persist.push.notify import Notifier

# A store that does not answer is not waited for: the end is taken for a kill then.
_END_S = 3.0


class Generation:
    """One generation: open for as long as nobody opens another one."""

    def __init__(self, config: Config, opened: Opened, runtime: Path) -> None:
        self._opened = opened
        # What every process of it is told.
        self.boot = Boot(
            config=config,
            epoch=opened.generation.epoch,
            oracle_epoch=opened.generation.oracle_epoch,
            environment_id=opened.generation.environment,
            runtime=str(runtime),
        )
        self._replicas: ReplicaKeeper | None = None

    async def start(self, fatal: Callable[[int], None]) -> None:
        """Start the replicas that the catalog asks for."""
        self._replicas = ReplicaKeeper(self.boot, self._opened, fatal)
        await self._replicas.start()

    async def run(self, failed: "asyncio.Future[int]", stopped: asyncio.Event) -> int:
        """Keep everything running until stopped, fenced or without store, or a child has failed."""
        assert self._replicas is not None, "started before it runs"
        opened = self._opened
        return await until_stopped(
            *self._replicas.parts(),
            asyncio.shield(failed),
            opened.sweeper().run(),
            opened.secret_sweeper().run(),
            opened.stores.ownership.run(),
            StorageUsageKeeper(opened.catalog, opened.persist, opened.clock).run(),
            opened.catalog.wait_failed(),
            stopped=stopped,
        )

    async def stop(self) -> None:
        """End the replicas."""
        if self._replicas is not None:
            await self._replicas.stop()


@asynccontextmanager
async def opened_generation(config: Config, runtime: Path) -> AsyncIterator[Generation]:
    """Open one, which fences the one before."""
    async with notifying(config, runtime) as notifier:
        opened = await _open(config, runtime, notifier)
        try:
            yield Generation(config, opened, runtime)
            await _end(opened)
        finally:
            await opened.close()


async def _end(opened: Opened) -> None:
    """Say that it was an end, once no child writes any more."""
    with suppress(PersistFault, TimeoutError):
        async with asyncio.timeout(_END_S):
            await opened.stores.ownership.end()


async def _open(config: Config, runtime: Path, notifier: Notifier) -> Opened:
    """From then on this is the one that others join."""
    opened = await open_generation(config, runtime / "cache-supervisor", notifier)
    store = opened.stores.consensus
    left_behind = await find_runtime(store, config.consensus)
    await announce_runtime(store, opened.generation.epoch, runtime)
    await announce_sizes(store, opened.generation.epoch, config.sizes)
    if left_behind is not None:
        # Its generation is fenced now, or was killed: nobody needs its sockets any more.
        remove_runtime(left_behind)
    return opened
