"""A replica's bulk process: started by need, kept for some minutes, and no loss if it dies.

A job whose process dies is run once more with no other beside it: what was somebody else's fault
then succeeds. One that brings the process down alone needs more memory than there is, and is
refused; the resident task, in another application, has noticed nothing.
"""

import asyncio
import itertools
import shutil
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import structlog

from evertide.dataflow.channel import Channel
from evertide.spark.bulk.protocol import (
    BuildJob,
    BulkEvent,
    CancelJob,
    Cause,
    DoneEvent,
    FailedEvent,
    Job,
    ProgressEvent,
    SelectJob,
    StartedEvent,
)
from evertide.spark.bulk.serve import start_command
from evertide.spark.conf import SessionSettings
from evertide.spark.watch import JobFailed, JobStarved
from evertide.vocab.errors import DiskFull, OutOfMemory

# Without a job for so long the process ends: it holds some hundred megabytes.
IDLE_S: Final = 300.0
_LOOK_S: Final = 5.0
# How long a process may take to end by itself.
_STOP_S: Final = 8.0
# Jobs of a kind that run at once; others wait, so that short queries pass long builds.
_SELECTS: Final = 6
_BUILDS: Final = 2

_LARGER: Final = "Ask for less at once, or use a cluster of a larger size."

Launch: TypeAlias = Callable[[socket.socket], Awaitable[asyncio.subprocess.Process]]
MakeJob: TypeAlias = Callable[[int, str], Job]
OnNode: TypeAlias = Callable[[int], None]

log = structlog.get_logger()


class BulkLost(Exception):
    """The bulk process ended, and its jobs with it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a job left, for as long as the context lasts that gave it."""

    directory: Path
    done: DoneEvent


@dataclass(slots=True)
class _Waiting:
    """Who waits for a job."""

    done: "asyncio.Future[DoneEvent]"
    on_node: OnNode


