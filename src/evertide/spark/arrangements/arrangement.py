"""An arrangement: a multiset of (row, timestamp, diff), found by key.

An LSM: a layer in memory over immutable sorted runs on disk (levels.py). It can be read exactly at
any time from `since` on; a merge advances earlier times to since, so that history costs nothing
once nobody asks for it. Its owner calls it from one thread; merging may run beside it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from evertide.expr.columnar.batch import Batch, Entry, concat_batches
from evertide.expr.columnar.codes import equal_keys
from evertide.expr.columnar.column import Column, Ints
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder, identity_function
from evertide.persist.coding.keys import row_key_encoder
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.arrangements.finding import in_search_order, is_each
from evertide.spark.arrangements.key_parts import KeyParts
from evertide.spark.arrangements.layer import ENTRY_BYTES, add_up
from evertide.spark.arrangements.levels import (
    COLUMN_ENTRY_BYTES,
    SPILL_RECORDS,
    Levels,
    Manifest,
    Source,
    all_entries,
    all_sources,
    count_records,
)
from evertide.spark.arrangements.recent import SMALL_RECORDS
from evertide.vocab.datum import Datum, Row
from evertide.vocab.timestamp import MIN_TS, Timestamp

# So few keys are remembered wherever they were found.
_FEW_KEYS: Final = 8


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
        self.levels = Levels(directory, types, spill_records=spill_records)
        self.key = key
        self.key_of = column_encoder(types, key)
        self.parts = KeyParts.of(types, key)
        self.identity = identity_function(types)
        # Is told the keys that are about to be added to the newest layer.
        self.notice: Callable[[Iterable[bytes]], None] | None = None

    def insert(self, updates: Iterable[Entry]) -> None:
        """Add updates."""
        keyed: dict[bytes, list[Entry]] = {}
        for entry in updates:
            keyed.setdefault(self.key_of(entry[0]), []).append(entry)
        self.insert_keyed(keyed)

    def insert_keyed(self, keyed: Mapping[bytes, Sequence[Entry]]) -> None:
        """Add updates whose keys are known."""
        levels = self.levels
        if self.notice is not None:
            self.notice(keyed)
        levels.layer.insert(keyed, self.since)
        if levels.layer.records >= levels.spill_records:
            levels.freeze()

    def insert_columns(self, layer: ColumnLayer) -> None:
        """Add many updates at once, with the hashes of their keys."""
        self.levels.add_columns(layer, self.since)

    def advance_since(self, since: Timestamp) -> None:
        """Nobody will read before `since` again."""
        self.since = max(self.since, since)

    def restore(self, directory: Path, manifest: Manifest) -> None:
        """Take over a snapshot, into an arrangement that is still empty."""
        assert not self.size.records, "only an empty arrangement can be restored"
        self.levels.restore(directory, manifest)
        self.since = Timestamp(manifest.since)

    def probe(
        self, keys: Sequence[bytes], parts: Sequence[Datum] | None = None
    ) -> dict[bytes, Sequence[Entry]]:
        """All entries of these different keys; keys without entries are left out.

        Entries are added up where a row came and went. The lists must not be changed. `parts` are
        what the keys were encoded from, as KeyParts has it: who knows them spares some work.
        """
        newest, *older = self.levels.keyed
        at_once = newest.groups.get
        found: dict[bytes, Sequence[Entry]] = {
            key: group for key in keys if (group := at_once(key)) is not None
        }
        for layer in older:
            groups = layer.groups
            for key in keys:
                group = groups.get(key)
                if group is not None:
                    found[key] = [*found[key], *group] if key in found else group
        if self.levels.runs or self.levels.frozen:
            self._probe_hashed(keys, found, parts)
        for key, entries in found.items():
            if len(entries) > 1 and min([entry[2] for entry in entries]) < 0:
                found[key] = add_up(entries, self.since, self.identity)
        return found

    def _probe_hashed(
        self,
        keys: Sequence[bytes],
        found: dict[bytes, Sequence[Entry]],
        parts: Sequence[Datum] | None,
    ) -> None:
        """What lies below the layers by key, and was not found there a moment ago."""
        recent = self.levels.recent.found
        missing = [key for key in keys if key not in recent] if recent else keys
        if len(missing) < len(keys):
            if parts is not None:
                parts = [part for key, part in zip(keys, parts, strict=True) if key not in recent]
            for key in keys:
                if entries := recent.get(key):
                    found[key] = [*entries, *found[key]] if key in found else entries
        of_runs = self._search(missing, parts) if missing else {}
        for key, lying in of_runs.items():
            found[key] = [*lying, *found[key]] if key in found else lying
        if missing and self._is_hot(len(missing)):
            self.levels.recent.remember(missing, of_runs)

    def _is_hot(self, asked: int) -> bool:
        """Whether keys will probably be asked for again: there are few, or few were asked for."""
        if asked <= _FEW_KEYS:
            return True
        return sum([len(source.hashes) for source in self.levels.hashed]) <= SMALL_RECORDS

    def _search(
        self, keys: Sequence[bytes], parts: Sequence[Datum] | None
    ) -> dict[bytes, list[Entry]]:
        """Hashes lead to entries; the keys of these decide."""
        needles = hash_bytes(keys)
        pick, encode = self.parts.pick, self.parts.encode
        of_runs: dict[bytes, list[Entry]] = {}
        for source in self.levels.hashed:
            positions, places = source.find(needles)
            if not len(places):
                continue
            # Entries of one key mostly come one after the other, and are looked at once.
            seen, seen_part, group = -1, None, None
            for position, entry in zip(positions.tolist(), source.entries(places), strict=True):
                part = pick(entry[0])
                if position != seen or part != seen_part:
                    key = keys[position]
                    same = (parts is not None and parts[position] == part) or encode(part) == key
                    group = of_runs.setdefault(key, []) if same else None
                    seen, seen_part = position, part
                if group is not None:
                    group.append(entry)
        return of_runs

    def find(
        self,
        keys: Sequence[Column],
        hashes: Ints,
        also: Sequence[Source] = (),
        *,
        before: int | None = None,
    ) -> tuple[Ints, Batch]:
        """Entries by the hashes and columns of their keys, also in what is not part of it yet.

        Gives for each entry the position of its key, and the entries as they are: a row that came
        and went may be there both ways. Of its own, only those are given whose time is `before`.
        """
        hits = _hits((*all_sources(self.levels), *also), hashes)
        if not hits:
            return np.zeros(0, np.int64), concat_batches(self.types, ())
        positions: list[Ints] = []
        batches: list[Batch] = []
        for source, at, places in hits:
            entries = source.at(places)
            if before is not None and source not in also:
                early = entries.times < before
                at, entries = at[early], entries.take(early)
            positions.append(at)
            batches.append(entries)
        where = np.concatenate(positions)
        found = concat_batches(self.types, batches)
        each = is_each(where, len(hashes))
        same = np.ones(len(where), np.bool_)
        for sql_type, wanted, column in zip(self.parts.types, keys, self.key, strict=True):
            taken = wanted if each else wanted.take(where)
            same &= equal_keys(sql_type, taken, found.columns[column])
        return (where, found) if same.all() else (where[same], found.take(same))

    def lookup(self, key: Row, as_of: Timestamp) -> list[tuple[Row, int]]:
        """Rows with this key at `as_of`, or BelowSince. NULL finds NULL."""
        self._check(as_of)
        encoded = row_key_encoder(self.parts.types)(key)
        return contents_at(self, self.probe([encoded]).get(encoded, ()), as_of)

    def scan(self, as_of: Timestamp) -> list[tuple[Row, int]]:
        """All rows at `as_of`, or BelowSince."""
        self._check(as_of)
        return contents_at(self, all_entries(self.levels), as_of)

    @property
    def size(self) -> Size:
        """How much there is."""
        by_key, in_columns, in_runs = count_records(self.levels)
        in_memory = by_key * ENTRY_BYTES + in_columns * COLUMN_ENTRY_BYTES
        return Size(
            by_key + in_columns + in_runs,
            in_memory + sum(run.file_bytes for run in self.levels.runs),
        )

    def _check(self, as_of: Timestamp) -> None:
        if as_of < self.since:
            raise BelowSince(as_of, self.since)


def _hits(sources: Sequence[Source], hashes: Ints) -> list[tuple[Source, Ints, Ints]]:
    """Where there are entries of these hashes: positions among the hashes, places in the source."""
    if not sources:
        return []
    needles, order = in_search_order(hashes)
    hits = [(source, *source.find(needles)) for source in sources]
    hits = [hit for hit in hits if len(hit[2])]
    if order is None:
        return hits
    if len(hits) == 1 and is_each(hits[0][1], len(needles)):
        # Each is there once, as are the rows that foreign keys name. Given in the order asked for,
        # they spare whoever asks from taking his own rows in theirs.
        source, each, places = hits[0]
        in_turn = np.empty_like(places)
        in_turn[order] = places
        return [(source, each, in_turn)]
    return [(source, order[at], places) for source, at, places in hits]


def contents_at(
    arrangement: Arrangement, entries: Iterable[Entry], as_of: Timestamp
) -> list[tuple[Row, int]]:
    """What these entries of an arrangement add up to at `as_of`."""
    then = (entry for entry in entries if entry[1] <= as_of)
    return [(row, count) for row, _, count in add_up(then, as_of, arrangement.identity)]
