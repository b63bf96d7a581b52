"""What became of replica processes, as rows: how each is now, and how it got there."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from signal import Signals
from typing import Final, TypeAlias

from evertide.vocab.clock import Clock

# Of one process; more is forgotten, the oldest first.
KEPT_CHANGES: Final = 1_000
# Processes that are no more are remembered up to this many.
KEPT_PROCESSES: Final = 1_000

ONLINE: Final = "online"
OFFLINE: Final = "offline"
OUT_OF_MEMORY: Final = "oom-killed"
STARTING: Final = "starting"

Facts: TypeAlias = tuple[str | int | float | bool | None, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A process became so; `reason` says why it is not online."""

    status: str
    reason: str | None
    at_ms: int


def exit_reason(code: int) -> str:
    """Why a process ended, from its exit code.

    >>> exit_reason(1), exit_reason(-9)
    ('exit code 1', 'signal 9 (SIGKILL)')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


class Statuses:
    """Of one supervisor's replica processes since it started."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changes: dict[str, deque[Change]] = {}
        self._running: set[str] = set()

    def note(self, process: str, status: str, reason: str | None = None) -> None:
        """The process is so from now on; the same again is no change."""
        changes = self._changes.setdefault(process, deque(maxlen=KEPT_CHANGES))
        self._running.add(process)
        if not changes or (changes[-1].status, changes[-1].reason) != (status, reason):
            changes.append(Change(status, reason, self._clock.now_ms()))

    def forget(self, process: str) -> None:
        """The process is not wanted any more; its history stays for a while."""
        self._running.discard(process)
        gone = [name for name in self._changes if name not in self._running]
        for name in gone[: max(0, len(gone) - KEPT_PROCESSES)]:
            del self._changes[name]

    def current(self) -> Iterator[Facts]:
        """(process, status, reason, microseconds) of each that is wanted."""
        for process in self._running:
            yield _row(process, self._changes[process][-1])

    def history(self) -> Iterator[Facts]:
        """The same of every change, those of dropped processes too."""
        for process, changes in self._changes.items():
            yield from (_row(process, change) for change in changes)


def _row(process: str, change: Change) -> Facts:
    return (process, change.status, change.reason, change.at_ms * 1_000)