class _Incarnation:
    """One life of the process, with a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.jobs: dict[int, _Waiting] = {}
        self.channel: Channel[BulkEvent] | None = None
        self.ended = False
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, settings: SessionSettings, launch: Launch) -> None:
        """Raises JobFailed."""
        await asyncio.to_thread(self.directory.mkdir, 0o700, True, True)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await launch(theirs)
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(BulkEvent))
        await channel.send(start_command(replace(settings, directory=self.directory / "spark")))
        if not isinstance(await channel.receive(), StartedEvent):
            channel.close()
            self.ended = True
            raise JobFailed(f"bulk work cannot start: its process ended{await self._why()}")
        self.channel = channel
        self._reading = asyncio.create_task(self._read(channel))

    async def _read(self, channel: Channel[BulkEvent]) -> None:
        while (event := await channel.receive()) is not None:
            match event:
                case DoneEvent(job_id=job_id):
                    self._settle(job_id, event)
                case FailedEvent(job_id=job_id):
                    self._settle(job_id, _failure(event))
                case ProgressEvent(job_id=job_id, nodes_done=nodes_done):
                    if job_id in self.jobs:
                        self.jobs[job_id].on_node(nodes_done)
                case StartedEvent():
                    pass
        self.ended = True
        channel.close()
        why = await self._why()
        for job_id in list(self.jobs):
            self._settle(job_id, BulkLost(f"the process of bulk work ended{why}"))

    def _settle(self, job_id: int, outcome: DoneEvent | Exception) -> None:
        waiting = self.jobs.get(job_id)
        if waiting is None or waiting.done.done():
            return
        if isinstance(outcome, DoneEvent):
            waiting.done.set_result(outcome)
        else:
            waiting.done.set_exception(outcome)

    async def run(self, job: Job, on_node: OnNode) -> DoneEvent:
        """Raises BulkLost, JobFailed."""
        if self.channel is None or self.ended:
            raise BulkLost("the process of bulk work has ended")
        done: asyncio.Future[DoneEvent] = asyncio.get_running_loop().create_future()
        self.jobs[job.job_id] = _Waiting(done, on_node)
        try:
            self.channel.send_soon(job)
            return await done
        except ConnectionError as error:
            raise BulkLost("the process of bulk work has ended") from error
        finally:
            del self.jobs[job.job_id]
            if not done.done() or done.cancelled():
                self._cancel(job.job_id)

    def _cancel(self, job_id: int) -> None:
        if self.channel is not None and not self.ended:
            try:
                self.channel.send_soon(CancelJob(job_id))
            except ConnectionError:
                pass

    async def stop(self) -> None:
        """End the process, and remove what it left."""
        self.ended = True
        if self.channel is not None:
            self.channel.close()
        process = self._process
        if process is not None and process.returncode is None:
            try:
                await asyncio.wait_for(process.wait(), _STOP_S)
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._reading is not None:
            await self._reading
        await asyncio.to_thread(shutil.rmtree, self.directory, ignore_errors=True)

    async def _why(self) -> str:
        process = self._process
        if process is None:
            return ""
        try:
            code = await asyncio.wait_for(process.wait(), 1.0)
        except TimeoutError:
            return ""
        return f" with code {code}"


class BulkHost:
    """Runs bulk jobs of one replica; all calls from its event loop."""

    def __init__(self, settings: SessionSettings, launch: Launch) -> None:
        self._settings = settings
        self._launch = launch
        self._numbers = itertools.count(1)
        self._incarnation: _Incarnation | None = None
        self._starting = asyncio.Lock()
        self._turns = _Turns()
        self._room = {
            SelectJob: asyncio.Semaphore(_SELECTS),
            BuildJob: asyncio.Semaphore(_BUILDS),
        }
        self._used = time.monotonic()

    @asynccontextmanager
    async def finished(
        self, kind: type[Job], make: MakeJob, on_node: OnNode = lambda _: None
    ) -> AsyncIterator[Finished]:
        """Run a job, made for an id and a directory, and keep what it left within the context.

        Raises JobFailed; JobStarved, which is one, where it was refused.
        """
        async with self._room[kind]:
            try:
                async with self._turns.shared():
                    finished = await self._run(make, on_node)
            except BulkLost as lost:
                log.warning("bulk work is tried again alone", reason=str(lost))
                async with self._turns.alone():
                    finished = await self._run_alone(make, on_node)
        try:
            yield finished
        finally:
            self._used = time.monotonic()
            await asyncio.to_thread(shutil.rmtree, finished.directory, ignore_errors=True)

    async def _run_alone(self, make: MakeJob, on_node: OnNode) -> Finished:
        try:
            return await self._run(make, on_node)
        except BulkLost as lost:
            raise self._too_large(str(lost)) from lost

    async def _run(self, make: MakeJob, on_node: OnNode) -> Finished:
        incarnation = await self._running()
        job_id = next(self._numbers)
        directory = incarnation.directory / f"job-{job_id}"
        await asyncio.to_thread(directory.mkdir, 0o700)
        try:
            done = await incarnation.run(make(job_id, str(directory)), on_node)
        except BaseException:
            # A worker that was cancelled may write for a while: only into what is gone by then.
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
            raise
        finally:
            self._used = time.monotonic()
        return Finished(directory, done)

    def _too_large(self, reason: str) -> JobStarved:
        return JobStarved(
            OutOfMemory(
                f"bulk work needs more memory than the {self._settings.memory_mb} MB it has here"
                f" ({reason})",
                hint=_LARGER,
            )
        )

    async def _running(self) -> _Incarnation:
        async with self._starting:
            current = self._incarnation
            if current is not None and not current.ended:
                return current
            if current is not None:
                self._incarnation = None
                await current.stop()
            directory = self._settings.directory / f"bulk-{next(self._numbers)}"
            started = time.monotonic()
            incarnation = _Incarnation(directory)
            try:
                await incarnation.start(self._settings, self._launch)
            except BaseException:
                await incarnation.stop()
                raise
            log.info("bulk work has started", seconds=round(time.monotonic() - started, 1))
            self._incarnation = incarnation
            return incarnation

    async def run(self) -> None:
        """End the process whenever it was idle for long, for ever."""
        while True:
            await asyncio.sleep(_LOOK_S)
            current = self._incarnation
            if current is None or current.jobs or self._starting.locked():
                continue
            if current.ended or time.monotonic() - self._used > IDLE_S:
                self._incarnation = None
                await current.stop()

    async def stop(self) -> None:
        if self._incarnation is not None:
            await self._incarnation.stop()
            self._incarnation = None


class _Turns:
    """A shared-exclusive lock; who wants to be alone goes before who comes later."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._shared = 0
        self._alone = 0
        self._exclusive = asyncio.Lock()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._alone)
            self._shared += 1
        try:
            yield
        finally:
            async with self._changed:
                self._shared -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        self._alone += 1
        try:
            async with self._exclusive:
                async with self._changed:
                    await self._changed.wait_for(lambda: not self._shared)
                yield
        finally:
            async with self._changed:
                self._alone -= 1
                self._changed.notify_all()


def _failure(event: FailedEvent) -> JobFailed:
    match event.cause:
        case Cause.MEMORY:
            why = f"bulk work needs more memory than it has here: {event.reason}"
            return JobStarved(OutOfMemory(why, hint=_LARGER))
        case Cause.DISK:
            return JobStarved(DiskFull(f"bulk work finds no room on the disk: {event.reason}"))
        case Cause.CANCELLED | Cause.OTHER:
            return JobFailed(event.reason)
