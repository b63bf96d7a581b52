"""Merges beside ticks: threads that write layers and merge runs while others are looked into.

The owner calls `look_after` between ticks. It takes over what the threads have finished and gives
them the next piece of work; only if layers pile up faster than they are written does it wait. Large
runs are merged by a thread of their own, so that nobody ever waits for that.
"""

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.due_merges import large_merge, small_merge
from evertide.spark.arrangements.levels import (
    MAX_RUN_BYTES,
    SPILL_RECORDS,
    Levels,
    MergeCancelled,
    MergePlan,
    Source,
    memory_bytes,
    merge,
    remove_files,
)
from evertide.spark.arrangements.memory import memory_limit
from evertide.spark.arrangements.runs import DamagedRun, Run

# Layers of one arrangement that may wait to be written before a tick waits for them.
MOST_WAITING: Final = 12

# So many entries of one arrangement may be in memory before a tick waits for them.
MOST_RECORDS: Final = 8 * SPILL_RECORDS

log = structlog.get_logger()


class _Kind(Enum):
    SMALL = "merge"
    LARGE = "merge-large"


@dataclass(frozen=True, slots=True)
class _Running:
    arrangement: Arrangement
    plan: MergePlan
    future: "Future[Sequence[Source]]"


class Merging:
    """At most one merge of each kind at a time, over all arrangements of an evaluator."""

    def __init__(self) -> None:
        self._threads = {
            kind: ThreadPoolExecutor(max_workers=1, thread_name_prefix=kind.value) for kind in _Kind
        }
        self._running: dict[_Kind, _Running] = {}
        self._limit_bytes = memory_limit()
        # Arrangements of which a file is damaged: nothing of them can be trusted.
        self._damaged: WeakKeyDictionary[Arrangement, DamagedRun] = WeakKeyDictionary()
        # What each arrangement had in memory when it was looked after last.
        self._bytes: WeakKeyDictionary[Arrangement, int] = WeakKeyDictionary()
        # The runs of each of which it is known that no large merge is due.
        self._at_rest: WeakKeyDictionary[Arrangement, Sequence[Run]] = WeakKeyDictionary()

    def look_after(self, arrangements: Iterable[Arrangement]) -> None:
        """Take over finished merges; start the next ones; hold ticks back if merges lag behind.

        Raises DamagedRun if one of these arrangements must be built again.
        """
        self._take_over_finished()
        grown = False
        for arrangement in arrangements:
            levels = arrangement.levels
            waiting = len(levels.frozen)
            # The newest layer alone is frozen long before it overflows.
            if waiting and (waiting > MOST_WAITING or _overflows(levels)):
                self._finish(_Kind.SMALL)
            self._require_sound(arrangement)
            if len(levels.runs) > 1 and _Kind.LARGE not in self._running:
                self._merge_large(arrangement)
            if waiting and _Kind.SMALL not in self._running:
                self._start(_Kind.SMALL, arrangement, small_merge(levels, arrangement.since))
            grown |= self._measure(arrangement)
        if grown and self._too_much():
            self._spill()

    def check(self, arrangements: Iterable[Arrangement]) -> None:
        """Raises DamagedRun if one of these must be built again, as far as is known by now."""
        self._take_over_finished()
        for arrangement in arrangements:
            self._require_sound(arrangement)

    def is_damaged(self, arrangement: Arrangement) -> bool:
        """The same of one, for whoever is not its reader."""
        return arrangement in self._damaged

    def _require_sound(self, arrangement: Arrangement) -> None:
        if self._damaged and arrangement in self._damaged:
            raise self._damaged[arrangement]

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
        self._finish(_Kind.SMALL)
        for arrangement in sorted(self._bytes, key=self._bytes.__getitem__, reverse=True):
            enough = min(self._limit_bytes, MAX_RUN_BYTES) // 2
            if sum(self._bytes.values()) <= enough:
                break
            levels = arrangement.levels
            levels.freeze()
            self._start(
                _Kind.SMALL, arrangement, small_merge(levels, arrangement.since, spill=True)
            )
            self._finish(_Kind.SMALL)
            self._bytes[arrangement] = memory_bytes(levels)

    def _merge_large(self, arrangement: Arrangement) -> None:
        runs = arrangement.levels.runs
        if self._at_rest.get(arrangement) is not runs:
            self._start(
                _Kind.LARGE, arrangement, large_merge(arrangement.levels, arrangement.since)
            )
            if _Kind.LARGE not in self._running and not arrangement.levels.taken.runs:
                self._at_rest[arrangement] = runs

    def _start(self, kind: _Kind, arrangement: Arrangement, plan: MergePlan | None) -> None:
        if plan is not None:
            future = self._threads[kind].submit(merge, plan)
            self._running[kind] = _Running(arrangement, plan, future)

    def _take_over_finished(self) -> None:
        if not self._running:
            return
        for kind in [kind for kind, running in self._running.items() if running.future.done()]:
            self._finish(kind)

    def wait(self) -> None:
        """Let all merges that run finish."""
        for kind in _Kind:
            self._finish(kind)

    def settle(self, arrangements: Collection[Arrangement]) -> None:
        """End merges of these, before one of them is let go: at the next piece, since a level of
        many takes minutes."""
        for kind, running in list(self._running.items()):
            if running.arrangement in arrangements:
                running.plan.cancelled.set()
                self._finish(kind)

    def _finish(self, kind: _Kind) -> None:
        """Let the merge of this kind finish, if one runs.

        A disk that cannot be written to costs memory, not the dataflow: what was to be merged
        stays, and the next call tries again; with large runs once there are others. So it is with
        whatever else goes wrong: it may be any dataflow's call that gets to know.
        """
        running = self._running.pop(kind, None)
        if running is None:
            return
        levels = running.arrangement.levels
        try:
            merged = running.future.result()
        except MergeCancelled:
            levels.give_up(running.plan)
        except DamagedRun as damage:
            self._damaged[running.arrangement] = damage
            log.error("run is damaged", reason=str(damage))
        except Exception as error:  # the thread's, not the caller's
            levels.give_up(running.plan)
            self._at_rest[running.arrangement] = levels.runs
            # A full disk explains itself, a bug does not.
            trace = None if isinstance(error, OSError) else error
            path = str(running.plan.path)
            log.error("merge failed", path=path, reason=repr(error), exc_info=trace)
        else:
            levels.swap(running.plan, merged)
            if running.plan.runs:
                # Letting go of what is mapped takes long too: the thread's is the last look at it.
                self._threads[kind].submit(remove_files, running.plan.runs)

    def close(self) -> None:
        """End the threads; what they were at comes to nothing."""
        for running in self._running.values():
            running.plan.cancelled.set()
        self.wait()
        for thread in self._threads.values():
            thread.shutdown()


def _overflows(levels: Levels) -> bool:
    return levels.layer.records + sum([f.records for f in levels.frozen]) > MOST_RECORDS


def merge_now(arrangement: Arrangement) -> None:
    """Write and merge what waits, on the caller's thread."""
    levels = arrangement.levels
    for due in (small_merge, large_merge):
        plan = due(levels, arrangement.since)
        if plan is not None:
            levels.swap(plan, merge(plan))
            remove_files(plan.runs)
