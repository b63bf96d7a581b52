"""GROUP BY of few changes: group by group, value by value, over the state of reduce_columns.py."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from evertide.expr.aggregate import Weighted, least_error
from evertide.expr.columnar.batch import Entry, from_rows
from evertide.expr.columnar.column import to_datums
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.row_key import RowKey, identity_function
from evertide.persist.coding.keys import row_key_encoder
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.delta import ErrorEntry, counted_by_identity
from evertide.spark.operators.grouping.group import first_error
from evertide.spark.operators.grouping.group_rows import RowSlot
from evertide.spark.operators.grouping.members import weighted
from evertide.spark.operators.grouping.reduce_slots import ReduceShape
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error

# (timestamp, diff, key and arguments)
Change: TypeAlias = tuple[int, int, Row]

# A group of more rows is read by columns.
_LARGE_GROUP: Final = 2_000
# The rows of state of so many groups are at hand once they have been looked up.
_KNOWN_GROUPS: Final = 4_096


@dataclass(slots=True)
class Count:
    """How often a value is in its group, and how that changes."""

    now: int
    changes: list[Entry] = field(default_factory=list)


Counted: TypeAlias = dict[bytes, Count]


class Few(NamedTuple):
    """What a tick of few changes gives, and what it changes in each arrangement, by key."""

    rows: list[Entry]
    errors: list[ErrorEntry]
    groups: dict[bytes, list[Entry]]
    members: dict[bytes, list[Entry]]
    distinct: tuple[Counted, ...]
    # The row of state that each group has from now on; None: there is nothing to remember.
    states: dict[bytes, Row | None]


class RowReduce:
    """Looks at arrangements, changes none.

    Most ticks touch groups that were touched a moment ago: their rows of state are kept at hand, so
    that they need not be put together from columns each time.
    """

    def __init__(
        self, shape: ReduceShape, groups: Arrangement, members: Arrangement | None
    ) -> None:
        self.shape = shape
        self.groups = groups
        self.members = members
        self.encode = row_key_encoder(shape.key_types)
        self.width = len(shape.keys)
        self._identity = identity_function(shape.output_types)
        self._state_identity = identity_function(shape.state_types)
        self._known: dict[bytes, Row | None] = {}

    def reduce(self, entries: Sequence[Entry]) -> Few:
        """Go through the groups that are touched, and for each through the tick's timestamps."""
        changes, errors = self._by_group(entries)
        old = self._old(changes)
        few = Few([], errors, {}, {}, tuple(self._distinct_counts(changes)), {})
        for encoded, changed in changes.items():
            self._reduce_group(encoded, changed, old[encoded], few)
        return few

    def _old(self, keys: Collection[bytes]) -> dict[bytes, Row | None]:
        """The rows of state of these groups before the tick."""
        known = self._known
        unknown = [key for key in keys if key not in known]
        if unknown:
            found = self.groups.probe(unknown)
            if len(known) + len(unknown) > _KNOWN_GROUPS:
                known = self._known = {key: known[key] for key in keys if key in known}
            for key in unknown:
                known[key] = _only_row(found.get(key, ()), self._state_identity)
        return known

    def take_in(self, few: Few) -> None:
        """The arrangements have this tick's changes now."""
        self._known.update(few.states)

    def forget(self) -> None:
        """The arrangements were changed otherwise."""
        self._known = {}

    def _distinct_counts(self, changes: Mapping[bytes, list[Change]]) -> Iterator[Counted]:
        """How often each value is there whose number will change; all are looked up at once."""
        for distinct in self.shape.distinct:
            kept, place = distinct.kept, self.width + distinct.column
            rows = {
                kept.key_of(row): row
                for changed in changes.values()
                for _, _, seen in changed
                if (row := (*seen[: self.width], seen[place]))[-1] is not None
            }
            found = kept.probe(list(rows))
            yield {key: Count(sum(e[2] for e in found.get(key, ()))) for key in rows}

    def _by_group(
        self, entries: Sequence[Entry]
    ) -> tuple[dict[bytes, list[Change]], list[ErrorEntry]]:
        functions, width, encode = self.shape.row_functions, self.width, self.encode
        changes: dict[bytes, list[Change]] = {}
        failed: list[ErrorEntry] = []
        for row, ts, diff in entries:
            try:
                seen = tuple([function(row) for function in functions])
            except SqlError:
                failed.append((first_error(self.shape.in_query_order, row), ts, diff))
                continue
            changes.setdefault(encode(seen[:width]), []).append((ts, diff, seen))
        return changes, failed

    def _reduce_group(
        self, encoded: bytes, changes: list[Change], old: Row | None, few: Few
    ) -> None:
        key = changes[0][2][: self.width]
        group = _Group(self, key, old, few)
        before = old
        if len(changes) > 1:
            changes.sort(key=itemgetter(0))
        for ts, batch in groupby(changes, key=itemgetter(0)):
            after = group.change(list(batch))
            self._emit(before, after, ts, few)
            before = after
        few.states[encoded] = kept = group.kept_row()
        few.groups[encoded] = [(row, 0, diff) for row, diff in ((old, -1), (kept, 1)) if row]
        if self.members is not None:
            few.members[encoded] = group.member_changes

    def _emit(self, before: Row | None, after: Row, ts: int, few: Few) -> None:
        """What the group showed goes, what it shows comes."""
        shown = [self._shown(row) for row in (before, after)]
        if shown[0] == shown[1] and self._identity is None:
            return
        for output, diff in zip(shown, (-1, 1), strict=True):
            if output is None:
                continue
            row, error = output
            if error is not None:
                few.errors.append((error, ts, diff))
            else:
                few.rows.append((row, ts, diff))

    def _shown(self, state: Row | None) -> tuple[Row, str | None] | None:
        if state is None:
            return None
        rows = state[self.width]
        assert isinstance(rows, int), "rows are counted"
        if rows <= 0:
            return None
        if state[-1] is not None:
            return (), str(state[-1])
        first = len(state) - 1 - len(self.shape.slots)
        return state[: self.width] + state[first:-1], None


