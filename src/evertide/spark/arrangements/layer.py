"""The newest part of an arrangement: entries in memory, by key.

Small and quick to change. Once it has grown it is frozen, written as a run by whoever merges, and
dropped when the run has taken its place; until then it is still looked into, but not changed.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import pyarrow as pa

from evertide.expr.columnar.batch import Entry, batch_of
from evertide.expr.columnar.column import is_number
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.relation import Types
from evertide.expr.row_key import RowKey, identity_function
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.arrangements.memory import value_bytes
from evertide.spark.arrangements.runs import table_of
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import Kind, SqlType
from evertide.vocab.timestamp import MIN_TS

# Groups up to this size are left as they are; beyond it, they are added up when they double.
_SMALL_GROUP = 8
# A rough figure for an entry in memory: row, tuple, dict slot.
ENTRY_BYTES: Final = 400
# How many rows are looked at to tell how large values are, and after how many more again.
_SAMPLED_ROWS: Final = 8
_SAMPLED_EVERY: Final = 16
# A rough figure for an element of an array: its place, and a number.
_ELEMENT_BYTES: Final = 40


class Layer:
    """Entries of these types by key."""

    __slots__ = (
        "_columns",
        "_grown_bytes",
        "_large",
        "_limits",
        "_sampled",
        "groups",
        "records",
        "types",
    )

    def __init__(self, types: Types) -> None:
        self.groups: dict[bytes, list[Entry]] = {}
        self.records = 0
        self.types = types
        self._limits: dict[bytes, int] = {}
        # Columns whose values can be long.
        self._large = [i for i, sql_type in enumerate(types) if _can_be_long(sql_type)]
        self._columns: ColumnLayer | None = None
        # How many entries there were when some were looked at, and what one took.
        self._sampled = (-_SAMPLED_EVERY, 0)
        # By how much rows that were replaced in place have become larger.
        self._grown_bytes = 0

    @property
    def memory_bytes(self) -> int:
        """Roughly how large it is."""
        if not self._large:
            return self.records * ENTRY_BYTES
        if abs(self.records - self._sampled[0]) >= _SAMPLED_EVERY:
            newest = islice(reversed(self.groups.values()), _SAMPLED_ROWS)
            sampled = [self._large_bytes(group[-1][0]) for group in newest if group]
            self._sampled = (self.records, ENTRY_BYTES + sum(sampled) // max(len(sampled), 1))
        return self.records * self._sampled[1] + max(self._grown_bytes, 0)

    def _large_bytes(self, row: Row) -> int:
        """What texts and the like take beyond what any value does."""
        return sum([_long_bytes(row[column]) for column in self._large])

    def insert(self, keyed: Mapping[bytes, Sequence[Entry]], since: int) -> None:
        """Add entries by key. A group that has grown much is added up first."""
        groups, records = self.groups, self.records
        for key, entries in keyed.items():
            group = groups.get(key)
            if not group:
                if entries:
                    groups[key] = list(entries)
                    records += len(entries)
            elif len(entries) == 2 and _replaces(entries[0], group[-1]):
                self._grown_bytes += self._growth(entries[0][0], entries[1][0])
                group[-1] = entries[1]
            else:
                group += entries
                records += len(entries)
                if len(group) > _SMALL_GROUP and len(group) > self._limits.get(key, _SMALL_GROUP):
                    records -= self._add_up(key, group, since)
        self.records = records

    def _growth(self, gone: Row, come: Row) -> int:
        """By how much one row is larger than another; mostly they have the same texts."""
        grown = 0
        for column in self._large:
            if gone[column] is not come[column]:
                grown += _long_bytes(come[column]) - _long_bytes(gone[column])
        return grown

    def _add_up(self, key: bytes, group: list[Entry], since: int) -> int:
        """Gives how many entries have gone."""
        left = add_up(group, since, identity_function(self.types))
        if left:
            self.groups[key] = left
            self._limits[key] = max(2 * len(left), _SMALL_GROUP)
        else:
            del self.groups[key]
            self._limits.pop(key, None)
        return len(group) - len(left)

    def columns(self) -> ColumnLayer:
        """The same by columns. Only of a frozen layer, which has entries: it is made once."""
        if self._columns is None:
            keyed = list(self.keyed(MIN_TS))
            hashes = hash_bytes([key for key, _ in keyed])
            self._columns = ColumnLayer.of(hashes, batch_of(self.types, [e for _, e in keyed]))
        return self._columns

    def table(self, since: int) -> pa.Table:
        """Added up, as a run's file has it."""
        if self._columns is not None:
            return self._columns.table(since)
        return table_of(self.types, self.keyed(since))

    def keyed(self, since: int) -> Iterator[tuple[bytes, Entry]]:
        """All entries with their keys, added up; does not change the layer."""
        identity = identity_function(self.types)
        for key, group in self.groups.items():
            for entry in add_up(group, since, identity):
                yield key, entry


def _can_be_long(sql_type: SqlType) -> bool:
    return not is_number(sql_type) and sql_type.kind is not Kind.NUMERIC


def _replaces(gone: Entry, last: Entry) -> bool:
    """Whether the row that goes is the very one that came last, as with rows of state."""
    return gone[0] is last[0] and gone[1] == last[1] and gone[2] + last[2] == 0


def _long_bytes(value: Datum) -> int:
    return value_bytes(value, _ELEMENT_BYTES)


def add_up(entries: Iterable[Entry], since: int, identity: RowKey | None) -> list[Entry]:
    """Times before `since` advanced to it, diffs of identical (row, time) added, zeros dropped."""
    sums: dict[tuple[Hashable, int], Entry] = {}
    for row, ts, diff in entries:
        ts = max(ts, since)
        key = (row if identity is None else identity(row), ts)
        known = sums.get(key)
        sums[key] = (row, ts, diff) if known is None else (row, ts, known[2] + diff)
    return [entry for entry in sums.values() if entry[2]]
