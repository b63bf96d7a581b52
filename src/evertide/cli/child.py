"""What every child process of a generation does first and last."""

import asyncio
import ctypes
import gc
import logging
import os
import select
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec
import structlog

from evertide.catalog.faults import CatalogFault
from evertide.cli.config import EXIT_CATALOG, EXIT_FENCED, EXIT_OK, EXIT_STORE, EXIT_USAGE, Boot
from evertide.persist.faults import (
    Fenced,
    PersistFault,
    StoreFailing,
    StoreFull,
    StoreUnreachable,
)

_PR_SET_PDEATHSIG = 1


class AddressInUse(Exception):
    """Another program holds the port; exit code 2, since waiting did not help."""


T = TypeVar("T")

log = structlog.get_logger()


def start_logging(process: str) -> None:
    """Logs go to standard error, one line each; standard output is for answers."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(
                key_order=["timestamp", "level", "process", "event"], bool_as_flag=False
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent goes, however that happens.

    The pipe on standard input tells the same where the kernel cannot.
    """
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return


def settle_memory() -> None:
    """Modules are here to stay: keep the garbage collector from walking through them again.

    A full collection stops a process for 40 ms otherwise, in the middle of somebody's statement.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def read_boot() -> Boot:
    """The supervisor's one line on standard input. EOF before it, or a line whose writer has hung
    up: the supervisor is gone, perhaps before this process could ask to be killed with it."""
    line = sys.stdin.buffer.readline()
    if not line or _hung_up(sys.stdin.fileno()):
        sys.exit(EXIT_OK)
    return msgspec.json.decode(line, type=Boot)


def _hung_up(descriptor: int) -> bool:
    look = select.poll()
    look.register(descriptor, 0)  # a hang-up is told whatever was asked for
    return any(event & select.POLLHUP for _, event in look.poll(0))


def stop_signals() -> asyncio.Event:
    """An event that SIGTERM and Ctrl-C set, from now on."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    return stopped


async def unless_stopped(stopped: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of some work; None if the process is told to stop before it is done."""
    working, waiting = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return None


async def until_stopped(*watched: Awaitable[object], stopped: asyncio.Event | None = None) -> int:
    """Wait for SIGTERM, for the parent to go, or for one of the watched tasks to end.

    Returns the exit code: a fenced process exits with 3, one without store with 4.
    """
    tasks = [asyncio.ensure_future(w) for w in watched]
    waiting = asyncio.create_task((stopped or stop_signals()).wait())
    done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for task in tasks:
        task.cancel()
    return max((exit_code(task) for task in done if task is not waiting), default=EXIT_OK)


def exit_code(task: "asyncio.Future[Any]") -> int:
    """What the end of a watched task means for the process."""
    if task.cancelled():
        return EXIT_OK
    error = task.exception() or (task.result() if isinstance(task.result(), Exception) else None)
    return EXIT_OK if error is None else code_of(error)


def code_of(error: BaseException) -> int:
    """The exit code that tells the supervisor what happened; said in the log too."""
    match error:
        case Fenced():
            log.error("fenced by a newer generation", reason=str(error))
            return EXIT_FENCED
        case StoreUnreachable():
            log.error("store unreachable", reason=str(error))
            return EXIT_STORE
        case StoreFull() | StoreFailing():
            # Not for good: the supervisor starts this process again after a while.
            log.error("store cannot be used just now", reason=str(error))
            return 1
        case AddressInUse():
            log.error("cannot listen", reason=str(error))
            return EXIT_USAGE
        case CatalogFault():
            # For good: whoever starts this process again finds the same.
            log.error("the catalog cannot be used", reason=str(error))
            return EXIT_CATALOG
        case _:
            log.error("process failed", exc_info=error)
            return 1


def end_of(fault: PersistFault | CatalogFault) -> int:
    """The exit code of a program that nobody starts again; whoever started it is told why."""
    print(f"evertide: {fault}", file=sys.stderr)
    code = code_of(fault)
    return EXIT_STORE if isinstance(fault, StoreFull | StoreFailing) else code


async def parent_gone() -> None:
    """Returns when the supervisor's end of standard input closes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    except (ValueError, OSError):
        await asyncio.Event().wait()  # no pipe: started by hand, nothing to watch
    while await reader.read(1_024):
        pass


def run_child(
    process: str, main: Callable[[Boot], Coroutine[Any, Any, int]], *, niceness: int = 0
) -> int:
    """The whole life of a child process."""
    die_with_parent()
    if niceness:
        os.nice(niceness)
    settle_memory()
    boot = read_boot()
    start_logging(boot.process or f"{process}-{boot.index}")
    try:
        return asyncio.run(main(boot))
    except (PersistFault, AddressInUse, CatalogFault) as fault:
        return code_of(fault)
