"""The supervisor: opens a generation and keeps its processes running.

It answers no client and computes nothing. It raises the epoch, runs the hub that carries
notifications, starts adapters and replicas, and follows the catalog to know which replicas. Its
children end with it.

Clients wait for modules to be loaded, above all: so adapters are started first, and what this
process itself needs (generation) is loaded while they load theirs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec
import structlog
import uvloop

from evertide.catalog.faults import CatalogFault
from evertide.cli.child import end_of, start_logging, stop_signals, unless_stopped
from evertide.cli.config import EXIT_OK, Boot, Config, ReadyLine, UsageError, is_postgres
from evertide.cli.processes import Child, ChildFailed, ChildSpec
from evertide.cli.runtime import HUB_SOCKET, make_runtime, remove_runtime
from evertide.persist.faults import PersistFault
from evertide.persist.push.hub import HubServer

log = structlog.get_logger()


class Kept(Protocol):
    """What a generation has beside its adapters; generation.py has it."""

    boot: Boot

    async def start(self, fatal: Callable[[int], None]) -> None: ...

    async def run(self, failed: "asyncio.Future[int]", stopped: asyncio.Event) -> int: ...

    async def stop(self) -> None: ...


class Supervisor:
    """One generation's processes."""

    def __init__(self, config: Config) -> None:
        # A child that ends with a code that concerns the whole generation ends the supervisor.
        self._fatal: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._adapters = [
            Child(ChildSpec("adapter", f"adapter-{i}"), self) for i in range(config.adapters)
        ]
        self._kept: Kept | None = None
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

    async def start(self, kept: Kept) -> list[ReadyLine]:
        """Tell the adapters about the generation; returns where they answer."""
        self._kept, boot = kept, kept.boot
        await kept.start(self.fatal)
        for index, adapter in enumerate(self._adapters):
            adapter.boot(msgspec.structs.replace(boot, index=index))
        texts = await asyncio.gather(*(adapter.ready() for adapter in self._adapters))
        lines = [msgspec.json.decode(text, type=ReadyLine) for text in texts]
        for index, (adapter, line) in enumerate(zip(self._adapters, lines, strict=True)):
            adapter.boot(msgspec.structs.replace(boot, index=index, listen=line))
        return lines

    async def run(self, kept: Kept, stopped: asyncio.Event) -> int:
        """Keep everything running until stopped, fenced or without store."""
        code = await kept.run(self._fatal, stopped)
        return self._fatal.result() if self._fatal.done() else code

    async def stop(self) -> None:
        """End the children, clients' sockets first."""
        await asyncio.gather(*(adapter.stop() for adapter in self._adapters))
        if self._kept is not None:
            await self._kept.stop()


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
        generation = await asyncio.to_thread(import_module, "evertide.cli.generation")
        async with _hub(config, runtime), generation.opened_generation(config, runtime) as kept:
            try:
                lines = await unless_stopped(stopped, supervisor.start(kept))
                if lines is None:
                    return EXIT_OK
                print(ready_text(lines), flush=True)
                return await supervisor.run(kept, stopped)
            finally:
                await supervisor.stop()
    except ChildFailed as failed:
        return failed.code
    finally:
        await supervisor.stop()
        remove_runtime(runtime)


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
