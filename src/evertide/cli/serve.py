"""The supervisor: opens a generation and keeps its processes running.

It answers no client and computes nothing. It raises the epoch, runs the hub that carries
notifications, starts adapters and replicas, and follows the catalog to know which replicas. Its
children end with it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog
import uvloop

from evertide.catalog.faults import CatalogFault
from evertide.cli.child import (
    end_of,
    start_logging,
    stop_signals,
    unless_stopped,
    until_stopped,
)
from evertide.cli.config import EXIT_OK, Boot, Config, ReadyLine, UsageError, is_postgres
from evertide.cli.processes import Child, ChildFailed, ChildSpec
from evertide.cli.replicas import ReplicaKeeper
from evertide.cli.runtime import (
    announce_runtime,
    announce_sizes,
    find_runtime,
    make_runtime,
    remove_runtime,
)
from evertide.cli.stores import HUB_SOCKET, Opened, notifying, open_generation
from evertide.controller.storage_usage import StorageUsageKeeper
from evertide.persist.faults import PersistFault
from evertide.persist.push.hub import HubServer
from evertide.persist.push.notify import Notifier

log = structlog.get_logger()


class Supervisor:
    """One generation's processes.

    Adapters are started before the generation is open: loading their modules takes longer than
    opening it, so the two run side by side.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        # A child that ends with a code that concerns the whole generation ends the supervisor.
        self._fatal: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._adapters = [
            Child(ChildSpec("adapter", f"adapter-{i}"), self) for i in range(config.adapters)
        ]
        self._replicas: ReplicaKeeper | None = None
        for adapter in self._adapters:
            adapter.start()

    def fatal(self, code: int) -> None:
        """A child met what concerns all."""
        if not self._fatal.done():
            self._fatal.set_result(code)

    def started(self, name: str, pid: int) -> None:
        """Adapters are not watched: they are limited by nothing."""

    def ready(self, name: str) -> None:
        """Their first words are waited for elsewhere."""

    def ended(self, name: str, code: int) -> None:
        """They are started again; clients see that by themselves."""

    async def start(self, opened: Opened, runtime: Path) -> list[ReadyLine]:
        """Tell the adapters about the generation; returns where they answer."""
        boot = Boot(
            config=self._config,
            epoch=opened.generation.epoch,
            oracle_epoch=opened.generation.oracle_epoch,
            environment_id=opened.generation.environment,
            runtime=str(runtime),
        )
        self._replicas = ReplicaKeeper(boot, opened, self.fatal)
        await self._replicas.start()
        for index, adapter in enumerate(self._adapters):
            adapter.boot(msgspec.structs.replace(boot, index=index))
        texts = await asyncio.gather(*(adapter.ready() for adapter in self._adapters))
        lines = [msgspec.json.decode(text, type=ReadyLine) for text in texts]
        for index, (adapter, line) in enumerate(zip(self._adapters, lines, strict=True)):
            adapter.boot(msgspec.structs.replace(boot, index=index, listen=line))
        return lines

    async def run(self, opened: Opened, stopped: asyncio.Event) -> int:
        """Keep everything running until stopped, fenced or without store."""
        assert self._replicas is not None, "started before it runs"
        code = await until_stopped(
            *self._replicas.parts(),
            self._wait_fatal(),
            opened.sweeper().run(),
            opened.secret_sweeper().run(),
            StorageUsageKeeper(opened.catalog, opened.persist, opened.clock).run(),
            opened.catalog.wait_failed(),
            stopped=stopped,
        )
        return self._fatal.result() if self._fatal.done() else code

    async def _wait_fatal(self) -> None:
        await asyncio.shield(self._fatal)

    async def stop(self) -> None:
        """End the children, clients' sockets first."""
        await asyncio.gather(*(adapter.stop() for adapter in self._adapters))
        if self._replicas is not None:
            await self._replicas.stop()


def ready_text(lines: list[ReadyLine]) -> str:
    """The one line that says clients are answered, and where."""
    sql, http, internal = (
        ",".join(getattr(line, name) for line in lines) for name in ("sql", "http", "internal")
    )
    return f"evertide ready sql={sql} http={http} internal={internal}"


async def _serve(config: Config) -> int:
    stopped = stop_signals()
    runtime = make_runtime(config.consensus)
    supervisor = Supervisor(config)
    try:
        async with _hub(config, runtime), notifying(config, runtime) as notifier:
            opened = await _open(config, runtime, notifier)
            try:
                lines = await unless_stopped(stopped, supervisor.start(opened, runtime))
                if lines is None:
                    return EXIT_OK
                print(ready_text(lines), flush=True)
                return await supervisor.run(opened, stopped)
            finally:
                await supervisor.stop()
                await opened.close()
    except ChildFailed as failed:
        return failed.code
    finally:
        await supervisor.stop()
        remove_runtime(runtime)


async def _open(config: Config, runtime: Path, notifier: Notifier) -> Opened:
    """Open the generation; from then on this is the one that others join."""
    opened = await open_generation(config, runtime / "cache-supervisor", notifier)
    store = opened.stores.consensus
    left_behind = await find_runtime(store, config.consensus)
    await announce_runtime(store, opened.generation.epoch, runtime)
    await announce_sizes(store, opened.generation.epoch, config.sizes)
    if left_behind is not None:
        # Its generation is fenced now, or was killed: nobody needs its sockets any more.
        remove_runtime(left_behind)
    return opened


@asynccontextmanager
async def _hub(config: Config, runtime: Path) -> AsyncIterator[None]:
    """The hub of this generation; PostgreSQL carries notifications by itself."""
    if is_postgres(config.consensus):
        yield
        return
    hub = HubServer(runtime / HUB_SOCKET)
    await hub.start()
    try:
        yield
    finally:
        await hub.close()


def run(config: Config) -> int:
    """`evertide serve`: until SIGTERM, Ctrl-C, or another generation takes over."""
    start_logging("supervisor")
    if config.data is not None:
        try:
            Path(config.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--data {config.data} cannot be used: {error.strerror}") from error
    try:
        return uvloop.run(_serve(config))
    except (PersistFault, CatalogFault) as fault:
        return end_of(fault)
