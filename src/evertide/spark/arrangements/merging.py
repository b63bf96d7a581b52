"""Merges beside ticks: one thread that writes layers and merges runs while others are looked into.

The owner calls `look_after` between ticks. It takes over what the thread has finished and gives it
the next piece of work; only if layers pile up faster than they are written does it wait.
"""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.levels import (
    MAX_RUN_BYTES,
    SPILL_RECORDS,
    Levels,
    MergePlan,
    Source,
    memory_bytes,
    merge,
)
from evertide.spark.arrangements.memory import give_back, memory_limit
from evertide.spark.arrangements.runs import DamagedRun

# Layers of one arrangement that may wait to be written before a tick waits for them.
MOST_WAITING: Final = 12

# So many entries of one arrangement may be in memory before a tick waits for them.
MOST_RECORDS: Final = 8 * SPILL_RECORDS

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Running:
    arrangement: Arrangement
    plan: MergePlan
    future: "Future[Source | None]"


class Merging:
    """At most one merge at a time, over all arrangements of an evaluator."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="merge")
        self._running: _Running | None = None
        self._limit_bytes = memory_limit()
        # Arrangements of which a file is damaged: nothing of them can be trusted.
        self._damaged: WeakKeyDictionary[Arrangement, DamagedRun] = WeakKeyDictionary()
        # What each arrangement had in memory when it was looked after last.
        self._bytes: WeakKeyDictionary[Arrangement, int] = WeakKeyDictionary()

    def look_after(self, arrangements: Iterable[Arrangement]) -> None:
        """Take over a finished merge; start the next one; hold ticks back if merges lag behind.

        Raises DamagedRun if one of these arrangements must be built again.
        """
        if self._running is not None and self._running.future.done():
            self.wait()
        grown = False
        for arrangement in arrangements:
            levels = arrangement.levels
            waiting = len(levels.frozen)
            # The newest layer alone is frozen long before it overflows.
            if waiting and (waiting > MOST_WAITING or _overflows(levels)):
                self.wait()
            if self._damaged and arrangement in self._damaged:
                raise self._damaged[arrangement]
            if waiting and self._running is None:
                self._start(arrangement)
            grown |= self._measure(arrangement)
        if grown and self._too_much():
            self._spill()

    def _measure(self, arrangement: Arrangement) -> bool:
        """Note what it has in memory. Gives whether that is more than before: of most arrangements
        nothing changes in a tick, and where none has grown the others need not be asked.
        """
        now, before = memory_bytes(arrangement.levels), self._bytes.get(arrangement)
        if now != before:
            self._bytes[arrangement] = now
        return now > (before or 0)

    def _too_much(self) -> bool:
        """Also if one arrangement could not be written as one run any more."""
        in_memory = self._bytes.values()
        if sum(in_memory) > self._limit_bytes:
            return True
        return max(in_memory, default=0) > MAX_RUN_BYTES // 2

    def _spill(self) -> None:
        """Write what lies in memory, largest first, until half of what may be there is left."""
        self.wait()
        for arrangement in sorted(self._bytes, key=self._bytes.__getitem__, reverse=True):
            enough = min(self._limit_bytes, MAX_RUN_BYTES) // 2
            if sum(self._bytes.values()) <= enough:
                break
            arrangement.levels.freeze()
            self._start(arrangement, spill=True)
            self.wait()
            self._bytes[arrangement] = memory_bytes(arrangement.levels)

    def _start(self, arrangement: Arrangement, *, spill: bool = False) -> None:
        plan = arrangement.levels.merge_plan(arrangement.since, spill=spill)
        if plan is not None:
            self._running = _Running(arrangement, plan, self._thread.submit(merge, plan))

    def wait(self) -> None:
        """Let the merge that runs finish, if one does.

        A disk that cannot be written to costs memory, not the dataflow: the layers stay, and the
        next call tries again.
        """
        running, self._running = self._running, None
        if running is None:
            return
        try:
            run = running.future.result()
        except OSError as error:
            running.arrangement.levels.give_up()
            log.error("merge failed", path=str(running.plan.path), reason=str(error))
        except DamagedRun as damage:
            self._damaged[running.arrangement] = damage
            log.error("run is damaged", reason=str(damage))
        else:
            running.arrangement.levels.swap(running.plan, run)
            if not running.plan.in_memory:
                # What merging took would else stay with the process.
                give_back()

    def close(self) -> None:
        """End the thread."""
        self.wait()
        self._thread.shutdown()


def _overflows(levels: Levels) -> bool:
    return levels.layer.records + sum([f.records for f in levels.frozen]) > MOST_RECORDS


def merge_now(arrangement: Arrangement) -> None:
    """Write and merge what waits, on the caller's thread."""
    plan = arrangement.levels.merge_plan(arrangement.since)
    if plan is not None:
        arrangement.levels.swap(plan, merge(plan))
