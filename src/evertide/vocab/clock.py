"""The wall clock, given as a value so that tests can turn it by hand."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells milliseconds since 1970-01-01 UTC. May go back; nobody may rely on it not to."""

    def now_ms(self) -> int: ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, start_ms: int = 1_000) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, by_ms: int) -> None:
        self._now_ms += by_ms
