"""What replica processes take, measured; and the end of those that take too much memory.

Cores are held by affinity, which the kernel keeps. So it does with memory where it lets us
(memory_groups.py); elsewhere memory is held here: all anonymous memory of a replica's processes
together. Files that are mapped do not count, the kernel takes those pages back when it needs them.
How often a replica is measured, if at all, is its INTROSPECTION INTERVAL.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from evertide.catalog.objects import Introspection
from evertide.cli.memory_groups import MemoryGroups
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

# How often memory is looked at where it is limited here.
LIMITED_SECONDS: Final = 0.5
# How often processes are measured that nobody said anything about, and at most: ticks of the
# kernel's clock, in which CPU time is counted, are 10 ms.
USUAL_SECONDS: Final = 5.0
SHORTEST_SECONDS: Final = 0.25
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


@dataclass(frozen=True, slots=True)
class Sampling:
    """How closely a child is watched."""

    every_s: float | None = USUAL_SECONDS  # None: not at all
    told: bool = False  # whether every look is told of in the log, with what it took


USUAL_SAMPLING: Final = Sampling()


def sampling_of(introspection: Introspection | None) -> Sampling:
    """What the settings of a replica mean here; None: it has none."""
    if introspection is None:
        return USUAL_SAMPLING
    interval_ms = introspection.interval_ms
    every_s = None if interval_ms is None else max(interval_ms / 1_000, SHORTEST_SECONDS)
    return Sampling(every_s, introspection.debugging)


@dataclass(slots=True)
class Watched:
    """One life of one child."""

    session: int
    limit_bytes: int | None  # None: no limit, or one that the kernel keeps
    sampling: Sampling
    too_large: bool = False
    known: dict[int, Member] = field(default_factory=dict)
    known_at_s: float = field(default_factory=time.monotonic)
    measured: Measure | None = None


class Watch:
    """Of one supervisor's replica processes. `run` looks on a thread, results are for the loop."""

    def __init__(self, clock: Clock, groups: MemoryGroups | None = None) -> None:
        self._clock = clock
        self._groups = groups
        self._sampling: dict[str, Sampling] = {}
        self._watched: dict[str, Watched] = {}
        self._history: dict[str, deque[Measure]] = {}
        self._noted_at_s = time.monotonic()
        self._changed = asyncio.Event()

    def sample(self, name: str, sampling: Sampling) -> None:
        """How closely the child of this name is watched from now on."""
        if self._sampling.get(name) == sampling:
            return
        self._sampling[name] = sampling
        watched = self._watched.get(name)
        if watched is not None:
            watched.sampling = sampling
            if sampling.every_s is None:
                watched.measured = None
        self._changed.set()

    def begin(self, name: str, session: int, limit_bytes: int | None) -> None:
        """The child of this name has begun a life, as the leader of this session."""
        held = (
            limit_bytes is not None
            and self._groups is not None
            and self._groups.hold(name, session, limit_bytes)
        )
        sampling = self._sampling.get(name, USUAL_SAMPLING)
        self._watched[name] = Watched(session, None if held else limit_bytes, sampling)
        self._changed.set()

    def end(self, name: str) -> bool:
        """That life is over; whether it was ended for its memory, here or by the kernel."""
        watched = self._watched.pop(name, None)
        killed = self._groups is not None and self._groups.end(name)
        return killed or (watched is not None and watched.too_large)

    def forget(self, name: str) -> None:
        """The child is not wanted any more."""
        self._watched.pop(name, None)
        self._history.pop(name, None)
        self._sampling.pop(name, None)
        if self._groups is not None:
            self._groups.forget(name)

    async def run(self) -> None:
        """For ever."""
        trouble = Trouble("looking at replica processes")
        while True:
            self._changed.clear()
            watched = dict(self._watched)
            try:
                if watched:
                    await asyncio.to_thread(_look, watched, self._clock.now_ms())
                trouble.over()
            except Exception as fault:  # noqa: BLE001 - this loop owns the work
                trouble.met(fault)
            self._note()
            # What came or changed meanwhile is looked at soon, but not more often than all others.
            await asyncio.sleep(SHORTEST_SECONDS)
            try:
                async with asyncio.timeout(_pause_s(watched.values()) - SHORTEST_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                pass

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
            # A look that was under way may have measured one that is not watched any more.
            if watched.measured is not None and watched.sampling.every_s is not None:
                yield _row(name, watched.measured)

    def history(self) -> Iterator[Facts]:
        """The same once a minute, and the newest."""
        for name, kept in self._history.items():
            yield from (_row(name, measure) for measure in kept)
        yield from self.current()


def _row(name: str, measure: Measure) -> Facts:
    return (name, measure.cpu_nano_cores, measure.memory_bytes, measure.at_ms * 1_000)


def _pause_s(watched: Iterable[Watched]) -> float:
    """How long until one of them has to be looked at again."""
    pauses = [USUAL_SECONDS]
    for each in watched:
        if each.limit_bytes is not None:
            pauses.append(LIMITED_SECONDS)
        if each.sampling.every_s is not None:
            pauses.append(each.sampling.every_s)
    return min(pauses)


def _look(watched: dict[str, Watched], now_ms: int) -> None:
    """Measure each that is due, and end those above their limit."""
    began_s = time.monotonic()
    due = {n: w for n, w in watched.items() if w.limit_bytes is not None or _is_due(w, began_s)}
    if not due:
        return
    found = members([each.session for each in due.values()])
    for name, each in due.items():
        own = found[each.session]
        memory_bytes = anonymous_bytes([member.pid for member in own])
        if _is_due(each, time.monotonic()):
            _measure(each, own, memory_bytes, now_ms)
            if each.sampling.told:
                log.info(
                    "looked at a replica's processes",
                    child=name,
                    processes=len(own),
                    megabytes=memory_bytes >> 20,
                    milliseconds=round((time.monotonic() - began_s) * 1_000, 1),
                )
        if each.limit_bytes is not None and memory_bytes > each.limit_bytes:
            _end_if_too_large(name, each, own)


def _is_due(each: Watched, now_s: float) -> bool:
    every_s = each.sampling.every_s
    # A look that comes a moment early is not left out: the next one may be as long again.
    return every_s is not None and now_s - each.known_at_s >= every_s - SHORTEST_SECONDS / 2


def _measure(each: Watched, own: Sequence[Member], memory_bytes: int, now_ms: int) -> None:
    now_s = time.monotonic()
    nano_cores = round(used_ns(each.known, own) / max(now_s - each.known_at_s, 1e-3))
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
