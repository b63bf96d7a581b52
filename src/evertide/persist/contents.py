"""Contents of a collection: its updates up to a timestamp, added up."""

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.coding.encoding import encode_numeric
from evertide.persist.coding.updates import RowIdentity, row_identity, zip_updates
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import Kind, SqlType
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

_Columns: TypeAlias = tuple[Sequence[Row], Sequence[int]]

# So many take half a millisecond.
_STEP_ROWS: Final = 2_000
_NAN: Final = pa.scalar(encode_numeric(Decimal("NaN")), pa.binary())


class Listing:
    """Rows and errors with their multiplicities, shared by all timestamps at which they hold."""

    def __init__(
        self,
        rows: list[tuple[Row, int]],
        errors: list[tuple[str, int]],
        *,
        has_strays: bool = False,
    ) -> None:
        self.rows = rows
        self.errors = errors
        self.has_strays = has_strays
        self._columns: _Columns | None = None

    def columns(self) -> _Columns:
        """The rows, and their multiplicities."""
        if self._columns is None:
            self._columns = ([row for row, _ in self.rows], [diff for _, diff in self.rows])
        return self._columns


class Contents:
    """What a collection holds at a timestamp. Shared by all who ask: never change it."""

    __slots__ = ("_listing", "as_of")

    def __init__(self, as_of: Timestamp, listing: Listing) -> None:
        self.as_of = as_of
        self._listing = listing

    @property
    def rows(self) -> Sequence[tuple[Row, int]]:
        """Rows with their multiplicities: never 0, negative only where data is wrong."""
        return self._listing.rows

    @property
    def errors(self) -> Sequence[tuple[str, int]]:
        """Encoded errors with their multiplicities."""
        return self._listing.errors

    @property
    def has_strays(self) -> bool:
        """Whether some row is there less than zero times."""
        return self._listing.has_strays

    def failing(self, error: str) -> "Contents":
        """The same with an encoded error."""
        listing = self._listing
        return Contents(self.as_of, Listing(listing.rows, [*listing.errors, (error, 1)]))

    def at(self, as_of: Timestamp) -> "Contents":
        """The same at another timestamp, at which the collection is known to hold the same."""
        return Contents(as_of, self._listing)

    def updates(self) -> list[Update]:
        """The same as updates at as_of."""
        rows, diffs = self._listing.columns()
        found = zip_updates(rows, repeat(self.as_of), diffs, repeat(None))
        found.extend(Update((), self.as_of, diff, error) for error, diff in self.errors)
        return found


class Accumulation:
    """Sums of diffs by row, for one relation. Updates may be added in any order.

    Rows and their sums lie in a list, and a dict says where each one is. So a change costs what it
    changes, and whoever asks for all rows gets that list: it is copied when the next change comes.
    """

    def __init__(self, types: tuple[SqlType, ...]) -> None:
        self._identity = row_identity(types)
        # How many rows are there less than zero times.
        self._negative = 0
        self._rows: list[tuple[Row, int]] = []
        self._places: dict[Hashable, int] = {}
        self._errors: dict[str, int] = {}
        self._listing: Listing | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, updates: UpdateBatch, pause: Callable[[], None] | None = None) -> None:
        """Add their diffs; a row whose sum becomes 0 is gone. `pause` is called between steps."""
        if not len(updates):
            return
        if self._listing is not None:
            self._listing, self._rows = None, self._rows.copy()
        identity = self._identity
        if identity is not None and updates.columnar and not has_deceptive_rows(updates):
            identity = None
        columns = updates.columns
        rows, diffs, errors = columns.rows, columns.diffs, columns.errors
        for start in range(0, len(rows), _STEP_ROWS):
            step = slice(start, start + _STEP_ROWS)
            if errors is None:
                self._add_rows(rows[step], diffs[step], identity)
            else:
                self._add_some(rows[step], diffs[step], errors[step])
            if pause is not None:
                pause()

    def _add_some(
        self, rows: Sequence[Row], diffs: Sequence[int], errors: Sequence[str | None]
    ) -> None:
        """Rows with errors among them."""
        ordinary = [(r, d) for r, d, e in zip(rows, diffs, errors, strict=True) if e is None]
        self._add_rows([r for r, _ in ordinary], [d for _, d in ordinary], self._identity)
        for diff, error in zip(diffs, errors, strict=True):
            if error is not None:
                _add_error(self._errors, error, diff)

    def _add_rows(
        self, rows: Sequence[Row], diffs: Sequence[int], identity: RowIdentity | None
    ) -> None:
        names: Sequence[Hashable] = rows if identity is None else list(map(identity, rows))
        if not self._add_new(names, rows, diffs):
            for name, row, diff in zip(names, rows, diffs, strict=True):
                self._add_row(name, row, diff)

    def _add_new(
        self, names: Sequence[Hashable], rows: Sequence[Row], diffs: Sequence[int]
    ) -> bool:
        """All of them at once; False, and nothing was done, unless every row is a new one."""
        if min(diffs, default=0) < 1:
            return False  # most likely it takes away what is there
        before = len(self._rows)
        wanted = list(range(before, before + len(names)))
        found = list(map(self._places.setdefault, names, wanted))
        if found != wanted:
            for name, place in zip(names, found, strict=True):
                if place >= before:
                    self._places.pop(name, None)
            return False
        self._rows.extend(zip(rows, diffs, strict=True))
        return True

    def _add_row(self, name: Hashable, row: Row, diff: int) -> None:
        place = self._places.get(name)
        if place is None:
            if diff:
                self._negative += diff < 0
                self._places[name] = len(self._rows)
                self._rows.append((row, diff))
            return
        first, known = self._rows[place]
        self._negative += (known + diff < 0) - (known < 0)
        if known + diff:
            self._rows[place] = (first, known + diff)
            return
        # The last one takes its place.
        del self._places[name]
        last = self._rows.pop()
        if place < len(self._rows):
            self._rows[place] = last
            moved = last[0]
            self._places[moved if self._identity is None else self._identity(moved)] = place

    def contents(self, as_of: Timestamp) -> Contents:
        """The sums now. Contents already handed out stay as they are."""
        if self._listing is None:
            errors = list(self._errors.items())
            self._listing = Listing(self._rows, errors, has_strays=self._negative > 0)
        return Contents(as_of, self._listing)


def has_deceptive_rows(updates: UpdateBatch) -> bool:
    """Whether a row of this batch in columns may have another identity than itself."""
    return any(
        _has_deceptive(sql_type, updates.table.column(place))
        for place, sql_type in enumerate(updates.desc.types)
    )


def _has_deceptive(sql_type: SqlType, column: pa.ChunkedArray) -> bool:
    match sql_type.kind:
        case Kind.FLOAT4 | Kind.FLOAT8:
            found = pc.or_(pc.is_nan(column), pc.equal(column, 0.0))
        case Kind.NUMERIC:
            found = pc.equal(column, _NAN)
        case Kind.ARRAY | Kind.LIST | Kind.MAP:
            return row_identity((sql_type,)) is not None
        case _:
            return False
    return bool(pc.any(found).as_py())


def _add_error(errors: dict[str, int], error: str, diff: int) -> None:
    total = errors.get(error, 0) + diff
    if total:
        errors[error] = total
    else:
        errors.pop(error, None)