def _only_row(entries: Sequence[Entry], identity: RowKey | None) -> Row | None:
    """A group has one row of state; what came and went has been added up, or is there both ways."""
    if len(entries) == 1:
        return entries[0][0]
    left = [row for row, count in counted_by_identity(entries, identity).values() if count]
    assert len(left) <= 1, "a group has one row of state"
    return left[0] if left else None


@dataclass
class _Group:
    """One group on its way through a tick."""

    reduce: RowReduce
    key: Row
    old: InitVar[Row | None]
    few: Few
    rows: int = 0
    slots: list[RowSlot] = field(default_factory=list)
    member_changes: list[Entry] = field(default_factory=list)
    last: Row = ()

    def __post_init__(self, old: Row | None) -> None:
        shape, width = self.reduce.shape, self.reduce.width
        old = old if old is not None else shape.new_row(self.key)
        rows = old[width]
        assert isinstance(rows, int), "rows are counted"
        self.rows = rows
        position = width + 1
        results = position + len(shape.sum_types)
        for number, slot in enumerate(shape.slots):
            kept = old[position : position + len(slot.types)]
            self.slots.append(slot.row_slot(kept, old[results + number]))
            position += len(slot.types)

    def change(self, changes: Sequence[Change]) -> Row:
        """The row of state after these changes, all of one timestamp."""
        shape, width = self.reduce.shape, self.reduce.width
        for ts, diff, seen in changes:
            self.rows += diff
            if self.reduce.members is not None:
                member = seen[:width] + tuple([seen[width + i] for i in shape.members])
                self.member_changes.append((member, ts, diff))
        for slot, column in zip(self.slots, shape.slot_columns, strict=True):
            if column is not None:
                slot.change(self, [(seen[width + column], diff) for _, diff, seen in changes])
        return self._row()

    def _row(self) -> Row:
        results: list[Datum] = []
        failures: list[SqlError] = []
        for slot in self.slots:
            try:
                results.append(slot.result(self))
            except SqlError as error:
                failures.append(error)
                results.append(None)
        text = encode_error(least_error(failures)) if failures else None
        sums = [datum for slot in self.slots for datum in slot.kept()]
        self.last = (*self.key, self.rows, *sums, *results, text)
        return self.last

    def kept_row(self) -> Row | None:
        """The row of state at the end; None if there is nothing to remember."""
        sums = self.last[self.reduce.width + 1 : len(self.last) - 1 - len(self.slots)]
        if self.rows == 0 and all(datum in (None, 0, b"\x00") for datum in sums):
            return None
        return self.last

    def values(self, column: int) -> Weighted:
        """The values of an argument that are not NULL, those of this tick so far included."""
        reduce = self.reduce
        assert reduce.members is not None, "values that are looked at are kept"
        place = reduce.width + reduce.shape.members.index(column)
        entries = [(row[place], diff) for row, _, diff in self.member_changes]
        entries += self._old_values(place)
        return weighted(reduce.shape.member_types[place], entries)

    def _old_values(self, place: int) -> list[tuple[Datum, int]]:
        members = self.reduce.members
        assert members is not None, "values that are looked at are kept"
        encoded = self.reduce.encode(self.key)
        if self.rows <= _LARGE_GROUP:
            found = members.probe([encoded]).get(encoded, ())
            return [(row[place], diff) for row, _, diff in found]
        keys = from_rows(self.reduce.shape.key_types, [self.key])
        _, batch = members.find(keys, hash_bytes([encoded]))
        datums = to_datums(batch.types[place], batch.columns[place])
        return list(zip(datums, batch.diffs.tolist(), strict=True))

    def count_distinct(self, number: int, value: Datum, diff: int) -> int:
        """Note that a value comes or goes; gives how often it was there before."""
        row = (*self.key, value)
        count = self.few.distinct[number][self.reduce.shape.distinct[number].kept.key_of(row)]
        before = count.now
        count.now += diff
        count.changes.append((row, 0, diff))
        return before
