"""What was found lately below the newest layer, by key.

Small tables that large ones are joined with are asked for the same few keys in every tick; finding
them in runs each time costs more than everything else that is done with them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from evertide.expr.columnar.batch import Entry
from evertide.expr.columnar.column import is_number
from evertide.expr.relation import Types
from evertide.spark.arrangements.memory import value_bytes

# Of an arrangement that has no more entries, many keys will be asked for again.
SMALL_RECORDS: Final = 4_096
# So many keys are remembered, of each at most so many entries, with so many bytes of text.
MOST_KEYS: Final = 1_024
MOST_ENTRIES: Final = 8
MOST_BYTES: Final = 256


class Recent:
    """Must be told to forget whenever what lies there is another set of entries."""

    __slots__ = ("_large", "found")

    def __init__(self, types: Types) -> None:
        # Keys that have no entries are here as well.
        self.found: dict[bytes, Sequence[Entry]] = {}
        # Columns whose values can take much room.
        self._large = [i for i, sql_type in enumerate(types) if not is_number(sql_type)]

    def remember(self, keys: Sequence[bytes], found: Mapping[bytes, Sequence[Entry]]) -> None:
        """Each of these keys has the entries found for it, and no others."""
        if len(self.found) + len(keys) > MOST_KEYS:
            self.found = {}
        if len(keys) > MOST_KEYS:
            return
        known = self.found
        for key in keys:
            entries = found.get(key, ())
            if len(entries) <= MOST_ENTRIES and not (self._large and self._are_large(entries)):
                known[key] = entries

    def _are_large(self, entries: Sequence[Entry]) -> bool:
        """Numerics and the like count as nothing: they are never long."""
        sizes = [value_bytes(row[i], 1) for row, _, _ in entries for i in self._large]
        return sum(sizes) > MOST_BYTES

    def forget(self) -> None:
        """There are other entries now."""
        self.found = {}
