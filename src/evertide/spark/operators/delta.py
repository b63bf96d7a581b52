"""What one node gives in one tick."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import numpy as np

from evertide.expr.columnar.batch import Batch, Entry, add_up, batch_of, concat_batches
from evertide.expr.columnar.column import has_nulls
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.relation import Types
from evertide.expr.row_key import RowKey, identity_function
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.operators.keyed import ByKey, Parted
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

# (encoded error, timestamp, diff)
ErrorEntry: TypeAlias = tuple[str, int, int]
# From so many rows on, columns are quicker.
WIDE_ROWS: Final = 256


def are_many(count: int) -> bool:
    """Whether so many rows are better handled by columns."""
    return count >= WIDE_ROWS


def are_many_for(count: int, columns: int) -> bool:
    """The same where the work by columns grows with how many there are."""
    return count >= WIDE_ROWS * max(2, columns // 8)


class Delta:
    """Changes of rows and errors; never changed once made, since several nodes may read it.

    Rows are entries or columns, whichever the node before had; the other form is made when somebody
    asks for it. Few rows are quicker one by one, many by columns: `is_wide` says which these are.
    """

    __slots__ = ("_batch", "_layers", "_parted", "_rows", "errors")

    def __init__(
        self,
        rows: Sequence[Entry] | None = None,
        errors: Sequence[ErrorEntry] = (),
        *,
        batch: Batch | None = None,
    ) -> None:
        self._rows = rows
        self._batch = batch
        self.errors = errors
        self._parted: dict[tuple[tuple[int, ...], bool], Parted] | None = None
        self._layers: dict[tuple[int, ...], ColumnLayer] = {}

    def __len__(self) -> int:
        """How many changes of rows."""
        if self._rows is not None:
            return len(self._rows)
        return 0 if self._batch is None else len(self._batch)

    @property
    def is_nothing(self) -> bool:
        """Whether there are neither rows nor errors."""
        return not self.errors and not len(self)

    @property
    def is_wide(self) -> bool:
        """Whether there are so many rows that columns pay."""
        return are_many(len(self))

    @property
    def rows(self) -> Sequence[Entry]:
        """Row by row."""
        if self._rows is None:
            self._rows = () if self._batch is None else self._batch.entries()
        return self._rows

    def batch(self, types: Types) -> Batch:
        """By columns; the types are those of the node that gave it."""
        if self._batch is None:
            self._batch = batch_of(types, self._rows or ())
        return self._batch

    def by_key(self, keys: ByKey, *, drop_nulls: bool) -> Parted:
        """Row by row, by the key of some columns; not to be changed.

        A join looks for its inputs' changes by the keys under which they are kept as well, so what
        was found for one of them is at hand for the other.
        """
        if not len(self):
            return Parted({}, [])
        name = (keys.columns, drop_nulls)
        if self._parted is None:
            self._parted = {}
        parted = self._parted.get(name)
        if parted is None:
            parted = self._parted[name] = keys(self.rows, drop_nulls=drop_nulls)
        return parted

    def by_hash(
        self, types: Types, key: tuple[int, ...], *, drop_nulls: bool
    ) -> ColumnLayer | None:
        """By columns, sorted by the hash of some of them; None if nothing is left."""
        batch = self.batch(types)
        kept = without_nulls(batch, key) if drop_nulls else batch
        if not len(kept):
            return None
        key_types = tuple(types[i] for i in key)
        hashes = hash_keys(key_types, [kept.columns[i] for i in key], len(kept))
        layer = ColumnLayer.of(hashes, kept)
        if drop_nulls:
            self._layers[key] = layer
        return layer

    def hashed(self, key: tuple[int, ...]) -> ColumnLayer | None:
        """The same without NULLs in the key, if somebody has asked for it: a join mostly looks for
        its inputs' changes by the keys under which they are kept as well."""
        return self._layers.get(key)

    def times(self) -> tuple[int, int]:
        """The first and last of all; there is at least one."""
        times = [ts for _, ts, _ in self.errors]
        if self._rows is not None:
            times += [ts for _, ts, _ in self._rows]
        elif self._batch is not None and len(self._batch):
            times += [int(self._batch.times.min()), int(self._batch.times.max())]
        return min(times), max(times)

    def with_errors(self, errors: Sequence[ErrorEntry]) -> "Delta":
        """The same rows, and these errors instead of its own."""
        return Delta(self._rows, errors, batch=self._batch)


