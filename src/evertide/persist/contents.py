"""Contents of a collection: its updates up to a timestamp, added up."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import repeat
from typing import TypeAlias, cast

from evertide.persist.coding.updates import UpdateColumns, row_identity, zip_updates
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

_Columns: TypeAlias = tuple[Sequence[Row], Sequence[int]]


class Listing:
    """Rows and errors with their multiplicities, shared by all timestamps at which they hold."""

    def __init__(self, rows: list[tuple[Row, int]], errors: list[tuple[str, int]]) -> None:
        self.rows = rows
        self.errors = errors
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
    """Sums of diffs by row, for one relation. Updates may be added in any order."""

    def __init__(self, types: tuple[SqlType, ...]) -> None:
        self._identity = row_identity(types)
        self._diffs: dict[Hashable, int] = {}
        # The rows behind those identities that are not the row itself.
        self._rows: dict[Hashable, Row] = {}
        self._errors: dict[str, int] = {}
        self._listing: Listing | None = None

    def __len__(self) -> int:
        return len(self._diffs)

    def add(self, updates: UpdateColumns) -> None:
        """Add their diffs; a row whose sum becomes 0 is gone."""
        self._listing = None
        if updates.errors is None:
            self._add_rows(zip(updates.rows, updates.diffs, strict=True))
            return
        ordinary = ((row, diff) for row, _, diff, error in updates.each() if error is None)
        self._add_rows(ordinary)
        for _, _, diff, error in updates.each():
            if error is not None:
                _add_error(self._errors, error, diff)

    def _add_rows(self, rows: Iterable[tuple[Row, int]]) -> None:
        diffs, identity_of = self._diffs, self._identity
        for row, diff in rows:
            identity: Hashable = row if identity_of is None else identity_of(row)
            if identity is not row:
                self._rows.setdefault(identity, row)
            total = diffs.get(identity, 0) + diff
            if total:
                diffs[identity] = total
            else:
                diffs.pop(identity, None)
                self._rows.pop(identity, None)

    def contents(self, as_of: Timestamp) -> Contents:
        """The sums now. Contents already handed out stay as they are."""
        if self._listing is None:
            self._listing = Listing(self._list_rows(), list(self._errors.items()))
        return Contents(as_of, self._listing)

    def _list_rows(self) -> list[tuple[Row, int]]:
        if self._rows:
            rows = self._rows
            return [(rows.get(key, cast(Row, key)), diff) for key, diff in self._diffs.items()]
        return cast("list[tuple[Row, int]]", list(self._diffs.items()))


def _add_error(errors: dict[str, int], error: str, diff: int) -> None:
    total = errors.get(error, 0) + diff
    if total:
        errors[error] = total
    else:
        errors.pop(error, None)
