"""Child processes on this host, kept running."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import structlog

from evertide.cli.config import EXIT_CATALOG, EXIT_FENCED, EXIT_STORE, EXIT_USAGE, Boot
from evertide.cli.process_tree import end_session, pin

# How long a child may take to end by itself before it is killed.
STOP_SECONDS = 4.0
RESTART_SECONDS = 0.5
MAX_RESTART_SECONDS = 10.0
_SWALLOWED_BYTES = 1 << 16

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run, under which name, and with what it must make do."""

    program: str
    name: str
    # None: wherever the system puts it.
    cpus: tuple[int, ...] | None = None
    # Beside what the supervisor was started with.
    environment: Mapping[str, str] = field(default_factory=dict)


class Listener(Protocol):
    """Who is told of a child's life."""

    def fatal(self, code: int) -> None:
        """It ended for a reason that concerns the whole generation."""
        ...

    def started(self, name: str, pid: int) -> None:
        """It runs, and leads the session of this number."""
        ...

    def ready(self, name: str) -> None:
        """It can be asked from now on."""
        ...

    def ended(self, name: str, code: int) -> None:
        """It ended by itself and is started again after a while; a signal is a negative code."""
        ...


class Child:
    """One child process, started again whenever it ends by itself.

    Codes that concern the whole generation (fenced, no store, bad usage, broken catalog) are told
    as fatal instead: starting again would not help.
    """

    def __init__(self, spec: ChildSpec, listener: Listener) -> None:
        self._spec = spec
        self._listener = listener
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
            log.warning("child ended, starting it again", child=self._spec.name, code=code)
            self._listener.ended(self._spec.name, code)
            await asyncio.sleep(wait)
            wait = min(wait * 2, MAX_RESTART_SECONDS)

    async def _guarded_run(self) -> int:
        """A child that cannot even be started is tried again, like one that ended."""
        try:
            return await self._run_once()
        except (OSError, ValueError) as error:
            log.error("child could not be run", child=self._spec.name, reason=str(error))
            return 1

    def _fail(self, code: int) -> None:
        if not self._ready.done():
            self._ready.set_exception(ChildFailed(code))
            self._ready.exception()  # looked at: nobody may be waiting
        self._listener.fatal(code)

    async def _run_once(self) -> int:
        """One life of the child and of all that it started; returns its exit code."""
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"evertide.cli.{self._spec.program}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **self._spec.environment},
            # A session of its own: what it starts, a JVM say, is known by it and ended with it.
            start_new_session=True,
        )
        talking = asyncio.create_task(self._talk(process))
        try:
            log.info("child started", child=self._spec.name, pid=process.pid)
            self._listener.started(self._spec.name, process.pid)
            return await _end_of(process, talking)
        finally:
            await _see_through(self._end_session(process, talking))

    async def _end_session(
        self, process: asyncio.subprocess.Process, talking: asyncio.Task[None]
    ) -> None:
        """However its life went, nothing of it goes on beside the next one."""
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        if process.returncode is None:
            _signal(process, signal.SIGKILL)
            await process.wait()
        left = await asyncio.to_thread(end_session, process.pid)
        if left:
            log.info("ended what a child left behind", child=self._spec.name, processes=left)
        try:
            # The pipe is closed when all of it was read, now that nobody holds its other end.
            await asyncio.wait_for(_swallow(process), STOP_SECONDS)
        except TimeoutError:
            log.warning("a child's pipe is still held", child=self._spec.name)

    async def _talk(self, process: asyncio.subprocess.Process) -> None:
        """Give it its boot line, hear its first words, and swallow all others."""
        assert process.stdin is not None
        assert process.stdout is not None
        if self._spec.cpus is not None:
            pin(process.pid, self._spec.cpus)
        boot = await asyncio.shield(self._boot)  # which is for every later life too
        if self._spec.cpus is not None:
            # Again: its modules may have started threads while it waited for the boot line.
            pin(process.pid, self._spec.cpus)
        process.stdin.write(msgspec.json.encode(boot) + b"\n")
        await process.stdin.drain()
        if line := await process.stdout.readline():
            self._listener.ready(self._spec.name)
            if not self._ready.done():
                self._ready.set_result(line.decode())
        await _swallow(process)

    async def stop(self) -> None:
        """Ask it to end, and after a while make it, with all that it started."""
        self._stopping = True
        process = self._process
        if process is not None and process.returncode is None:
            _signal(process, signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                log.warning("child did not stop in time, killing it", child=self._spec.name)
                _signal(process, signal.SIGKILL)
                await process.wait()
        if self._keeping is not None:
            # However far that life was, its session is ended before this is.
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)


class ChildFailed(Exception):
    """A child ended for good before it was ready."""

    def __init__(self, code: int) -> None:
        super().__init__(f"child process failed with exit code {code}")
        self.code = code


async def _end_of(process: asyncio.subprocess.Process, talking: asyncio.Task[None]) -> int:
    """The exit code, as soon as there is one: what a child started may keep its pipe open much
    longer, so that the end of what it says is not its own."""
    waiting = asyncio.create_task(process.wait())
    try:
        await asyncio.wait((waiting, talking), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            try:
                await talking
            except (BrokenPipeError, ConnectionResetError):
                pass  # it died before it read its boot line; the exit code says why
        return await waiting
    finally:
        waiting.cancel()


async def _swallow(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while await process.stdout.read(_SWALLOWED_BYTES):
        pass


async def _see_through(work: Coroutine[None, None, None]) -> None:
    """A caller who is cancelled waits for the end of it nevertheless."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        pass  # it ended by itself a moment ago
