"""What replica processes take, measured; and the end of those that take too much memory.

Cores are held by affinity, which the kernel keeps. Memory is held here: all anonymous memory of a
replica's processes together. Files that are mapped do not count, the kernel takes those pages back
when it needs them.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from evertide.cli.process_tree import (
    Member,
    anonymous_bytes,
    end_session,
    members,
    own_anonymous_bytes,
    used_ns,
)
from evertide.controller.statuses import Facts
from evertide.persist.trouble import Trouble
from evertide.vocab.clock import Clock

# How often memory is looked at where it is limited, and everything else.
LIMITED_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 5.0
# CPU use is told over at least this long: ticks of the kernel's clock are 10 ms.
MEASURE_SECONDS: Final = 2.0
HISTORY_SECONDS: Final = 60.0
# A day.
KEPT_MEASURES: Final = 1_440

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Measure:
    """What one process and all that it started take."""

    cpu_nano_cores: int
    memory_bytes: int
    at_ms: int


@dataclass(slots=True)
class Watched:
    """One life of one child."""

    session: int
    limit_bytes: int | None
    too_large: bool = False
    known: dict[int, Member] = field(default_factory=dict)
    known_at_s: float = field(default_factory=time.monotonic)
    measured: Measure | None = None


class Watch:
    """Of one supervisor's replica processes. `run` looks on a thread, results are for the loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: dict[str, Watched] = {}
        self._history: dict[str, deque[Measure]] = {}
        self._noted_at_s = time.monotonic()

    def begin(self, name: str, session: int, limit_bytes: int | None) -> None:
        """The child of this name has begun a life, as the leader of this session."""
        self._watched[name] = Watched(session, limit_bytes)

    def end(self, name: str) -> bool:
        """That life is over; whether it was ended here, for its memory."""
        watched = self._watched.pop(name, None)
        return watched is not None and watched.too_large

    def forget(self, name: str) -> None:
        """The child is not wanted any more."""
        self._watched.pop(name, None)
        self._history.pop(name, None)

    async def run(self) -> None:
        """For ever."""
        trouble = Trouble("looking at replica processes")
        while True:
            watched = dict(self._watched)
            try:
                if watched:
                    await asyncio.to_thread(_look, watched, self._clock.now_ms())
                trouble.over()
            except Exception as fault:  # noqa: BLE001 - this loop owns the work
                trouble.met(fault)
            self._note()
            limited = any(w.limit_bytes is not None for w in watched.values())
            await asyncio.sleep(LIMITED_SECONDS if limited else IDLE_SECONDS)

    def _note(self) -> None:
        now_s = time.monotonic()
        if now_s - self._noted_at_s < HISTORY_SECONDS:
            return
        self._noted_at_s = now_s
        for name, watched in self._watched.items():
            if watched.measured is not None:
                kept = self._history.setdefault(name, deque(maxlen=KEPT_MEASURES))
                kept.append(watched.measured)

    def current(self) -> Iterator[Facts]:
        """(process, nano cores, bytes, microseconds) of each that runs and was measured."""
        for name, watched in self._watched.items():
            if watched.measured is not None:
                yield _row(name, watched.measured)

    def history(self) -> Iterator[Facts]:
        """The same once a minute, and the newest."""
        for name, kept in self._history.items():
            yield from (_row(name, measure) for measure in kept)
        yield from self.current()


def _row(name: str, measure: Measure) -> Facts:
    return (name, measure.cpu_nano_cores, measure.memory_bytes, measure.at_ms * 1_000)


def _look(watched: dict[str, Watched], now_ms: int) -> None:
    """Measure each, and end those above their limit."""
    found = members([each.session for each in watched.values()])
    for name, each in watched.items():
        own = found[each.session]
        memory_bytes = anonymous_bytes([member.pid for member in own])
        _measure(each, own, memory_bytes, now_ms)
        if each.limit_bytes is not None and memory_bytes > each.limit_bytes:
            _end_if_too_large(name, each, own)


def _measure(each: Watched, own: Sequence[Member], memory_bytes: int, now_ms: int) -> None:
    now_s = time.monotonic()
    elapsed_s = now_s - each.known_at_s
    if elapsed_s < MEASURE_SECONDS:
        return
    nano_cores = round(used_ns(each.known, own) / elapsed_s)
    each.measured = Measure(nano_cores, memory_bytes, now_ms)
    each.known, each.known_at_s = {member.pid: member for member in own}, now_s


def _end_if_too_large(name: str, each: Watched, own: Sequence[Member]) -> None:
    """What processes share was counted for each of them: count again before the verdict."""
    own_bytes = own_anonymous_bytes([member.pid for member in own])
    if each.limit_bytes is None or own_bytes <= each.limit_bytes or each.too_large:
        return
    log.error(
        "a replica takes more memory than its size allows, ending it",
        child=name,
        megabytes=own_bytes >> 20,
        limit_megabytes=each.limit_bytes >> 20,
    )
    each.too_large = True
    end_session(each.session)
