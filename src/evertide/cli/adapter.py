"""The adapter process: ends client connections. Any number run at once over one environment."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import uvloop

from evertide.adapter.connection import Connections
from evertide.adapter.environment import Environment
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.catalog.faults import CatalogFault
from evertide.cli.child import (
    AddressInUse,
    end_of,
    parent_gone,
    run_child,
    start_logging,
    until_stopped,
)
from evertide.cli.config import (
    Address,
    Boot,
    Config,
    ReadyLine,
    UsageError,
    is_postgres,
    parse_address,
    without_password,
)
from evertide.cli.open_files import allow_open_files
from evertide.cli.runtime import find_runtime, find_sizes, make_runtime, remove_runtime
from evertide.cli.security import tls_context
from evertide.cli.sizes import size_table
from evertide.cli.stores import (
    Opened,
    check_exists,
    environment_id,
    join_generation,
    notifying,
    open_store,
)
from evertide.controller.compute import ComputeClient
from evertide.persist.faults import PersistFault
from evertide.pgwire.http import HttpServer
from evertide.pgwire.server import PgServer
from evertide.vocab.ids import EnvironmentId, Epoch
from evertide.vocab.timestamp import Timeline

_BIND_ATTEMPTS = 100
_READY_TIMEOUT_S = 2


class AdapterProcess:
    """Everything one adapter runs, from stores to sockets."""

    def __init__(self, boot: Boot, opened: Opened) -> None:
        self._boot = boot
        self._opened = opened
        self._env = _environment(boot, opened)
        self._fault: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._ready = False
        self._sessions = Connections(self._env, self._on_fault)
        security = boot.config.security
        self._server = PgServer(tls=tls_context(security), passwords=security.passwords)
        self._http = HttpServer(self._why_not_ready)

    def _on_fault(self, fault: PersistFault) -> None:
        """A fault seen by any session ends the process: its exit code says which."""
        if not self._fault.done():
            self._fault.set_result(fault)

    async def _why_not_ready(self) -> str | None:
        """Ready is who can answer a query: that takes the oracle, and with it the store."""
        if not self._ready:
            return "starting"
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                await self._env.oracle.read_ts(Timeline.EPOCH_MS)
        except PersistFault as fault:
            return str(fault)
        except TimeoutError:
            return f"the store has not answered for {_READY_TIMEOUT_S} s"
        return None

    async def start(self) -> ReadyLine:
        """Listen on this adapter's addresses."""
        sql, http, internal = self._addresses()
        line = ReadyLine(
            await self._listen(sql, internal=False),
            await _bound(lambda: self._http.start(http.host, http.port)),
            await self._listen(internal, internal=True),
        )
        self._ready = True
        return line

    def _addresses(self) -> tuple[Address, Address, Address]:
        """SQL, HTTP and internal SQL: those of an earlier incarnation, or as the flags say."""
        config, known = self._boot.config, self._boot.listen
        remote = config.security.may_be_remote
        if known is not None:
            return (
                parse_address(known.sql, remote=remote),
                parse_address(known.http),
                parse_address(known.internal),
            )
        http, internal = (
            parse_address(text).shifted(self._boot.index)
            for text in (config.http_addr, config.internal_sql_addr)
        )
        sql = parse_address(config.sql_addr, remote=remote).shifted(self._boot.index)
        return sql, http, internal

    async def _listen(self, address: Address, *, internal: bool) -> str:
        return await _bound(
            lambda: self._server.start(address.host, address.port, self._sessions, internal)
        )

    async def run(self, *, watch_parent: bool) -> int:
        """Serve until told to stop."""
        watched = [self._env.writes.run(), self._fault, self._opened.catalog.wait_failed()]
        if watch_parent:
            watched.append(parent_gone())
        return await until_stopped(*watched)

    async def stop(self) -> None:
        """Close sockets first, so that nobody is answered half."""
        await self._server.stop()
        await self._http.stop()
        self._env.compute.close()
        await self._opened.close()


def _environment(boot: Boot, opened: Opened) -> Environment:
    writes = GroupCommit(opened.txns, opened.committer(), opened.clock)
    return Environment(
        EnvironmentId(boot.environment_id),
        opened.catalog,
        opened.oracle,
        opened.storage,
        opened.txns,
        writes,
        ComputeClient(Path(boot.runtime)),
        opened.clock,
        boot.config.experimental,
        size_table(boot.config.sizes),
        sink_directory=boot.config.sink_dir,
    )


async def _bound(bind: Callable[[], Awaitable[tuple[str, int]]]) -> str:
    """Bind, waiting for a fenced predecessor to let go of the port."""
    for _ in range(_BIND_ATTEMPTS):
        try:
            return "{}:{}".format(*await bind())
        except OSError as error:
            failure = error
            await asyncio.sleep(0.1)
    raise AddressInUse(str(failure)) from failure


async def serve_adapter(boot: Boot, *, watch_parent: bool = True) -> int:
    """One adapter from boot to exit code."""
    allow_open_files()
    runtime = Path(boot.runtime)
    cache = runtime / f"cache-adapter-{boot.index if watch_parent else os.getpid()}"
    async with notifying(boot.config, runtime) as notifier:
        opened = await join_generation(boot, cache, notifier, by_hand=not watch_parent)
        process = AdapterProcess(boot, opened)
        try:
            line = await process.start()
            if watch_parent:
                print(msgspec.json.encode(line).decode(), flush=True)
            else:
                print(
                    f"evertide ready sql={line.sql} http={line.http} internal={line.internal}",
                    flush=True,
                )
            return await process.run(watch_parent=watch_parent)
        finally:
            await process.stop()


def join(config: Config) -> int:
    """`evertide adapter --join`: one more adapter for a generation that is running."""
    start_logging("adapter")
    try:
        return uvloop.run(_join(config))
    except (PersistFault, CatalogFault) as fault:
        return end_of(fault)


async def _join(config: Config) -> int:
    """Without a runtime directory on this host, indexes are out of reach and shards are read."""
    await check_exists(config)
    store = await open_store(config.consensus)
    try:
        oracle_epoch = await _oracle_epoch(config)
        epoch = await store.current_epoch()
        environment = await environment_id(config, store)
        runtime = await find_runtime(store, config.consensus)
        config = msgspec.structs.replace(config, sizes=await find_sizes(store))
    finally:
        await store.close()
    if epoch == 0 or (runtime is None and not is_postgres(config.consensus)):
        raise UsageError(
            f"no running environment at {config.data or without_password(config.consensus)}:"
            " start one with evertide serve"
        )
    own = make_runtime(config.consensus) if runtime is None else None
    try:
        return await serve_adapter(
            Boot(
                config=config,
                epoch=epoch,
                oracle_epoch=epoch if oracle_epoch is None else oracle_epoch,
                environment_id=environment,
                runtime=str(runtime or own),
            ),
            watch_parent=False,
        )
    finally:
        if own is not None:
            remove_runtime(own)


async def _oracle_epoch(config: Config) -> Epoch | None:
    """That of a separate oracle store. Asked for first, as it is raised first."""
    if config.oracle == config.consensus:
        return None
    store = await open_store(config.oracle)
    try:
        return await store.current_epoch()
    finally:
        await store.close()


if __name__ == "__main__":
    uvloop.install()
    sys.exit(run_child("adapter", serve_adapter))
