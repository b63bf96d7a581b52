"""COPY ... FROM STDIN: lines become columns as they come, and one write at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from evertide.adapter.environment import Environment
from evertide.adapter.lookups.session_values import session_bindings
from evertide.adapter.session import Session
from evertide.adapter.writing.copy_lines import Cut, LineCutter, Lines, cut_fields
from evertide.adapter.writing.write import null_in, table_of, write_change
from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot
from evertide.expr.columnar.text_columns import BadText, read_texts
from evertide.expr.compile import compile_scalar
from evertide.expr.scalar import Literal, Scalar
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.expr.transform.substitute import substitute_scalar
from evertide.persist.coding.encoding import encode_column
from evertide.persist.txn import TableWrite
from evertide.sql.plan.plans import CopyFromPlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import BadCopyFileFormat, ProgramLimitExceeded, SqlError
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import MIN_TS

# What has come is read once there is so much of it: enough for columns to pay.
_CHUNK_BYTES: Final = 1024 * 1024
# All rows are one write, which must fit into memory.
LIMIT_BYTES: Final = 1024**3
_SHOWN_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class Writer:
    """`begin` raises where nothing may be written: asked again with all that comes, for the client
    sends it only once it has been asked for rows."""

    begin: Callable[[], None]
    write: Callable[[TableWrite], Awaitable[None]]


class CopyIn:
    """Rows on their way into one table. Nothing is written before `finish`."""

    def __init__(
        self,
        plan: CopyFromPlan,
        table: Item,
        defaults: dict[int, Scalar],
        writer: Writer,
    ) -> None:
        self._plan = plan
        self._table = table
        self._defaults = defaults
        self._writer = writer
        self._cutter = LineCutter(plan.format)
        self._waiting = bytearray()
        self._tables: list[pa.Table] = []
        self._header_due = plan.format.header

    @property
    def column_count(self) -> int:
        return len(self._plan.targets)

    @property
    def binary_types(self) -> tuple[SqlType, ...] | None:
        """Of the fields that come, if they come in binary."""
        if not self._plan.format.binary:
            return None
        return tuple(self._table.desc.types[target] for target in self._plan.targets)

    async def feed(self, received: bytes) -> None:
        """Take what the client sent, cut anywhere."""
        self._writer.begin()
        self._waiting += received
        if len(self._waiting) >= _CHUNK_BYTES:
            await asyncio.to_thread(self._read, last=False)

    async def feed_rows(self, rows: Sequence[Row]) -> None:
        """Take rows of the plan's columns."""
        self._writer.begin()
        if rows:
            await asyncio.to_thread(self._add_rows, rows)

    def _add_rows(self, rows: Sequence[Row]) -> None:
        desc = self._table.desc
        arrays = {
            target: encode_column(desc.types[target], column)
            for target, column in zip(self._plan.targets, zip(*rows, strict=True), strict=True)
        }
        self._add_defaults(arrays, len(rows))
        missing = self._first_null(arrays)
        if missing is not None:
            raise null_in(desc.columns[missing[1]].name, self._table.name)
        self._tables.append(self._as_table(arrays, len(rows)))
        self._check_size()

    async def finish(self) -> str:
        """That was all: write it; gives the command's tag."""
        if not self._plan.format.binary:
            await asyncio.to_thread(self._read, last=True)
        count = sum(table.num_rows for table in self._tables)
        self._writer.begin()
        await self._writer.write(TableWrite(self._table.desc, (), self._tables))
        return f"COPY {count}"

    def _read(self, *, last: bool) -> None:
        received = bytes(self._waiting)
        self._waiting.clear()
        try:
            lines = self._cutter.feed(received, last=last)
        except SqlError as error:
            if error.context is not None:
                error.context = f"COPY {self._table.name}, {error.context}"
            raise
        if lines.texts and self._header_due:
            lines = self._without_header(lines)
        if lines.texts:
            self._tables.append(self._columns(lines))
        self._check_size()

    def _check_size(self) -> None:
        if sum(table.nbytes for table in self._tables) > LIMIT_BYTES:
            raise ProgramLimitExceeded(
                f"COPY is limited to {LIMIT_BYTES} bytes of rows",
                hint="Copy the data in several parts.",
            )

    def _names(self) -> list[str]:
        return [self._table.desc.columns[target].name for target in self._plan.targets]

    def _without_header(self, lines: Lines) -> Lines:
        self._header_due = False
        if self._plan.format.match_header:
            self._check_header(lines)
        ends = None if lines.ends is None else lines.ends[1:]
        return Lines(lines.texts[1:], lines.number_of(0), ends)

    def _check_header(self, lines: Lines) -> None:
        names = self._names()
        cut = cut_fields(lines.texts[:1], names, self._plan.format)
        context = f"COPY {self._table.name}, line 1: {_shown(lines.texts[0])}"
        if cut.error is not None:
            found = len(lines.texts[0].split(self._plan.format.delimiter))
            raise BadCopyFileFormat(
                f"wrong number of fields in header line: got {found}, expected {len(names)}",
                context=context,
            )
        for number, (name, column) in enumerate(zip(names, cut.columns, strict=True), 1):
            if column[0] != name:
                got = f'"{column[0]}"' if column[0] is not None else "null value"
                raise BadCopyFileFormat(
                    f"column name mismatch in header line field {number}: got {got}, expected"
                    f' "{name}"',
                    context=context,
                )

    def _columns(self, lines: Lines) -> pa.Table:
        """Rows of the table's columns, and their diffs; the error of the first bad row if any."""
        names = self._names()
        cut = cut_fields(lines.texts, names, self._plan.format)
        arrays: dict[int, pa.Array] = {}
        bad: tuple[int, SqlError] | None = None
        for target, name, texts in zip(self._plan.targets, names, cut.columns, strict=True):
            try:
                arrays[target] = read_texts(self._table.desc.types[target], texts)
            except BadText as found:
                if bad is None or found.row < bad[0]:
                    bad = found.row, self._told(found, name, lines)
        self._add_defaults(arrays, cut.rows)
        missing = self._first_null(arrays)
        if missing is not None and (bad is None or missing[0] < bad[0]):
            raise self._told_null(*missing, lines)
        if bad is not None:
            raise bad[1]
        self._check_cut(cut, lines)
        return self._as_table(arrays, cut.rows)

    def _add_defaults(self, arrays: dict[int, pa.Array], count: int) -> None:
        for position, default in self._defaults.items():
            arrays[position] = _filled(default, count)

    def _as_table(self, arrays: dict[int, pa.Array], count: int) -> pa.Table:
        columns = {f"c{i}": arrays[i] for i in range(self._table.desc.arity)}
        return pa.table({**columns, "d": pa.array(np.ones(count, np.int64))})

    def _told(self, found: BadText, name: str, lines: Lines) -> SqlError:
        place = f"COPY {self._table.name}, line {lines.number_of(found.row)}, column {name}"
        found.error.context = f"{place}: {_shown(found.text)}"
        return found.error

    def _first_null(self, arrays: dict[int, pa.Array]) -> tuple[int, int] | None:
        """The first row with NULL where none may be, and the column that has it.

        Also a column's that does not come and has no default: without rows nothing is amiss.
        """
        found: list[tuple[int, int]] = []
        for position, array in arrays.items():
            if not self._table.desc.columns[position].nullable and array.null_count:
                nulls = array.is_null().to_numpy(zero_copy_only=False)
                found.append((int(np.argmax(nulls)), position))
        return min(found, default=None)

    def _told_null(self, row: int, position: int, lines: Lines) -> SqlError:
        error = null_in(self._table.desc.columns[position].name, self._table.name)
        error.context = self._line_context(row, lines)
        return error

    def _check_cut(self, cut: Cut, lines: Lines) -> None:
        if cut.error is None:
            return
        for target, text in zip(self._plan.targets, cut.present, strict=False):
            try:
                read_texts(self._table.desc.types[target], [text])
            except BadText as found:
                found.row = cut.rows
                name = self._table.desc.columns[target].name
                raise self._told(found, name, lines) from found
        cut.error.context = self._line_context(cut.rows, lines)
        raise cut.error

    def _line_context(self, row: int, lines: Lines) -> str:
        number = lines.number_of(row)
        return f"COPY {self._table.name}, line {number}: {_shown(lines.texts[row])}"


def start_copy(
    plan: CopyFromPlan, session: Session, env: Environment, snapshot: Snapshot
) -> CopyIn:
    """Ready to take rows; defaults have the values of now."""
    table = table_of(plan.table_id, snapshot)
    bindings = session_bindings(session, env, snapshot, MIN_TS)
    defaults = {
        position: fold_scalar(substitute_scalar(default, bindings))
        for position, default in plan.defaults.items()
    }

    async def write(rows: TableWrite) -> None:
        await write_change(table, rows, session, env)

    def begin() -> None:
        if session.transaction is not None and session.transaction.explicit:
            session.transaction.start_writing()

    return CopyIn(plan, table, defaults, Writer(begin, write))


def _filled(default: Scalar, count: int) -> pa.Array:
    if isinstance(default, Literal):
        once = encode_column(default.type, [default.value])
        return once.take(pa.array(np.zeros(count, np.int64)))
    compute = compile_scalar(default)
    return encode_column(default.type, [compute(()) for _ in range(count)])


def _shown(text: str) -> str:
    """As PostgreSQL cuts long data in messages."""
    return f'"{text}"' if len(text) <= _SHOWN_CHARS else f'"{text[:_SHOWN_CHARS]}..."'
