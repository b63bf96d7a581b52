"""One group of a GROUP BY that goes row by row: its aggregates, ready to be changed again.

Most ticks touch groups that were touched a moment ago, so a group stays as it is between ticks,
beside the row of state that the arrangement has of it. If a tick is aborted, it is thrown away.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from evertide.expr.aggregate import Weighted, least_error
from evertide.expr.columnar.batch import Entry, from_rows
from evertide.expr.columnar.column import to_datums
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.relation import Types
from evertide.persist.coding.keys import row_key_encoder
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.grouping.group_rows import Count, RowSlot
from evertide.spark.operators.grouping.members import weighted
from evertide.spark.operators.grouping.reduce_slots import ExtremeSlot, ReduceShape, Slot
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error

# (timestamp, diff, key and arguments)
Change: TypeAlias = tuple[int, int, Row]

# A group of more rows is read by columns.
LARGE_GROUP: Final = 2_000


class Layout(NamedTuple):
    """Where everything is in a group's row of state, and in a row that was evaluated."""

    width: int
    # Each aggregate, where what it keeps begins and ends, where its result is, and its argument.
    slots: tuple[tuple[Slot, int, int, int, int | None], ...]
    results: int
    new_row: Row
    key_types: Types
    members: tuple[int, ...]
    member_types: Types
    kept_members: Arrangement | None
    # Which aggregates look at their group's values.
    looking: tuple[int, ...]
    state_columns: int

    @classmethod
    def of(cls, shape: ReduceShape, members: Arrangement | None) -> "Layout":
        width = len(shape.keys)
        position, results = width + 1, width + 1 + len(shape.sum_types)
        slots: list[tuple[Slot, int, int, int, int | None]] = []
        for number, slot in enumerate(shape.slots):
            end = position + len(slot.types)
            argument = None if slot.column is None else width + slot.column
            slots.append((slot, position, end, results + number, argument))
            position = end
        arguments = tuple([width + i for i in shape.members])
        new_row = shape.new_row(())
        return cls(
            width,
            tuple(slots),
            results,
            new_row,
            shape.key_types,
            arguments,
            shape.member_types,
            members,
            tuple([i for i, slot in enumerate(shape.slots) if slot.needs_members]),
            len(shape.state_types),
        )


class LiveGroup:
    """`kept` is the row of state that the arrangement has; None: it has none.

    `counts`: of each aggregate over DISTINCT values, those that this tick changes. `found`: what
    the arrangement has of the group's values, if that was looked up already.
    """

    __slots__ = ("_layout", "_slots", "changes", "counts", "found", "kept", "key", "rows")

    def __init__(self, layout: Layout, key: Row, kept: Row | None) -> None:
        self._layout = layout
        self.key = key
        self.kept = kept
        row = (*key, *layout.new_row) if kept is None else kept
        rows = row[layout.width]
        assert isinstance(rows, int), "rows are counted"
        self.rows = rows
        self._slots: list[tuple[RowSlot, int | None]] = [
            (slot.row_slot(row[start:end], row[result]), argument)
            for slot, start, end, result, argument in layout.slots
        ]
        self.counts: list[Mapping[Datum, Count]] = []
        self.changes: list[Entry] = []
        self.found: Sequence[Entry] | None = None

    def may_look(self, changes: Sequence[Change]) -> bool:
        """Whether some aggregate will probably look at the group's values."""
        if self.rows > LARGE_GROUP:
            return False
        went = [seen for _, diff, seen in changes if diff < 0]
        for number in self._layout.looking:
            slot, _, _, _, argument = self._layout.slots[number]
            if not isinstance(slot, ExtremeSlot) or not slot.never_negative:
                return True
            if went and argument is not None:
                shown = self._slots[number][0].result(self)
                if shown in [seen[argument] for seen in went]:
                    return True
        return False

    def change(self, changes: Sequence[Change]) -> Row:
        """The row of state after these changes, all of one timestamp."""
        layout = self._layout
        if layout.kept_members is not None:
            width, members = layout.width, layout.members
            for ts, diff, seen in changes:
                member = seen[:width] + tuple([seen[i] for i in members])
                self.changes.append((member, ts, diff))
        self.rows += sum([diff for _, diff, _ in changes])
        results: list[Datum] = []
        sums: list[Datum] = []
        failures: list[SqlError] = []
        for slot, argument in self._slots:
            if argument is not None:
                slot.change(self, [(seen[argument], diff) for _, diff, seen in changes])
            try:
                results.append(slot.result(self))
            except SqlError as error:
                failures.append(error)
                results.append(None)
            sums += slot.kept()
        text = encode_error(least_error(failures)) if failures else None
        return (*self.key, self.rows, *sums, *results, text)

    def finish(self, row: Row) -> list[Entry]:
        """The tick ends with this row of state: how what is kept of the group changes."""
        old, layout = self.kept, self._layout
        self.kept = row
        if not self.rows:
            sums = row[layout.width + 1 : layout.results]
            if all(datum in (None, 0, b"\x00") for datum in sums):
                self.kept = None
        self.counts, self.changes, self.found = [], [], None
        return [(row, 0, diff) for row, diff in ((old, -1), (self.kept, 1)) if row is not None]

    def values(self, column: int) -> Weighted:
        """The values of an argument that are not NULL, those of this tick so far included."""
        layout = self._layout
        place = layout.width + layout.members.index(layout.width + column)
        entries = [(row[place], diff) for row, _, diff in self.changes]
        if self.found is None and self.rows > LARGE_GROUP:
            entries += self._large_values(place)
        else:
            entries += [(row[place], diff) for row, _, diff in self._entries()]
        return weighted(layout.member_types[place], entries)

    def _entries(self) -> Sequence[Entry]:
        if self.found is None:
            members = self._layout.kept_members
            assert members is not None, "values that are looked at are kept"
            encoded = row_key_encoder(self._layout.key_types)(self.key)
            self.found = members.probe([encoded]).get(encoded, ())
        return self.found

    def _large_values(self, place: int) -> list[tuple[Datum, int]]:
        members = self._layout.kept_members
        assert members is not None, "values that are looked at are kept"
        keys = from_rows(self._layout.key_types, [self.key])
        encoded = row_key_encoder(self._layout.key_types)(self.key)
        _, batch = members.find(keys, hash_bytes([encoded]))
        datums = to_datums(batch.types[place], batch.columns[place])
        return list(zip(datums, batch.diffs.tolist(), strict=True))
