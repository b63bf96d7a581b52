"""Child processes on this host, kept running."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping

import msgspec
import structlog

from evertide.cli.config import EXIT_CATALOG, EXIT_FENCED, EXIT_STORE, EXIT_USAGE, Boot
from evertide.controller.orchestrator import ProcessSpec

# How long a child may take to end by itself before it is killed.
STOP_SECONDS = 4.0
RESTART_SECONDS = 0.5
MAX_RESTART_SECONDS = 10.0

log = structlog.get_logger()


class Child:
    """One child process, started again whenever it ends by itself.

    Codes that concern the whole generation (fenced, no store, bad usage, broken catalog) are handed
    to `on_fatal` instead: starting again would not help.
    """

    def __init__(self, program: str, name: str, on_fatal: Callable[[int], None]) -> None:
        self._program = program
        self._name = name
        self._on_fatal = on_fatal
        self._boot: asyncio.Future[Boot] = asyncio.get_running_loop().create_future()
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._stopping = False

    def start(self) -> None:
        """Run it from now on. It loads its modules and then waits for its boot line."""
        self._keeping = asyncio.create_task(self._keep())

    def boot(self, boot: Boot) -> None:
        """Tell it, or once it runs every later incarnation of it, what it is part of."""
        if self._boot.done():
            self._boot = asyncio.get_running_loop().create_future()
        self._boot.set_result(boot)

    async def ready(self) -> str:
        """The first line that the child printed."""
        return await self._ready

    async def _keep(self) -> None:
        wait = RESTART_SECONDS
        while not self._stopping:
            started_s = time.monotonic()
            code = await self._guarded_run()
            if time.monotonic() - started_s > MAX_RESTART_SECONDS:
                wait = RESTART_SECONDS  # it had been well
            if self._stopping:
                return
            if code in (EXIT_FENCED, EXIT_STORE, EXIT_USAGE, EXIT_CATALOG):
                self._fail(code)
                return
            log.warning("child ended, starting it again", child=self._name, code=code)
            await asyncio.sleep(wait)
            wait = min(wait * 2, MAX_RESTART_SECONDS)

    async def _guarded_run(self) -> int:
        """A child that cannot even be started is tried again, like one that ended."""
        try:
            return await self._run_once()
        except (OSError, ValueError) as error:
            log.error("child could not be run", child=self._name, reason=str(error))
            return 1

    def _fail(self, code: int) -> None:
        if not self._ready.done():
            self._ready.set_exception(ChildFailed(code))
            self._ready.exception()  # looked at: nobody may be waiting
        self._on_fatal(code)

    async def _run_once(self) -> int:
        """One life of the child; returns its exit code."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"evertide.cli.{self._program}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # A group of its own: what it started, a JVM say, can be ended with it.
            start_new_session=True,
        )
        log.info("child started", child=self._name, pid=self._process.pid)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(await self._boot) + b"\n")
            await self._process.stdin.drain()
            while line := await self._process.stdout.readline():
                if not self._ready.done():
                    self._ready.set_result(line.decode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # it died before it read its boot line; the exit code says why
        return await self._process.wait()

    async def stop(self) -> None:
        """Ask it to end, and after a while make it."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            _signal(self._process, signal.SIGTERM)
            try:
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
            except TimeoutError:
                log.warning("child did not stop in time, killing it", child=self._name)
                _kill_group(self._process.pid)
                await self._process.wait()
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)


class ChildFailed(Exception):
    """A child ended for good before it was ready."""

    def __init__(self, code: int) -> None:
        super().__init__(f"child process failed with exit code {code}")
        self.code = code


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        pass  # it ended by itself a moment ago


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of it ended a moment ago


class LocalOrchestrator:
    """Replica processes as children of the supervisor; implements controller's Orchestrator."""

    def __init__(self, boot: Boot, on_fatal: Callable[[int], None]) -> None:
        self._boot = boot
        self._on_fatal = on_fatal
        self._children: dict[str, Child] = {}

    async def ensure(self, wanted: Mapping[str, ProcessSpec]) -> None:
        """Stop what is not wanted any more, start what is new."""
        for name in [n for n in self._children if n not in wanted]:
            await self._children.pop(name).stop()
        for name, spec in wanted.items():
            if name not in self._children:
                child = self._children[name] = Child("replica", name, self._on_fatal)
                child.start()
                child.boot(msgspec.structs.replace(self._boot, process=name, size=spec.size))

    async def stop(self) -> None:
        await asyncio.gather(*(child.stop() for child in self._children.values()))
