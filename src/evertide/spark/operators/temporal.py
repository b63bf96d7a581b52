"""Temporal filters: rows that appear and disappear as time passes.

A filter by time is linear: an update at ts of a row that stays from `start` until `end` is the same
update at max(ts, start), and its opposite at `end`. What is due after the tick waits, added up, so
a retracted row takes its future along. No node ever sees a row before its time.
"""

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from evertide.dataflow.delta_plan import TemporalFilterNode
from evertide.expr.columnar.batch import Entry
from evertide.expr.row_key import identity_function
from evertide.expr.temporal import compile_stay
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.delta import Delta, ErrorEntry, Tick
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

# (row, its error, diff): () stands for the row where there is an error.
Change: TypeAlias = tuple[Row, str | None, int]
Bucket: TypeAlias = dict[Hashable, Change]
Captured: TypeAlias = Mapping[int, Mapping[Hashable, Change]]
NO_ROW: Final[Row] = ()


class Future:
    """Changes that are due later, by time and, within one, by row.

    A bucket that a snapshot may still read is copied before it is changed.
    """

    def __init__(self, node: TemporalFilterNode) -> None:
        self.types = node.types
        self._identity = identity_function(node.types)
        self._buckets: dict[int, Bucket] = {}
        # Every time that has a bucket is in here at least once.
        self._times: list[int] = []
        self._captured: set[int] = set()

    def __len__(self) -> int:
        """How many changes wait."""
        return sum(map(len, self._buckets.values()))

    def due(self) -> Timestamp | None:
        """The time of the first change; None: there is none."""
        while self._times and self._times[0] not in self._buckets:
            heapq.heappop(self._times)
        return Timestamp(self._times[0]) if self._times else None

    def add(self, ts: int, row: Row, error: str | None, diff: int) -> None:
        """One more change; opposite ones cancel."""
        bucket = self._buckets.get(ts)
        if bucket is None:
            bucket = self._buckets[ts] = {}
            heapq.heappush(self._times, ts)
        elif ts in self._captured:
            bucket = self._buckets[ts] = dict(bucket)
        self._captured.discard(ts)
        key = self._name(row, error)
        known = bucket.get(key)
        total = diff if known is None else known[2] + diff
        if total:
            bucket[key] = (row, error, total)
        else:
            del bucket[key]
            if not bucket:
                del self._buckets[ts]

    def before(self, upper: Timestamp) -> list[int]:
        """The times below `upper` at which something is due."""
        found: set[int] = set()
        waiting = [0]  # places in the heap: what is below a later time is later still
        while waiting:
            place = waiting.pop()
            if place < len(self._times) and self._times[place] < upper:
                found.add(self._times[place])
                waiting += (2 * place + 1, 2 * place + 2)
        return [ts for ts in found if ts in self._buckets]

    def at(self, ts: int) -> Iterable[Change]:
        """What is due then."""
        return self._buckets[ts].values()

    def forget_before(self, upper: Timestamp) -> None:
        """What is due below `upper` was given."""
        while (first := self.due()) is not None and first < upper:
            del self._buckets[first]
            self._captured.discard(first)

    def capture(self) -> Captured:
        """All of it as it is now, which nobody changes any more."""
        self._captured = set(self._buckets)
        return dict(self._buckets)

    def _name(self, row: Row, error: str | None) -> Hashable:
        if error is not None:
            return (error, None)
        return row if self._identity is None else self._identity(row)


def earliest(futures: Iterable[Future]) -> Timestamp | None:
    """When the first change of all of them is due; None: none is."""
    return min((ts for future in futures if (ts := future.due()) is not None), default=None)


class TemporalFilterOperator:
    """Gives what becomes due in the tick, and keeps what is due later."""

    def __init__(self, node: TemporalFilterNode) -> None:
        self._input = node.input
        self._stay = compile_stay(node.predicates)
        self.future = Future(node)
        self._later: list[tuple[int, Row, str | None, int]] = []

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return ()

    def step(self, deltas: Sequence[Delta], tick: Tick) -> Delta:
        delta = deltas[self._input]
        rows: list[Entry] = []
        errors: list[ErrorEntry] = list(delta.errors)
        later: list[tuple[int, Row, str | None, int]] = []

        def give(ts: int, row: Row, error: str | None, diff: int) -> None:
            if ts >= tick.upper:
                later.append((ts, row, error, diff))
            elif error is None:
                rows.append((row, ts, diff))
            else:
                errors.append((error, ts, diff))

        due = self.future.due()
        if due is not None and due < tick.upper:
            for ts in self.future.before(tick.upper):
                for row, error, diff in self.future.at(ts):
                    give(ts, row, error, diff)
        for row, ts, diff in delta.rows:
            stay = self._stay(row)
            if stay is None or stay.end <= ts:
                continue
            shown = row if stay.error is None else NO_ROW
            give(max(ts, stay.start), shown, stay.error, diff)
            if stay.end < EMPTY_FRONTIER:
                give(stay.end, shown, stay.error, -diff)
        self._later = later
        return Delta(rows, errors)

    def commit(self, upper: Timestamp) -> None:
        self.future.forget_before(upper)
        for change in self._later:
            self.future.add(*change)
        self._later = []

    def abort(self) -> None:
        self._later = []
