"""Top-k and threshold: nodes that show some rows of a group, depending on the others."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol

import numpy as np

from evertide.dataflow.delta_plan import ThresholdNode, TopKNode
from evertide.expr.columnar.batch import Entry
from evertide.expr.columnar.codes import looks_are_known
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.group_rows import Counted, positive_part
from evertide.expr.relation import OrderKey, Types
from evertide.expr.row_key import RowKey, identity_function, order_key, whole_row_key
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.delta import Delta, Room, Tick, counted_by_identity, difference
from evertide.spark.operators.grouping.group_cache import GroupCache
from evertide.spark.operators.grouping.ordered import OrderedCounts, TotalKey
from evertide.spark.operators.ranking.columns import ColumnRegroup, Window, pays
from evertide.spark.operators.ranking.ranks import RowOrder
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back

# A group so large is rather changed by columns, which keep its first rows, than read row by row.
LARGE_ROWS: Final = 2_000


class ShowingGroup(Protocol):
    """The rows of one group, and which of them are shown."""

    @property
    def size(self) -> int: ...

    def change(self, row: Row, diff: int) -> None:
        """One row more or less."""
        ...

    def shown(self) -> list[Counted]:
        """What is shown now, with multiplicities."""
        ...


class RegroupOperator:
    """Keeps its input by group; per (group, timestamp) emits how what is shown has changed.

    Few changes are taken row by row, many by columns. Both ways keep something ready between ticks,
    and each makes the other forget the groups it has changed.
    """

    def __init__(
        self,
        source: int,
        kept: Arrangement,
        make_group: Callable[[Iterable[Entry]], ShowingGroup],
        columns: ColumnRegroup | None,
    ) -> None:
        self._input = source
        self._make_group = make_group
        self._identity = identity_function(kept.types)
        self._kept = kept
        self._columns = columns
        self._cache: GroupCache[ShowingGroup] = GroupCache()
        self._pending: dict[bytes, list[Entry]] = {}
        self._changed: dict[bytes, ShowingGroup] = {}

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return (self._kept,)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._input]
        if not len(delta):
            return delta
        if pays(len(delta)) and (shown := self._step_columns(delta)) is not None:
            return shown
        key_of = self._kept.key_of
        for entry in delta.rows:
            self._pending.setdefault(key_of(entry[0]), []).append(entry)
        if self._has_large_group() and (shown := self._step_columns(delta)) is not None:
            self._pending = {}
            return shown
        self._changed = self._cache.take_or_make(list(self._pending), self._kept, self._make_group)
        rows: list[Entry] = []
        for key, changes in self._pending.items():
            rows += self._change_group(self._changed[key], changes)
        return Delta(rows, delta.errors)

    def _step_columns(self, delta: Delta) -> Delta | None:
        """None if columns cannot do it."""
        if self._columns is None:
            return None
        shown = self._columns.step(delta.batch(self._kept.types))
        return None if shown is None else Delta(errors=delta.errors, batch=shown)

    def _has_large_group(self) -> bool:
        """Whether reading the groups of these changes row by row would take long."""
        if self._columns is None:
            return False
        ready = self._cache
        missing = [key for key in self._pending if key not in ready]
        return self._columns.size_of_largest(hash_bytes(missing)) >= LARGE_ROWS

    def _change_group(self, group: ShowingGroup, changes: list[Entry]) -> list[Entry]:
        rows: list[Entry] = []
        before = group.shown()
        for ts, batch in groupby(sorted(changes, key=itemgetter(1)), key=itemgetter(1)):
            for row, _, diff in batch:
                group.change(row, diff)
            after = group.shown()
            rows += difference(before, after, ts, self._identity)
            before = after
        return rows

    def commit(self, upper: Timestamp) -> None:
        if self._columns is not None:
            self._forget_changed(self._columns)
            self._columns.commit()
        self._kept.insert_keyed(self._pending)
        self._kept.advance_since(step_back(upper))
        for key, group in self._changed.items():
            self._cache.put(key, group)
        self.abort()

    def _forget_changed(self, columns: ColumnRegroup) -> None:
        """What one way has changed the other no longer has ready."""
        if self._pending:
            columns.forget(hash_bytes(list(self._pending)))
        keys = self._cache.keys if columns.pending is not None else []
        if columns.pending is not None and keys:
            touched = np.isin(hash_bytes(keys), columns.pending.hashes)
            for at in np.flatnonzero(touched).tolist():
                self._cache.take(keys[at])

    def abort(self) -> None:
        """Groups that were changed are no longer in the cache: they were taken out of it."""
        self._pending = {}
        self._changed = {}
        if self._columns is not None:
            self._columns.abort()


@dataclass(frozen=True, slots=True)
class _EqualRows:
    """Rows that are equal in SQL: a few looks of one row."""

    types: Types
    identity: RowKey | None
    rows: dict[Hashable, Counted]

    @property
    def size(self) -> int:
        return len(self.rows)

    def change(self, row: Row, diff: int) -> None:
        name = row if self.identity is None else self.identity(row)
        self.rows[name] = (row, diff + (self.rows[name][1] if name in self.rows else 0))

    def shown(self) -> list[Counted]:
        return positive_part([counted for counted in self.rows.values() if counted[1]], self.types)


@dataclass(frozen=True, slots=True)
class _OrderedRows:
    """All rows of a group in order, of which those from offset to offset + limit are shown."""

    node: TopKNode
    sort_key: Callable[[Row], TotalKey]
    rows: OrderedCounts[Row]

    @property
    def size(self) -> int:
        return len(self.rows)

    def change(self, row: Row, diff: int) -> None:
        self.rows.change(self.sort_key(row), row, diff)

    def shown(self) -> list[Counted]:
        """A row counts as often as it is there."""
        kept: list[Counted] = []
        skip, left = self.node.offset, self.node.limit
        for key in self.rows.order:
            if left == 0:
                break
            row, count = self.rows.get(key)
            taken = max(count - skip, 0)
            skip = max(skip - count, 0)
            if left is not None:
                taken = min(taken, left)
                left -= taken
            if taken:
                kept.append((row, taken))
        return kept


def top_k_operator(node: TopKNode, room: Room) -> RegroupOperator:
    """Of each group the rows from offset to offset + limit."""
    by_order, by_row = order_key(node.types, node.order), whole_row_key(node.types)
    identity = identity_function(node.types)

    def sort_key(row: Row) -> TotalKey:
        encoded, looks = by_row(row)
        return by_order(row) + encoded, looks

    def make_group(entries: Iterable[Entry]) -> ShowingGroup:
        rows: OrderedCounts[Row] = OrderedCounts()
        counted = counted_by_identity(entries, identity).values()
        rows.load([(sort_key(row), row, count) for row, count in counted])
        return _OrderedRows(node, sort_key, rows)

    kept = room.arrangement("rows", node.types, node.group, MIN_TS)
    columns = _columns(kept, node.order, Window.of_limit(node.offset, node.limit))
    return RegroupOperator(node.input, kept, make_group, columns)


def threshold_operator(node: ThresholdNode, room: Room) -> RegroupOperator:
    """Rows with positive multiplicity."""
    identity = identity_function(node.types)

    def make_group(entries: Iterable[Entry]) -> ShowingGroup:
        return _EqualRows(node.types, identity, counted_by_identity(entries, identity))

    kept = room.arrangement("rows", node.types, tuple(range(len(node.types))), MIN_TS)
    columns = _columns(kept, (), Window.of_all_there())
    return RegroupOperator(node.input, kept, make_group, columns)


def _columns(kept: Arrangement, order: Sequence[OrderKey], window: Window) -> ColumnRegroup | None:
    """None where columns cannot tell apart what is equal and looks different."""
    if not all(looks_are_known(sql_type) for sql_type in kept.types):
        return None
    return ColumnRegroup(kept, RowOrder.of(kept.types, order, kept.key), window)
