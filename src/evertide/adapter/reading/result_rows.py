"""A result's rows as they come in batches: counted, cut by OFFSET and LIMIT, handed out; pure.

A row that is there a thousand million times is one row and a count, until somebody takes it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from evertide.adapter.reading.selection import to_rows
from evertide.adapter.temporary.tables import least_row_weight
from evertide.expr.relation import Finishing, Types
from evertide.expr.row_key import picker
from evertide.persist.coding.batch import from_payload
from evertide.persist.faults import Corrupt
from evertide.persist.image import Ints
from evertide.vocab.datum import Row
from evertide.vocab.errors import DataCorrupted, InternalError, decode_error
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc

# So many rows are handed out at once, and fewer if they have many columns.
PIECE_ROWS: Final = 1_000
_PIECE_VALUES: Final = 20_000

# Rows by their places in a batch: from the first up to but not including the second.
RowsBetween: TypeAlias = Callable[[int, int], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows, made when they are asked for, and how often each of them is there."""

    rows: RowsBetween
    counts: Ints


def decode_batch(types: Types, payload: bytes) -> Batch:
    """A batch as a replica sends it. One in columns stays in them.

    Raises the error that it has instead of rows.
    """
    desc = RelationDesc(tuple(ColumnDesc(f"c{i}", t) for i, t in enumerate(types)))
    try:
        found = from_payload(desc, payload)
        if found.columnar:
            errors = found.table.column("e").drop_null().to_pylist()
            counts = found.table.column("d").to_numpy()
            rows: RowsBetween = partial(_make_rows, found.table, types)
        else:
            columns = found.columns
            errors = [error for error in columns.errors or () if error is not None]
            counts = np.array(columns.diffs, np.int64)
            rows = partial(_slice_rows, columns.rows)
    except Corrupt as fault:
        raise DataCorrupted(
            f"a part of the result cannot be read: {fault}", hint="Run the query again."
        ) from fault
    if errors:
        raise decode_error(min(errors))
    if (counts < 0).any():
        raise InternalError("a row of the result has a negative multiplicity")
    return Batch(rows, counts)


def _make_rows(table: pa.Table, types: Types, start: int, stop: int) -> Sequence[Row]:
    return to_rows(table.slice(start, stop - start), types)


def _slice_rows(rows: Sequence[Row], start: int, stop: int) -> Sequence[Row]:
    return rows[start:stop]


@dataclass(slots=True)
class Window:
    """OFFSET and LIMIT of rows that go by: how many are still to be passed over, and wanted.

    A row counts as often as it is there.
    """

    skip: int
    left: int | None

    @property
    def is_over(self) -> bool:
        return self.left == 0

    def wanted_of(self, total: int) -> int:
        """How many of the next so many rows are wanted."""
        seen = max(total - self.skip, 0)
        return seen if self.left is None else min(seen, self.left)

    def cut(self, counts: Ints) -> tuple[int, Ints]:
        """Goes on beyond rows that are there so often. The place of the first one that is wanted,
        and how often it and those behind it are."""
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        start, wanted = self.skip, self.wanted_of(total)
        self.skip = max(self.skip - total, 0)
        if self.left is not None:
            self.left -= wanted
        if not wanted:
            return 0, counts[:0]
        stop = start + wanted
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left"))
        cut = counts[first : last + 1].copy()
        cut[-1] -= int(ends[last]) - stop
        cut[0] -= start - (int(ends[first - 1]) if first else 0)
        return first, cut


class RowsAtHand:
    """What is wanted of one batch. Holds no more rows, as Python's, than are handed out at once."""

    def __init__(
        self, batch: Batch, window: Window, types: Types, project: tuple[int, ...] | None
    ) -> None:
        self._batch = batch
        self._place, self._counts = window.cut(batch.counts)
        self._pick = None if project is None else picker(project)
        self._step = max(1, min(PIECE_ROWS, _PIECE_VALUES // max(1, len(types))))
        self._total = int(self._counts.sum())
        # The rows of a step, each as often as it is wanted.
        self._made: Iterator[Row] = iter(())
        self._made_count = 0

    def __len__(self) -> int:
        return self._total

    def take(self, most: int | None) -> list[Row]:
        """Some of them, and no more than `most`; there must be some left."""
        while not self._made_count:
            self._make()
        count = min(self._made_count, PIECE_ROWS if most is None else most, PIECE_ROWS)
        self._made_count -= count
        self._total -= count
        return list(islice(self._made, count))

    def _make(self) -> None:
        """Makes the rows of the next step."""
        counts, self._counts = self._counts[: self._step], self._counts[self._step :]
        start, self._place = self._place, self._place + len(counts)
        rows = self._batch.rows(start, self._place)
        if self._pick is not None:
            rows = list(map(self._pick, rows))
        self._made_count = int(counts.sum())
        if self._made_count == len(rows) and (counts == 1).all():
            self._made = iter(rows)
        else:
            self._made = chain.from_iterable(map(repeat, rows, counts.tolist()))


class Finisher:
    """What is done to a query's rows last, to rows that come in batches and in order."""

    def __init__(self, finishing: Finishing, types: Types) -> None:
        self._types = types
        self._project = finishing.project
        self._window = Window(finishing.offset, finishing.limit)

    @property
    def is_over(self) -> bool:
        """Whether no more rows are wanted, whatever comes."""
        return self._window.is_over

    def decode(self, payload: bytes) -> Batch:
        """A batch. May take its time."""
        return decode_batch(self._types, payload)

    def open(self, batch: Batch) -> RowsAtHand:
        """What is wanted of the next batch."""
        return RowsAtHand(batch, self._window, self._types, self._project)

    def weight_of(self, rows: int, size: int) -> int:
        """About how many bytes take what is wanted of so many rows of this size together."""
        wanted = self._window.wanted_of(rows)
        shown = len(self._types if self._project is None else self._project)
        return size * wanted // max(rows, 1) + wanted * least_row_weight(shown)
