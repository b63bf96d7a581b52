"""The time that a statement may take."""

import asyncio


class Limit:
    """Cancels the task that made it once so much time has passed, unless it is lifted before.

    As asyncio.timeout, but that whoever made it tells what happened: most statements take no longer
    than that would.
    """

    __slots__ = ("_task", "_timer", "passed")

    def __init__(self, limit_ms: int) -> None:
        """0: there is none."""
        self.passed = False
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if limit_ms:
            self._task = asyncio.current_task()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(limit_ms / 1_000, self._pass)

    def lift(self) -> None:
        """The task goes on to other things, which it must not be cancelled in. May be repeated."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.passed and self._task is not None:
            self._task.uncancel()
            self._task = None

    def _pass(self) -> None:
        assert self._task is not None, "statements run in tasks"
        self.passed = True
        self._task.cancel()
