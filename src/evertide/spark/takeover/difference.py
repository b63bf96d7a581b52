"""What a new definition of a view would change: its rows less those that the view holds.

Both sides come as updates and are added up with opposite signs: all that is kept is what differs.
A row that both hold costs nothing, however many there are. Rows are told apart by representation,
as shards tell them apart.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from evertide.persist.coding.batch import UpdateBatch, concat_batches
from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.updates import row_identity
from evertide.persist.threads import give_way
from evertide.persist.upkeep.merge import add_up, from_keys, hashes_of, split_rows, to_keys
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# So many rows of both sides are compared at a time.
STEP_ROWS: Final = 1 << 17
_PLAIN_BYTES: Final = 8


@dataclass(slots=True)
class Tally:
    """How many records, and about how many bytes of them."""

    records: int = 0
    size_bytes: int = 0

    def add(self, records: int, each_bytes: int) -> None:
        """So many more, or fewer, of one row."""
        self.records += records
        self.size_bytes += records * each_bytes


class Difference:
    """Sums of diffs by row and by error: what is there more than zero times is to be inserted."""

    def __init__(self, desc: RelationDesc) -> None:
        self._identity = row_identity(desc.types)
        self._rows: dict[Hashable, tuple[Row, int]] = {}
        self._errors: dict[str, int] = {}
        self.inserted = Tally()
        self.deleted = Tally()

    def __len__(self) -> int:
        """How many rows and errors differ: all that memory is needed for."""
        return len(self._rows) + len(self._errors)

    def add(self, updates: UpdateBatch, sign: int) -> None:
        """More of the new side (1) or of the old one (-1), whatever their times."""
        identity = self._identity
        for row, _, diff, error in updates.columns.each():
            if error is not None:
                self._add_error(error, sign * diff)
            else:
                self._add_row(row if identity is None else identity(row), row, sign * diff)

    def updates(self, at: Timestamp) -> list[Update]:
        """What turns the old side into the new one, all at one timestamp."""
        rows = [Update(row, at, diff) for row, diff in self._rows.values()]
        return rows + [Update((), at, diff, error) for error, diff in self._errors.items()]

    def _add_row(self, name: Hashable, row: Row, diff: int) -> None:
        known = self._rows.get(name)
        before = 0 if known is None else known[1]
        after = before + diff
        if after:
            self._rows[name] = (row if known is None else known[0], after)
        elif known is not None:
            del self._rows[name]
        self._count(before, after, row_bytes(row))

    def _add_error(self, error: str, diff: int) -> None:
        before = self._errors.get(error, 0)
        after = before + diff
        if after:
            self._errors[error] = after
        else:
            self._errors.pop(error, None)
        self._count(before, after, len(error))

    def _count(self, before: int, after: int, each_bytes: int) -> None:
        self.inserted.add(max(after, 0) - max(before, 0), each_bytes)
        self.deleted.add(max(-after, 0) - max(-before, 0), each_bytes)


def row_bytes(row: Row) -> int:
    """About how much room a row takes where it is stored."""
    return sum(map(_datum_bytes, row))


def _datum_bytes(datum: Datum) -> int:
    match datum:
        case str() | bytes():
            return len(datum)
        case tuple():
            return row_bytes(datum)
        case None:
            return 1
        case _:
            return _PLAIN_BYTES


def compare(desc: RelationDesc, new: Sequence[UpdateBatch], old: UpdateBatch) -> Difference:
    """The difference of two whole contents, for a thread: it gives way again and again.

    By columns, a share of the rows at a time: equal rows have equal hashes, so what cancels meets.
    """
    found = Difference(desc)
    come = concat_batches(desc, new)
    if len(come) + len(old) <= STEP_ROWS:
        found.add(come, 1)
        found.add(old, -1)
        return found
    sides = [_keys(come, 1), _keys(old, -1)]
    hashes = [hashes_of(side) for side in sides]
    steps = 1
    while steps * STEP_ROWS < len(come) + len(old):
        steps *= 2
    for residue in range(steps):
        shares = [
            split_rows(side, numbers, residue=residue, steps=steps, buckets=steps)[0]
            for side, numbers in zip(sides, hashes, strict=True)
        ]
        left = from_keys(add_up(shares, Timestamp(0)), update_schema(desc))
        give_way()
        found.add(UpdateBatch(desc, table=left), 1)
    return found


def _keys(batch: UpdateBatch, sign: int) -> pa.Table:
    """Rows by representation, with their times made equal, so that the same row is the same."""
    table = batch.table
    times = pa.repeat(pa.scalar(0, pa.int64()), table.num_rows)
    diffs = table["d"] if sign > 0 else pc.negate(table["d"])
    for name, column in (("t", times), ("d", diffs)):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), column)
    return to_keys(table)
