"""The rows of a collection by the values of some columns; pure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Final

from evertide.adapter.temporary.tables import weight_of
from evertide.persist.coding.updates import row_identity
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import SqlType

# With more rows under one key, a change of one of them would have to look through too many.
MOST_OF_ONE_KEY: Final = 256


class Unkeepable(Exception):
    """A row went that was not there, or there are too many of one key: that is for others."""


class TooHeavy(Unkeepable):
    """The rows take more memory than they may."""


class KeyedRows:
    """Rows as often as they are there. Those with a NULL in the key are left out: none asks."""

    def __init__(self, types: tuple[SqlType, ...], columns: Sequence[int], limit: int) -> None:
        self._identity = row_identity(types)
        self._single = len(columns) == 1
        # The value of the column, or a tuple of those of several.
        self._key: Callable[[Row], Hashable] = itemgetter(*columns)
        self._limit = limit
        self._rows: dict[Hashable, list[Row]] = {}
        # The rows of a key, to be looked at and not kept; None: there are none.
        self.get = self._rows.get
        # About how much memory they take.
        self.size_bytes = 0

    def add(self, changes: Iterable[tuple[Row, int]]) -> None:
        """Rows that come and go, in any order if none is there less than zero times after all."""
        changes = list(changes)
        self.come([change for change in changes if change[1] > 0])
        self.go([change for change in changes if change[1] < 0])

    def come(self, changes: Sequence[tuple[Row, int]]) -> None:
        """Rows with how many more of them there are."""
        rows = self._rows
        for row, times in changes:
            self.size_bytes += weight_of(((row, 1),)) * times
            if self.size_bytes > self._limit:
                raise TooHeavy
            key = self._key(row)
            if self._has_null(key):
                continue
            found = rows.get(key)
            if found is None:
                found = rows[key] = []
            if len(found) + times > MOST_OF_ONE_KEY:
                raise Unkeepable
            found.extend([row] * times)

    def go(self, changes: Sequence[tuple[Row, int]]) -> None:
        """Rows with how many fewer of them there are, as a number below zero."""
        for row, diff in changes:
            self.size_bytes += weight_of(((row, 1),)) * diff
            self._remove(row, -diff)

    def _has_null(self, key: Hashable) -> bool:
        return key is None if self._single else isinstance(key, tuple) and None in key

    def _remove(self, row: Row, times: int) -> None:
        key = self._key(row)
        if self._has_null(key):
            return
        left = self._rows.get(key, [])
        for _ in range(times):
            place = self._place(left, row)
            if place is None:
                raise Unkeepable
            del left[place]
        if not left:
            del self._rows[key]

    def _place(self, rows: Sequence[Row], row: Row) -> int | None:
        identity = self._identity
        if identity is None:
            return rows.index(row) if row in rows else None
        wanted = identity(row)
        return next((place for place, one in enumerate(rows) if identity(one) == wanted), None)