NOTHING = Delta(())


def without_nulls(batch: Batch, columns: Sequence[int]) -> Batch:
    """Rows in which none of these columns is NULL."""
    null = np.zeros(len(batch), np.bool_)
    for column in columns:
        if has_nulls(batch.columns[column]):
            null |= batch.columns[column].null_mask
    return batch.take(~null) if null.any() else batch


def gathered(types: Types, deltas: Sequence[Delta]) -> Delta:
    """All of them together, by columns if any of them is wide."""
    given = [delta for delta in deltas if not delta.is_nothing]
    if len(given) < 2:
        return given[0] if given else NOTHING
    errors = [error for delta in given for error in delta.errors]
    if any(delta.is_wide for delta in given):
        return Delta(errors=errors, batch=concat_batches(types, [d.batch(types) for d in given]))
    return Delta([entry for delta in given for entry in delta.rows], errors)


@dataclass(frozen=True, slots=True)
class Tick:
    """What is asked in one tick. `constants_at` is set in a dataflow's first one only."""

    inputs: Mapping[GlobalId, Delta]
    constants_at: Timestamp | None
    upper: Timestamp


class Operator(Protocol):
    """One node."""

    def step(self, deltas: Sequence[Delta], tick: Tick) -> Delta:
        """This node's delta from those of the nodes before it."""
        ...


class Stateful(Operator, Protocol):
    """A node that keeps something between ticks."""

    def commit(self, upper: Timestamp) -> None:
        """Take the tick's changes in; nothing before `upper` is told apart from now on."""
        ...

    def abort(self) -> None:
        """Forget the tick's changes."""
        ...

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        """What is to be merged, measured and saved."""
        ...


@dataclass(frozen=True, slots=True)
class Room:
    """Where a stateful node may put its files, and when it should."""

    directory: Path
    spill_records: int

    def arrangement(
        self, name: str, types: Types, key: tuple[int, ...], since: Timestamp
    ) -> Arrangement:
        """An empty arrangement in a directory of its own."""
        return Arrangement(
            self.directory / name, types, key, since=since, spill_records=self.spill_records
        )


def consolidated(delta: Delta, types: Types) -> Delta:
    """Identical changes added up, zeros dropped."""
    errors: dict[tuple[str, int], int] = {}
    for error, ts, diff in delta.errors:
        errors[error, ts] = errors.get((error, ts), 0) + diff
    left = [(error, ts, diff) for (error, ts), diff in errors.items() if diff]
    if delta.is_wide:
        return Delta(errors=left, batch=add_up(delta.batch(types)))
    return Delta(_added_up(delta.rows, types), left)


def _added_up(entries: Sequence[Entry], types: Types) -> list[Entry]:
    identity = identity_function(types)
    names: list[tuple[Hashable, int]] = (
        [(row, ts) for row, ts, _ in entries]
        if identity is None
        else [(identity(row), ts) for row, ts, _ in entries]
    )
    if len(set(names)) == len(names):
        # Mostly each is there once.
        return [entry for entry in entries if entry[2]]
    sums: dict[tuple[Hashable, int], Entry] = {}
    for key, (row, ts, diff) in zip(names, entries, strict=True):
        known = sums.get(key)
        sums[key] = (row, ts, diff) if known is None else (known[0], ts, known[2] + diff)
    return [entry for entry in sums.values() if entry[2]]


def counted_by_identity(
    entries: Iterable[Entry], identity: RowKey | None
) -> dict[Hashable, tuple[Row, int]]:
    """Rows with their multiplicities, whatever their times; a dict of one's own, to be changed."""
    counted: dict[Hashable, tuple[Row, int]] = {}
    for row, _, diff in entries:
        name = row if identity is None else identity(row)
        counted[name] = (row, counted[name][1] + diff if name in counted else diff)
    return counted


def difference(
    before: Sequence[tuple[Row, int]],
    after: Sequence[tuple[Row, int]],
    ts: int,
    identity: RowKey | None,
) -> list[Entry]:
    """What must be added to `before` to make it `after`."""
    if before == after and identity is None:
        return []
    sums: dict[Hashable, Entry] = {}
    for counts, sign in ((before, -1), (after, 1)):
        for row, count in counts:
            name = row if identity is None else identity(row)
            known = sums[name][2] if name in sums else 0
            sums[name] = (row, ts, known + sign * count)
    return [entry for entry in sums.values() if entry[2]]
