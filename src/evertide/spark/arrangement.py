"""An arrangement: a multiset of (row, timestamp, diff), found by key.

An LSM: a layer in memory over immutable sorted runs on disk (levels.py). It can be read exactly at
any time from `since` on; a merge advances earlier times to since, so that history costs nothing
once nobody asks for it. Its owner calls it from one thread; merging may run beside it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder, identity_function
from evertide.persist.coding.keys import row_key_encoder
from evertide.spark.layer import add_up
from evertide.spark.levels import ENTRY_BYTES, Levels, Manifest
from evertide.spark.runs import Entry, key_hashes
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import MIN_TS, Timestamp

# So many entries are kept in memory before they are written.
SPILL_RECORDS: Final = 50_000


class BelowSince(Exception):
    """History before `since` has been merged: contents at `as_of` are no longer known."""

    def __init__(self, as_of: Timestamp, since: Timestamp) -> None:
        super().__init__(f"not readable at {as_of}, the since is {since}")
        self.as_of = as_of
        self.since = since


class Size(NamedTuple):
    """Entries kept (rows that came and went count until they are merged), and roughly the bytes."""

    records: int
    bytes: int


class Arrangement:
    """Rows of these types, found by the SQL equality of the key columns."""

    def __init__(
        self,
        directory: Path,
        types: Types,
        key: tuple[int, ...],
        *,
        since: Timestamp = MIN_TS,
        spill_records: int = SPILL_RECORDS,
    ) -> None:
        self.types = types
        self.since = since
        self.levels = Levels(directory, types)
        self.key_of = column_encoder(types, key)
        self._key_types = tuple(types[i] for i in key)
        self._identity = identity_function(types)
        self._spill_records = spill_records

    def insert(self, updates: Iterable[Entry]) -> None:
        """Add updates."""
        keyed: dict[bytes, list[Entry]] = {}
        for entry in updates:
            keyed.setdefault(self.key_of(entry[0]), []).append(entry)
        self.insert_keyed(keyed)

    def insert_keyed(self, keyed: Mapping[bytes, Sequence[Entry]]) -> None:
        """Add updates whose keys are known."""
        layer = self.levels.layer
        for key, entries in keyed.items():
            layer.insert(key, entries, self.since)
        if layer.records >= self._spill_records:
            self.levels.freeze()

    def load_table(self, table: pa.Table) -> None:
        """Add a table as runs have it: h, c0.., t and d, sorted by h."""
        self.levels.load_table(table)

    def advance_since(self, since: Timestamp) -> None:
        """Nobody will read before `since` again."""
        self.since = max(self.since, since)

    def restore(self, directory: Path, manifest: Manifest) -> None:
        """Take over a snapshot, into an arrangement that is still empty."""
        assert not self.size.records, "only an empty arrangement can be restored"
        self.levels.restore(directory, manifest)
        self.since = Timestamp(manifest.since)

    def probe(self, keys: Sequence[bytes]) -> dict[bytes, Sequence[Entry]]:
        """All entries of these different keys; keys without entries are left out.

        Entries are added up where a row came and went. The lists must not be changed.
        """
        found: dict[bytes, Sequence[Entry]] = {}
        for layer in self.levels.layers:
            groups = layer.groups
            for key in keys:
                group = groups.get(key)
                if group is not None:
                    found[key] = [*found[key], *group] if key in found else group
        if self.levels.runs:
            self._probe_runs(keys, found)
        for key, entries in found.items():
            if len(entries) > 1 and min([entry[2] for entry in entries]) < 0:
                found[key] = add_up(entries, self.since, self._identity)
        return found

    def _probe_runs(self, keys: Sequence[bytes], found: dict[bytes, Sequence[Entry]]) -> None:
        """Hashes lead to entries; the keys of these decide."""
        needles = key_hashes(keys)
        key_of = self.key_of
        of_runs: dict[bytes, list[Entry]] = {}
        for run in self.levels.runs:
            positions, places = run.find(needles)
            if not len(places):
                continue
            for position, entry in zip(positions.tolist(), run.entries(places), strict=True):
                key = keys[position]
                if key_of(entry[0]) == key:
                    of_runs.setdefault(key, []).append(entry)
        for key, entries in of_runs.items():
            found[key] = [*entries, *found[key]] if key in found else entries

    def lookup(self, key: Row, as_of: Timestamp) -> list[tuple[Row, int]]:
        """Rows with this key at `as_of`, or BelowSince. NULL finds NULL."""
        self._check(as_of)
        encoded = row_key_encoder(self._key_types)(key)
        return self.at(self.probe([encoded]).get(encoded, ()), as_of)

    def scan(self, as_of: Timestamp) -> list[tuple[Row, int]]:
        """All rows at `as_of`, or BelowSince."""
        self._check(as_of)
        return self.at(self.levels.entries(), as_of)

    @property
    def size(self) -> Size:
        """How much there is."""
        in_memory = sum(layer.records for layer in self.levels.layers)
        runs = self.levels.runs
        return Size(
            in_memory + sum(run.length for run in runs),
            in_memory * ENTRY_BYTES + sum(run.file_bytes for run in runs),
        )

    def _check(self, as_of: Timestamp) -> None:
        if as_of < self.since:
            raise BelowSince(as_of, self.since)

    def at(self, entries: Iterable[Entry], as_of: Timestamp) -> list[tuple[Row, int]]:
        """What these entries add up to at `as_of`."""
        then = (entry for entry in entries if entry[1] <= as_of)
        return [(row, count) for row, _, count in add_up(then, as_of, self._identity)]
