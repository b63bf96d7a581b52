"""One group of a GROUP BY that goes row by row: its aggregates, ready to be changed again.

Most ticks touch groups that were touched a moment ago, so a group stays as it is between ticks,
beside the row of state that the arrangement has of it. If a tick is aborted, it is thrown away.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from evertide.expr.aggregate import Weighted, least_error
from evertide.expr.columnar.batch import Entry, from_rows
from evertide.expr.columnar.column import to_datums
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.relation import Types
from evertide.expr.row_key import picker
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.key_parts import KeyParts
from evertide.spark.operators.grouping.group_rows import Counts, RowSlot
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
    # How a key is taken out of a row that was evaluated.
    keys: KeyParts
    members: tuple[int, ...]
    member_types: Types
    # What is kept of a row that was evaluated.
    member_of: Callable[[Row], Row]
    kept_members: Arrangement | None
    # Which aggregates look at their group's values, and whether only if what they show has gone.
    looking: tuple[int, ...]
    look_rarely: bool
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
        keys = tuple(range(width))
        return cls(
            width,
            tuple(slots),
            results,
            shape.new_row(()),
            KeyParts.of(shape.key_types, keys),
            arguments,
            shape.member_types,
            picker(keys + arguments),
            members,
            tuple([i for i, slot in enumerate(shape.slots) if slot.needs_members]),
            all(_looks_rarely(slot) for slot in shape.slots if slot.needs_members),
            len(shape.state_types),
        )

    def parts_of(self, keys: Iterable[Row]) -> Sequence[Datum]:
        """What these keys of groups are encoded from."""
        return [key[0] for key in keys] if self.width == 1 else cast("list[Datum]", list(keys))

    def key_of(self, part: Datum) -> Row:
        """The inverse, of one."""
        return (part,) if self.width == 1 else cast(Row, part)


def _looks_rarely(slot: Slot) -> bool:
    return isinstance(slot, ExtremeSlot) and slot.never_negative


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
        # With its argument, and whether it keeps something beside what it shows.
        self._slots: list[tuple[RowSlot, int | None, bool]] = [
            (slot.row_slot(row[start:end], row[result]), argument, end > start)
            for slot, start, end, result, argument in layout.slots
        ]
        self.counts: list[tuple[Counts, Mapping[Datum, int]]] = []
        self.changes: list[Entry] = []
        self.found: Sequence[Entry] | None = None

    def may_look(self, changes: Sequence[Change]) -> bool:
        """Whether some aggregate will probably look at the group's values."""
        if self.rows > LARGE_GROUP:
            return False
        layout = self._layout
        if not layout.look_rarely:
            return True
        went = [seen for _, diff, seen in changes if diff < 0]
        if went:
            for number in layout.looking:
                slot, argument, _ = self._slots[number]
                shown = slot.result(self)
                for seen in went:
                    if argument is not None and seen[argument] == shown:
                        return True
        return False

    def change(self, changes: Sequence[Change]) -> Row:
        """The row of state after these changes, all of one timestamp."""
        layout = self._layout
        if layout.kept_members is not None:
            member_of = layout.member_of
            self.changes += [(member_of(seen), ts, diff) for ts, diff, seen in changes]
        diffs = [diff for _, diff, _ in changes]
        self.rows += sum(diffs)
        results: list[Datum] = []
        sums: list[Datum] = []
        failures: list[SqlError] = []
        values: list[Datum] = []
        of: int | None = None
        for slot, argument, keeps in self._slots:
            if argument is not None:
                if argument != of:
                    values, of = [seen[argument] for _, _, seen in changes], argument
                slot.change(self, values, diffs)
            try:
                results.append(slot.result(self))
            except SqlError as error:
                failures.append(error)
                results.append(None)
            if keeps:
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
        if old is None:
            return [] if self.kept is None else [(row, 0, 1)]
        return [(old, 0, -1)] if self.kept is None else [(old, 0, -1), (row, 0, 1)]

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
            encoded = self._encoded()
            self.found = members.probe([encoded]).get(encoded, ())
        return self.found

    def _encoded(self) -> bytes:
        layout = self._layout
        (part,) = layout.parts_of([self.key])
        return layout.keys.encode(part)

    def _large_values(self, place: int) -> list[tuple[Datum, int]]:
        members = self._layout.kept_members
        assert members is not None, "values that are looked at are kept"
        keys = from_rows(self._layout.keys.types, [self.key])
        _, batch = members.find(keys, hash_bytes([self._encoded()]))
        datums = to_datums(batch.types[place], batch.columns[place])
        return list(zip(datums, batch.diffs.tolist(), strict=True))
