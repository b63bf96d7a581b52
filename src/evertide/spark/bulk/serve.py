"""The bulk process's own loop: one Spark application, jobs on threads, an event for each."""

import asyncio
import re
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from socket import socket
from typing import Final, assert_never

import msgspec
import structlog

from evertide.dataflow.channel import Channel
from evertide.spark.bulk.jobs import run_build, run_select
from evertide.spark.bulk.protocol import (
    BuildJob,
    BulkCommand,
    BulkEvent,
    CancelJob,
    Cause,
    DoneEvent,
    FailedEvent,
    Job,
    ProgressEvent,
    SelectJob,
    StartCommand,
    StartedEvent,
)
from evertide.spark.conf import SessionSettings
from evertide.spark.jobs import SparkJobs
from evertide.spark.session import gateway_process, start_session, stop_session
from evertide.spark.watch import JobCancelled

_STOP_S: Final = 5.0
# So often, and so far apart, a JVM is looked at after a job has failed.
_LOOKS: Final = 10
_LOOK_S: Final = 0.05
# The replica runs fewer at once; each has a thread that waits for Spark.
_THREADS: Final = 16
# Of a reason that Spark gave, as much as one reads.
_REASON_CHARACTERS: Final = 600

_DISK: Final = re.compile(r"No space left on device|ENOSPC|Disk quota exceeded")
_MEMORY: Final = re.compile(
    r"OutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|Unable to acquire \d+ bytes|MemoryError"
    r"|Cannot grow BufferHolder|bigger than spark\.driver\.maxResultSize|ArrowMemory"
)
_ROOT: Final = re.compile(r"^Caused by: (.+)$", re.MULTILINE)

log = structlog.get_logger()


async def serve_bulk(connection: socket) -> None:
    """Start the application that the replica asks for and run its jobs until it hangs up."""
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    channel = Channel(reader, writer, msgspec.msgpack.Decoder(BulkCommand))
    start = await channel.receive()
    if not isinstance(start, StartCommand):
        return
    session = await asyncio.to_thread(start_session, settings_of(start))
    jobs = SparkJobs(session, Path(start.directory) / "jobs", bulk_workers=start.workers)
    await channel.send(StartedEvent())
    jvm = gateway_process(session)
    assert jvm is not None, "this process has started it"
    serving = asyncio.create_task(_Serving(channel, jobs, jvm).run())
    dying = asyncio.create_task(_until_dead(jvm))
    await asyncio.wait([serving, dying], return_when=asyncio.FIRST_COMPLETED)
    channel.close()
    if not dying.done():
        await asyncio.to_thread(stop_session, session, _STOP_S)


def start_command(settings: SessionSettings) -> StartCommand:
    """The application's settings as a message."""
    secret_file = settings.secret_file
    return StartCommand(
        str(settings.directory),
        settings.workers,
        settings.memory_mb,
        settings.master,
        settings.address,
        None if secret_file is None else str(secret_file),
        settings.jvm_options,
        dict(settings.conf),
    )


def settings_of(start: StartCommand) -> SessionSettings:
    """Inverse of start_command."""
    return SessionSettings(
        Path(start.directory),
        workers=start.workers,
        memory_mb=start.memory_mb,
        master=start.master,
        bulk=True,
        partitions=0,
        address=start.address,
        secret_file=None if start.secret_file is None else Path(start.secret_file),
        jvm_options=start.jvm_options,
        conf=start.conf,
    )


async def _until_dead(jvm: "subprocess.Popen[bytes]") -> None:
    """Returns once the JVM is gone: nothing more can come of this process."""
    code = await asyncio.to_thread(jvm.wait)
    log.error("the JVM of bulk work ended", code=code)


class _Serving:
    """The jobs of one connection."""

    def __init__(
        self, channel: Channel[BulkCommand], jobs: SparkJobs, jvm: "subprocess.Popen[bytes]"
    ) -> None:
        self._channel = channel
        self._jvm = jvm
        self._jobs = jobs
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bulk")
        self._cancelled: dict[int, threading.Event] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        while (command := await self._channel.receive()) is not None:
            match command:
                case SelectJob() | BuildJob():
                    task = asyncio.create_task(self._serve(command))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
                case CancelJob(job_id=job_id):
                    if job_id in self._cancelled:
                        self._cancelled[job_id].set()
                case StartCommand():
                    raise AssertionError("it has started")
                case _:
                    assert_never(command)
        for cancelled in self._cancelled.values():
            cancelled.set()

    async def _serve(self, job: Job) -> None:
        cancelled = self._cancelled[job.job_id] = threading.Event()
        loop = asyncio.get_running_loop()

        def tell(event: BulkEvent) -> None:
            loop.call_soon_threadsafe(self._tell, event)

        try:
            work = partial(_run, self._jobs, job, cancelled, tell)
            event: BulkEvent = await loop.run_in_executor(self._threads, work)
        except JobCancelled:
            event = FailedEvent(job.job_id, Cause.CANCELLED, "cancelled")
        except Exception as error:  # noqa: BLE001 - this task owns the job
            if await _is_dead(self._jvm):
                return  # the process ends with it, and all jobs with the process
            event = FailedEvent(job.job_id, cause_of(error), reason_of(error))
        finally:
            del self._cancelled[job.job_id]
        self._tell(event)

    def _tell(self, event: BulkEvent) -> None:
        try:
            self._channel.send_soon(event)
        except ConnectionError:
            pass  # the replica went away, and this process with it


def _run(
    jobs: SparkJobs,
    job: Job,
    cancelled: threading.Event,
    tell: Callable[[BulkEvent], None],
) -> DoneEvent:
    match job:
        case SelectJob():
            return run_select(jobs, job, cancelled)
        case BuildJob():

            def on_node(nodes_done: int) -> None:
                tell(ProgressEvent(job.job_id, nodes_done))

            return run_build(jobs, job, cancelled, on_node)


async def _is_dead(jvm: "subprocess.Popen[bytes]") -> bool:
    """Whether a job may have failed because of that, which is seen a moment before the end is."""
    for _ in range(_LOOKS):
        if jvm.poll() is not None:
            return True
        await asyncio.sleep(_LOOK_S)
    return False


def cause_of(error: BaseException) -> Cause:
    """What kind of trouble a failed job had."""
    text = _whole(error)
    if _DISK.search(text):
        return Cause.DISK
    return Cause.MEMORY if _MEMORY.search(text) else Cause.OTHER


def reason_of(error: BaseException) -> str:
    """What was wrong, in a line: Spark's messages hold the stacks of all its threads."""
    text = _whole(error)
    roots = _ROOT.findall(text)
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    reason = f"{first} ({roots[-1]})" if roots else first
    return reason[:_REASON_CHARACTERS]


def _whole(error: BaseException | None) -> str:
    """The messages of an error and of what it came from."""
    parts = []
    while error is not None:
        parts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__
    return "\n".join(parts)
