"""The newest part of an arrangement: entries in memory, by key.

Small and quick to change. Once it has grown it is frozen, written as a run by whoever merges, and
dropped when the run has taken its place; until then it is still looked into, but not changed.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from evertide.expr.row_key import RowKey
from evertide.spark.runs import Entry

# Groups up to this size are left as they are; beyond it, they are added up when they double.
_SMALL_GROUP = 8


class Layer:
    """Entries by key. `identity` is that of the rows' types."""

    __slots__ = ("_identity", "_limits", "groups", "records")

    def __init__(self, identity: RowKey | None) -> None:
        self.groups: dict[bytes, list[Entry]] = {}
        self.records = 0
        self._identity = identity
        self._limits: dict[bytes, int] = {}

    def insert(self, key: bytes, entries: Sequence[Entry], since: int) -> None:
        """Add entries of one key. A group that has grown much is added up first."""
        self.records += len(entries)
        group = self.groups.get(key)
        if group is None:
            self.groups[key] = list(entries)
            return
        group += entries
        if len(group) > _SMALL_GROUP and len(group) > self._limits.get(key, _SMALL_GROUP):
            self._add_up(key, group, since)

    def _add_up(self, key: bytes, group: list[Entry], since: int) -> None:
        left = add_up(group, since, self._identity)
        self.records -= len(group) - len(left)
        if left:
            self.groups[key] = left
            self._limits[key] = max(2 * len(left), _SMALL_GROUP)
        else:
            del self.groups[key]
            self._limits.pop(key, None)

    def keyed(self, since: int) -> Iterator[tuple[bytes, Entry]]:
        """All entries with their keys, added up; does not change the layer."""
        for key, group in self.groups.items():
            for entry in add_up(group, since, self._identity):
                yield key, entry


def add_up(entries: Iterable[Entry], since: int, identity: RowKey | None) -> list[Entry]:
    """Times before `since` advanced to it, diffs of identical (row, time) added, zeros dropped."""
    sums: dict[tuple[Hashable, int], Entry] = {}
    for row, ts, diff in entries:
        ts = max(ts, since)
        key = (row if identity is None else identity(row), ts)
        known = sums.get(key)
        sums[key] = (row, ts, diff) if known is None else (row, ts, known[2] + diff)
    return [entry for entry in sums.values() if entry[2]]
