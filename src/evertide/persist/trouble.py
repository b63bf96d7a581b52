"""Work that goes on in the background while its store is full or failing.

Such work keeps what it has and tries again, for as long as it takes: the disk that was full has
room one day. It must not fill the log meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from evertide.persist.faults import BlobMissing, Corrupt, StoreFailing, StoreFull

# What may pass: by itself, when somebody frees space, or when a lost part is brought back.
PASSING: Final = (StoreFull, StoreFailing, Corrupt, BlobMissing)

_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 5.0
# Trouble of the same kind that comes back sooner is not told again.
_TELL_EVERY_S: Final = 60.0

T = TypeVar("T")

_log = structlog.get_logger()


class Trouble:
    """One piece of work of one event loop: when to try it again, and what the log is told."""

    def __init__(self, work: str) -> None:
        self._work = work
        self._pause_s = _FIRST_PAUSE_S
        self._due_s: float | None = None
        # What the log was told last, and when; whether it still waits to hear the end of it.
        self._told: tuple[type[Exception], float] | None = None
        self._end_owed = False

    @property
    def wait_s(self) -> float:
        """How long to wait before the work is due again; 0 without trouble."""
        return 0.0 if self._due_s is None else max(self._due_s - _now_s(), 0.0)

    def met(self, fault: Exception) -> None:
        """The work failed; each time it is tried again in vain, the pause grows."""
        now_s = _now_s()
        kind, told_s = self._told or (None, 0.0)
        if kind is not type(fault) or now_s - told_s > _TELL_EVERY_S:
            _log.error(f"{self._work} failed, trying again", reason=str(fault))
            self._told = (type(fault), now_s)
            self._end_owed = True
        if self._due_s is None or now_s >= self._due_s:
            self._due_s = now_s + self._pause_s
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)

    def over(self) -> None:
        """The work was done."""
        if self._end_owed:
            _log.info(f"{self._work} went on")
        self._end_owed = False
        self._pause_s, self._due_s = _FIRST_PAUSE_S, None


def _now_s() -> float:
    return asyncio.get_running_loop().time()


async def until_done(work: str, call: Callable[[], Awaitable[T]]) -> T:
    """The answer of a call that may be repeated, once the store gives one."""
    trouble = Trouble(work)
    while True:
        try:
            answer = await call()
        except PASSING as fault:
            trouble.met(fault)
            await asyncio.sleep(trouble.wait_s)
        else:
            trouble.over()
            return answer
