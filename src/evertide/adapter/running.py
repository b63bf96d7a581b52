"""A session's statement, or rows of it, run by the task that asked, and how a cancel ends them.

A task of its own for every statement would take longer to make, start and wait for than some
statements take. So a cancel is one of the task that asked: it reaches nothing but the statement,
and when that has ended it is taken back.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Final, TypeVar

from evertide.vocab.errors import QueryCanceled

T = TypeVar("T")
# Statements that wait for nothing follow each other for so long before others get their turn.
_TURN_S: Final = 0.002


class Running:
    """What one session runs, at most one statement at a time."""

    __slots__ = ("_cancels", "_task", "_turn_ends")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        # How many of the task's cancels were meant for the statement.
        self._cancels = 0
        self._turn_ends = 0.0

    def begin_turn(self) -> None:
        """The event loop has just come from somebody else."""
        self._turn_ends = time.monotonic() + _TURN_S

    async def run(self, statement: Callable[[], Coroutine[None, None, T]]) -> T:
        """Its result; raises QueryCanceled where `cancel` ended it."""
        task = asyncio.current_task()
        assert task is not None, "statements run in tasks"
        if self._task is task:
            return await statement()  # part of one that runs, such as FETCH: that ends with it
        assert self._task is None, "one after the other"
        self._task, self._cancels = task, 0
        try:
            if time.monotonic() > self._turn_ends:
                await asyncio.sleep(0)
                self.begin_turn()
            return await statement()
        except asyncio.CancelledError:
            if task.cancelling() > self._cancels:
                raise  # whoever asked is itself ending
            raise QueryCanceled("canceling statement due to user request") from None
        finally:
            self._task = None
            for _ in range(self._cancels):
                task.uncancel()

    def cancel(self) -> None:
        """End what runs, if anything does."""
        if self._task is not None:
            self._cancels += 1
            self._task.cancel()
