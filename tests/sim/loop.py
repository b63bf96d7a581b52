"""An event loop without sockets, threads or sleep: time is virtual, order is drawn from a seed.

What may happen in any order in real life happens in a drawn order here, and the same one whenever
the seed is the same. A simulated process is a set of tasks and timers that share a context. It can
be killed between any two of their steps: what was to run in it never does, no `finally` included,
while messages that it has sent are on their way all the same.
"""

import asyncio
import heapq
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar
from zlib import crc32

T = TypeVar("T")

# Every step takes a little, so that no two of them happen at one moment.
STEP_S = 5e-6
# Far more than any scenario needs: whoever gets here goes round in circles.
MAX_STEPS = 300_000

_running_process: ContextVar["Process | None"] = ContextVar("process", default=None)


class Stuck(Exception):
    """Nothing can happen any more, or things happen without end."""


class Process:
    """What lives and dies together. `skew_ms` is how far its wall clock is off."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.skew_ms = 0
        self.steps_to_live: int | None = None
        # What was to run while it is frozen, as by SIGSTOP.
        self._parked: list[asyncio.Handle] | None = None
        self.on_end: Callable[[], None] = lambda: None
        self._outside = copy_context()
        self.context = copy_context()
        self.context.run(_running_process.set, self)

    def kill(self) -> None:
        """As kill -9 does."""
        if self.alive:
            self.alive = False
            # Whoever reacts to the end is not part of what ended.
            self._outside.run(self.on_end)

    def freeze(self) -> None:
        """As SIGSTOP does: it does not know that time passes."""
        if self._parked is None:
            self._parked = []

    def thaw(self, loop: "SimLoop") -> None:
        """As SIGCONT does."""
        parked, self._parked = self._parked or [], None
        loop.resume(parked)

    def takes(self, handle: asyncio.Handle) -> bool:
        """Whether it may run this now: it lives, for one more step at least, and is not frozen."""
        if self.alive and self._parked is not None:
            self._parked.append(handle)
            return False
        if self.alive and self.steps_to_live is not None:
            self.steps_to_live -= 1
            if self.steps_to_live < 0:
                self.kill()
        return self.alive


def running_process() -> Process | None:
    """The process whose code runs now; None: the simulation itself."""
    return _running_process.get()


class SimLoop(asyncio.BaseEventLoop):
    """`moment` counts steps: an order of all that happens, in whatever process."""

    _ready: "list[asyncio.Handle]"

    def __init__(self, rng: random.Random, *, in_order: bool = False) -> None:
        super().__init__()
        self._ready = []
        self._rng = rng
        # As a real event loop does; else whatever is ready may be next.
        self._in_order = in_order
        self._now_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._timed = 0
        self._failure: BaseException | None = None
        self.moment = 0
        self.digest = 0
        self.trace: list[tuple[int, float, str, str]] = []
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._now_s

    def note(self, text: str) -> None:
        """Add a line to the readable trace."""
        process = running_process()
        name = process.name if process is not None else "-"
        self.digest = hash((self.digest, crc32(text.encode())))
        self.trace.append((self.moment, self._now_s, name, text))

    def spawn(self, process: Process, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run it in that process."""
        return process.context.run(self.create_task, work, name=f"{process.name}: {name}")

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, self._timed, timer))
        self._timed += 1
        return timer

    def run_in_executor(
        self,
        executor: object,  # noqa: ARG002 - there are no threads
        func: Callable[..., T],
        *args: object,
    ) -> "asyncio.Future[T]":
        """Some time later, in one step: what a thread does is not seen before it is done."""
        done: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if done.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                done.set_exception(error)
            else:
                done.set_result(result)

        self.call_later(self._rng.expovariate(500), work)
        return done

    def resume(self, handles: list[asyncio.Handle]) -> None:
        """Run them after all."""
        self._ready.extend(handles)

    def fail(self, failure: BaseException) -> None:
        """End the simulation with this."""
        self._failure = self._failure or failure

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A callback that fails ends the simulation; answers that nobody waits for do not."""
        if "handle" in context:
            self.fail(context["exception"])

    def failures(self) -> list[tuple[str, BaseException]]:
        """What went wrong in tasks, by their names."""
        over = [task for task in self._tasks if task.done() and not task.cancelled()]
        found = [(task.get_name(), task.exception()) for task in over]
        return [(name, failure) for name, failure in found if failure is not None]

    def bury(self) -> None:
        """End for good, without letting anything run that still waits."""
        self.close()
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                # What it does on being closed is nobody's business any more.
                with suppress(Exception):
                    task.get_coro().close()
        self._tasks.clear()

    def _make_task(
        self, _: asyncio.AbstractEventLoop, coro: Any, context: Context | None = None
    ) -> Any:
        # Kept, because a task of a killed process that is forgotten would be closed, and closing
        # it runs code.
        task = asyncio.Task(coro, loop=self, context=context)
        self._tasks.append(task)
        return task

    def _run_once(self) -> None:
        if self._failure is not None:
            raise self._failure
        handle = self._next()
        if handle.cancelled():
            return
        process = handle._context.get(_running_process)  # type: ignore[attr-defined]
        if process is not None and not process.takes(handle):
            return
        self.moment += 1
        self._now_s += STEP_S
        if self.moment > MAX_STEPS:
            raise Stuck(f"no end after {MAX_STEPS} steps; {self._describe_waiting()}")
        self.digest = hash((self.digest, self._now_s, self.moment))
        handle._run()

    def _next(self) -> asyncio.Handle:
        """The next handle to run; time jumps to the next timer if nothing is ready."""
        ready, timers = self._ready, self._timers
        if not ready:
            if not timers:
                raise Stuck(f"nothing can happen any more; {self._describe_waiting()}")
            self._now_s = max(self._now_s, timers[0][0])
        while timers and timers[0][0] <= self._now_s:
            ready.append(heapq.heappop(timers)[2])
        if self._in_order or len(ready) == 1:
            return ready.pop(0)
        index = int(self._rng.random() * len(ready))
        ready[index], ready[-1] = ready[-1], ready[index]
        return ready.pop()

    def _describe_waiting(self) -> str:
        waiting = [task.get_name() for task in self._tasks if not task.done()]
        return f"waiting: {', '.join(waiting) or 'nobody'}"

    def _asyncgen_finalizer_hook(self, agen: object) -> None:
        """A generator that nobody iterates any more ends without running, as its process did."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer runs as nothing when its time has come."""
