"""Window functions: the rows of each partition that changes get their values anew."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from evertide.dataflow.delta_plan import WindowNode
from evertide.expr.columnar.batch import Entry
from evertide.expr.group_rows import Counted
from evertide.expr.relation import Types
from evertide.expr.row_key import RowKey, identity_function, order_key, whole_row_key
from evertide.expr.window import Windowing
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.delta import (
    Delta,
    ErrorEntry,
    Room,
    Tick,
    counted_by_identity,
    difference,
)
from evertide.spark.operators.grouping.group_cache import GroupCache
from evertide.spark.operators.grouping.ordered import OrderedCounts, TotalKey
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back

Shown: TypeAlias = tuple[list[Counted], list[tuple[str, int]]]


class WindowOperator:
    """Keeps its input by partition; per (partition, timestamp) emits what its functions change."""

    def __init__(self, node: WindowNode, types: Types, room: Room) -> None:
        self._input = node.input
        self._kept = room.arrangement("rows", types, node.group, MIN_TS)
        self._partitions = _Partitions(node, types)
        self._identity = identity_function(node.types)
        self._cache: GroupCache[_Partition] = GroupCache()
        self._pending: dict[bytes, list[Entry]] = {}
        self._changed: dict[bytes, _Partition] = {}

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return (self._kept,)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._input]
        if not len(delta):
            return delta
        key_of = self._kept.key_of
        for entry in delta.rows:
            self._pending.setdefault(key_of(entry[0]), []).append(entry)
        self._changed = self._cache.take_or_make(
            list(self._pending), self._kept, self._partitions.of
        )
        rows: list[Entry] = []
        errors: list[ErrorEntry] = list(delta.errors)
        for key, changes in self._pending.items():
            self._change(self._changed[key], changes, rows, errors)
        return Delta(rows, errors)

    def _change(
        self,
        partition: "_Partition",
        changes: list[Entry],
        rows: list[Entry],
        errors: list[ErrorEntry],
    ) -> None:
        for ts, batch in groupby(sorted(changes, key=itemgetter(1)), key=itemgetter(1)):
            before, after = partition.change([(row, diff) for row, _, diff in batch])
            rows += _difference(before[0], after[0], ts, self._identity)
            errors += _error_difference(before[1], after[1], ts)

    def commit(self, upper: Timestamp) -> None:
        self._kept.insert_keyed(self._pending)
        self._kept.advance_since(step_back(upper))
        for key, partition in self._changed.items():
            self._cache.put(key, partition)
        self.abort()

    def abort(self) -> None:
        """Partitions that were changed are no longer in the cache: they were taken out of it."""
        self._pending = {}
        self._changed = {}


class _Partitions:
    """Makes partitions of rows as they are kept."""

    def __init__(self, node: WindowNode, types: Types) -> None:
        self._windowing = Windowing(types, node.order, node.calls)
        self._identity = identity_function(types)
        self._by_order = order_key(types, node.order)
        self._by_row = whole_row_key(types)

    def of(self, entries: Iterable[Entry]) -> "_Partition":
        rows: OrderedCounts[Row] = OrderedCounts()
        counted = counted_by_identity(entries, self._identity).values()
        rows.load([(self._sort_key(row), row, count) for row, count in counted])
        return _Partition(self._windowing, self._sort_key, rows)

    def _sort_key(self, row: Row) -> TotalKey:
        encoded, looks = self._by_row(row)
        return self._by_order(row) + encoded, looks


class _Partition:
    """The rows of one partition in order, and what its functions last gave for all of them."""

    def __init__(
        self, windowing: Windowing, sort_key: Callable[[Row], TotalKey], rows: OrderedCounts[Row]
    ) -> None:
        self._windowing = windowing
        self._reach = windowing.reach
        self._sort_key = sort_key
        self._rows = rows
        self._known: Shown | None = None

    @property
    def size(self) -> int:
        return len(self._rows)

    def change(self, changes: Sequence[Counted]) -> tuple[Shown, Shown]:
        """What was shown before and is shown after these changes, less what stays anyway."""
        keyed = [(self._sort_key(row), row, diff) for row, diff in changes]
        keys = [key for key, _, _ in keyed]
        before = self._shown(keys)
        for key, row, diff in keyed:
            self._rows.change(key, row, diff)
        self._known = None
        return before, self._shown(keys)

    def _shown(self, keys: Sequence[TotalKey]) -> Shown:
        """Rows with the values of the functions, and the errors of those that fail.

        If functions look a few rows away only, just the rows so near to these keys. What is not
        near before a change is not near after it: rows between it and the next key stay.
        """
        if self._reach is not None:
            return self._around(keys, self._reach)
        if self._known is None:
            self._known = self._windowing.over(self._repeated(0, len(self._rows.order)))
        return self._known

    def _around(self, keys: Sequence[TotalKey], reach: int) -> Shown:
        order = self._rows.order
        count = len(order)
        # Up to so many rows on either side, with the key itself between them if it is there.
        spans = [
            (bisect_left(order, key) - reach, bisect_right(order, key) + reach)
            for key in sorted(keys)
        ]
        shown: list[Counted] = []
        errors: list[tuple[str, int]] = []
        for first, end in _merged(spans, count):
            before = self._repeated(max(first - reach, 0), first)
            asked = self._repeated(first, end)
            after = self._repeated(end, min(end + reach, count))
            rows = [*before, *asked, *after]
            found = self._windowing.over(rows, len(before), len(before) + len(asked))
            shown += found[0]
            errors += found[1]
        return shown, errors

    def _repeated(self, first: int, end: int) -> list[Row]:
        """Rows at these places of the order, each as often as it is there."""
        counted = map(self._rows.get, self._rows.order[first:end])
        return [row for row, n in counted for _ in range(n)]


def _merged(spans: Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Spans in order, within the partition, those that touch made one."""
    merged: list[tuple[int, int]] = []
    for first, end in spans:
        first, end = max(first, 0), min(end, count)
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((first, end))
    return [(first, end) for first, end in merged if first < end]


def _difference(
    before: list[Counted], after: list[Counted], ts: int, identity: RowKey | None
) -> list[Entry]:
    """What must be added to `before` to make it `after`.

    Both are in order, so that what is the same at either end is nearly all that is the same.
    """
    start, ends = 0, (len(before), len(after))
    if identity is None:
        start = _same(before, after)
        left = min(ends) - start
        tail = _same(before[::-1][:left], after[::-1][:left])
        ends = ends[0] - tail, ends[1] - tail
    return difference(before[start : ends[0]], after[start : ends[1]], ts, identity)


def _same(before: list[Counted], after: list[Counted]) -> int:
    """How many are equal from the beginning."""
    pairs = enumerate(zip(before, after, strict=False))
    least = min(len(before), len(after))
    return next((at for at, (old, new) in pairs if old != new), least)


def _error_difference(
    before: list[tuple[str, int]], after: list[tuple[str, int]], ts: int
) -> list[ErrorEntry]:
    sums: dict[str, int] = {}
    for errors, sign in ((before, -1), (after, 1)):
        for error, count in errors:
            sums[error] = sums.get(error, 0) + sign * count
    return [(error, ts, diff) for error, diff in sums.items() if diff]
