"""The time that a statement may take."""

import asyncio


class Limit:
    """Cancels the task that made it once so much time has passed, unless it is lifted before.

    As asyncio.timeout, for a task that ends with the statement: nothing has to be put back for what
    would come after it, and most statements take no longer than that would.
    """

    __slots__ = ("_timer", "passed")

    def __init__(self, limit_ms: int) -> None:
        """0: there is none."""
        self.passed = False
        self._timer: asyncio.TimerHandle | None = None
        if limit_ms:
            task = asyncio.current_task()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(limit_ms / 1_000, self._pass, task)

    def lift(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pass(self, task: "asyncio.Task[object] | None") -> None:
        assert task is not None, "statements run in tasks"
        self.passed = True
        task.cancel()
