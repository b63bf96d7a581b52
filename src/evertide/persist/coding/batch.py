"""Updates that come and go as rows, as Arrow columns, or as the bytes that hold either.

A few updates are cheapest as rows; from about a hundred on, columns are, and then nobody on the way
between shards should touch them one by one. A batch keeps whatever it was made from, and makes
another form only when somebody asks for it. It is a sequence of updates, so whoever wants rows just
goes through it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, overload

import pyarrow as pa

from evertide.persist.coding.arrow_inline import ARROW_VERSION, decode_arrow, encode_arrow
from evertide.persist.coding.inline import decode_inline, encode_inline, encode_one
from evertide.persist.coding.parts import (
    Times,
    columns_to_table,
    table_to_columns,
    within_times,
)
from evertide.persist.coding.updates import UpdateColumns, concat_columns, to_columns
from evertide.persist.threads import give_way
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# So many rows go as columns. Measured for rows that become columns somewhere on their way: making
# these first costs 0.16 ms for 100 rows of five columns, and coding them one by one first 0.14 ms;
# at 200 it is 0.19 against 0.22 ms, at 1,000 0.51 against 0.87 ms.
COLUMNAR_ROWS: Final = 200
# What is in columns already goes as rows below this: a stream's schema alone takes a kilobyte.
FEW_ROWS: Final = 32
_STEP_ROWS: Final = 1_000


class UpdateBatch(Sequence[Update]):
    """Updates of one relation in at least one form. Never changed, so anyone may share it."""

    __slots__ = ("_columns", "_count", "_only", "_payload", "_span", "_table", "desc")

    def __init__(
        self,
        desc: RelationDesc,
        *,
        only: Update | None = None,
        columns: UpdateColumns | None = None,
        table: pa.Table | None = None,
        payload: bytes | None = None,
        count: int | None = None,
        span: Times | None = None,
    ) -> None:
        """Takes one of the forms, a single update as it is. Who knows how many they are, or the
        first and last of their times, spares others from looking."""
        self.desc = desc
        self._only = only
        self._columns = columns
        self._table = table
        self._payload = payload
        self._count = count
        self._span = span

    def __len__(self) -> int:
        if self._count is None:
            known = self._table if self._table is not None else self._columns
            self._count = len(self._read() if known is None else known)
        return self._count

    @overload
    def __getitem__(self, place: int) -> Update: ...

    @overload
    def __getitem__(self, place: slice) -> list[Update]: ...

    def __getitem__(self, place: int | slice) -> Update | list[Update]:
        return self.updates()[place]

    def __iter__(self) -> Iterator[Update]:
        return iter(self.updates())

    @property
    def columnar(self) -> bool:
        """Whether the table costs no work for each row."""
        return self._table is not None or (
            self._payload is not None and self._payload[:1] == ARROW_VERSION
        )

    @property
    def table(self) -> pa.Table:
        """In encoding.update_schema of the relation."""
        if self._table is None:
            if self._payload is not None and self.columnar:
                self._table = decode_arrow(self.desc, self._payload)
            else:
                self._table = columns_to_table(self.desc, self.columns)
        return self._table

    @property
    def columns(self) -> UpdateColumns:
        """Rows, times, diffs and errors as Python's own values."""
        if self._columns is None:
            if self._only is not None:
                self._columns = to_columns((self._only,))
            elif self._table is not None or self._payload is None:
                self._columns = table_to_columns(self.desc, self.table)
            else:
                self._columns = decode_inline(self.desc, self._payload)
        return self._columns

    @property
    def payload(self) -> bytes:
        """The bytes of an InlinePart, in whichever form is the better one."""
        if self._payload is None:
            few = COLUMNAR_ROWS if self._columns is not None else FEW_ROWS
            if self._only is not None:
                self._payload = encode_one(self._only)
            elif len(self) < few:
                self._payload = encode_inline(self.columns.each())
            else:
                self._payload = encode_arrow(self.table)
        return self._payload

    @property
    def span(self) -> Times:
        """The first and the last time of its updates, of which there are some."""
        if self._span is None:
            if self.columnar:
                times = self.table.column("t").to_numpy()
                self._span = (Timestamp(int(times.min())), Timestamp(int(times.max())))
            else:
                timestamps = self.columns.timestamps
                self._span = (min(timestamps), max(timestamps))
        return self._span

    def make_rows(self) -> None:
        """Make `columns` in steps that give way: for threads beside an event loop."""
        if self._columns is None:
            steps: list[UpdateColumns] = []
            for step in self.table.to_batches(max_chunksize=_STEP_ROWS):
                steps.append(table_to_columns(self.desc, pa.Table.from_batches([step])))
                give_way()
            self._columns = concat_columns(steps)

    def updates(self) -> list[Update]:
        """One object for each."""
        return self.columns.updates()

    def between(self, lower: Timestamp, upper: Timestamp) -> "UpdateBatch":
        """Those with lower <= ts < upper; the same object if that is all of them."""
        if not len(self):
            return self
        first, last = self.span
        if lower <= first and last < upper:
            return self
        if last < lower or upper <= first:
            return no_updates(self.desc)
        if self.columnar:
            return UpdateBatch(self.desc, table=within_times(self.table, (lower, upper)))
        return UpdateBatch(self.desc, columns=self.columns.between(lower, upper))

    def moved(self, ts: Timestamp) -> "UpdateBatch":
        """The same updates, all at another time."""
        if not len(self):
            return self
        place = self.table.schema.get_field_index("t")
        times = pa.repeat(pa.scalar(ts, pa.int64()), len(self))
        table = self.table.set_column(place, self.table.schema.field(place), times)
        return UpdateBatch(self.desc, table=table, count=len(self), span=(ts, ts))

    def _read(self) -> "pa.Table | UpdateColumns":
        return self.table if self.columnar else self.columns


def no_updates(desc: RelationDesc) -> UpdateBatch:
    """A batch without any."""
    return UpdateBatch(desc, columns=UpdateColumns((), (), ()), count=0)


def to_batch(desc: RelationDesc, updates: Sequence[Update]) -> UpdateBatch:
    """Updates as a batch; the same object if they are one."""
    if isinstance(updates, UpdateBatch):
        return updates
    if len(updates) == 1:
        only = updates[0]
        return UpdateBatch(desc, only=only, count=1, span=(only[1], only[1]))
    return UpdateBatch(desc, columns=to_columns(updates))


def from_payload(desc: RelationDesc, payload: bytes) -> UpdateBatch:
    """What an InlinePart holds, decoded as far as its form goes; raises Corrupt."""
    if payload[:1] == ARROW_VERSION:
        return UpdateBatch(desc, table=decode_arrow(desc, payload), payload=payload)
    return UpdateBatch(desc, columns=decode_inline(desc, payload), payload=payload)


def concat_batches(desc: RelationDesc, many: Sequence[UpdateBatch]) -> UpdateBatch:
    """All of them, in no order; the same object if only one holds any.

    Few in columns become rows, and many keep their form: then all rows together become columns.
    """
    filled = [batch for batch in many if len(batch)]
    if len(filled) == 1:
        return filled[0]
    count = sum(map(len, filled))
    tables = [batch.table for batch in filled if batch.columnar] if count >= FEW_ROWS else []
    rest = filled if not tables else [batch for batch in filled if not batch.columnar]
    columns = concat_columns([batch.columns for batch in rest])
    if not tables:
        return UpdateBatch(desc, columns=columns, count=count)
    if len(columns):
        tables.append(columns_to_table(desc, columns))
    return UpdateBatch(desc, table=pa.concat_tables(tables), count=count)
