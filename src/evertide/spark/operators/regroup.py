"""Top-k and threshold: nodes that show some rows of a group, depending on the others."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from evertide.dataflow.delta_plan import ThresholdNode, TopKNode
from evertide.expr.interpret import Counted, positive_part
from evertide.expr.relation import Types
from evertide.expr.row_key import RowKey, identity_function, order_key, whole_row_key
from evertide.spark.arrangement import Arrangement
from evertide.spark.operators.delta import Delta, Room, Tick, counted_by_identity
from evertide.spark.operators.group_cache import GroupCache
from evertide.spark.operators.ordered import OrderedCounts, TotalKey
from evertide.spark.runs import Entry
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back


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
    """Keeps its input by group; per (group, timestamp) emits how what is shown has changed."""

    def __init__(
        self,
        source: int,
        types: Types,
        key: tuple[int, ...],
        make_group: Callable[[Iterable[Entry]], ShowingGroup],
        room: Room,
    ) -> None:
        self._input = source
        self._make_group = make_group
        self._identity = identity_function(types)
        self._kept = room.arrangement("rows", types, key, MIN_TS)
        self._cache: GroupCache[ShowingGroup] = GroupCache()
        self._pending: dict[bytes, list[Entry]] = {}
        self._changed: dict[bytes, ShowingGroup] = {}

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return (self._kept,)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._input]
        if not delta.rows:
            return delta
        key_of = self._kept.key_of
        for entry in delta.rows:
            self._pending.setdefault(key_of(entry[0]), []).append(entry)
        self._changed = self._old_groups(list(self._pending))
        rows: list[Entry] = []
        for key, changes in self._pending.items():
            rows += self._change_group(self._changed[key], changes)
        return Delta(rows, delta.errors)

    def _old_groups(self, keys: Sequence[bytes]) -> dict[bytes, ShowingGroup]:
        """These groups before the tick, to be changed along with it."""
        ready = {key: group for key in keys if (group := self._cache.take(key)) is not None}
        missing = [key for key in keys if key not in ready]
        found = self._kept.probe(missing)
        return ready | {key: self._make_group(found.get(key, ())) for key in missing}

    def _change_group(self, group: ShowingGroup, changes: list[Entry]) -> list[Entry]:
        rows: list[Entry] = []
        before = group.shown()
        for ts, batch in groupby(sorted(changes, key=itemgetter(1)), key=itemgetter(1)):
            for row, _, diff in batch:
                group.change(row, diff)
            after = group.shown()
            rows += _difference(before, after, ts, self._identity)
            before = after
        return rows

    def commit(self, upper: Timestamp) -> None:
        self._kept.insert_keyed(self._pending)
        self._kept.advance_since(step_back(upper))
        for key, group in self._changed.items():
            self._cache.put(key, group)
        self.abort()

    def abort(self) -> None:
        """Groups that were changed are no longer in the cache: they were taken out of it."""
        self._pending = {}
        self._changed = {}


def _difference(
    before: list[Counted], after: list[Counted], ts: int, identity: RowKey | None
) -> list[Entry]:
    """What must be added to `before` to make it `after`."""
    if before == after and identity is None:
        return []
    sums: dict[Hashable, Entry] = {}
    for counts, sign in ((before, -1), (after, 1)):
        for row, count in counts:
            name = row if identity is None else identity(row)
            known = sums[name][2] if name in sums else 0
            sums[name] = (row, ts, known + sign * count)
    return [entry for entry in sums.values() if entry[2]]


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

    return RegroupOperator(node.input, node.types, node.group, make_group, room)


def threshold_operator(node: ThresholdNode, room: Room) -> RegroupOperator:
    """Rows with positive multiplicity."""
    identity = identity_function(node.types)

    def make_group(entries: Iterable[Entry]) -> ShowingGroup:
        return _EqualRows(node.types, identity, counted_by_identity(entries, identity))

    everything = tuple(range(len(node.types)))
    return RegroupOperator(node.input, node.types, everything, make_group, room)
