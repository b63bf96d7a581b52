"""A table's rows as Arrow columns, kept so that rows can be found by their values.

An image is a few runs of rows, each with how often every row is there. Runs are never changed: a
later image shares them, and notes beside them which rows went. The largest run is the oldest, so a
small change costs little however many rows there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evertide.persist.coding.row_reader import RowReader
from evertide.persist.threads import give_way
from evertide.persist.upkeep.merge import to_keys
from evertide.persist.upkeep.row_hash import row_hashes
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp

Ints: TypeAlias = npt.NDArray[np.int64]
# For each run of an image, the places of some of its rows.
Places: TypeAlias = list[Ints]

# A column tells rows apart well enough if so many of a sample have a value of their own.
_TELLING: Final = 0.9
_SAMPLE_ROWS: Final = 10_000
# A run is made anew once fewer of its rows than one in so many are left.
_SPARSE: Final = 2
# Counts of runs up to this length are copied when rows go; beside longer ones that is noted, until
# it is so much that one row in so many went since.
_COPIED_ROWS: Final = 4_096
_NOTED_SHARE: Final = 256
# Newest runs that are no longer than this together are kept as one: a search in each of many runs
# costs more than it does to make a small one anew.
_SMALL_ROWS: Final = 1_024
# An order of fewer rows is made at once; others are made on threads, which give way.
_QUICK_ROWS: Final = 20_000
# A row that is there more often is for others to count.
_MOST_TIMES: Final = 2**20
_OWN: Final = ("e", "t", "d")


class Order(NamedTuple):
    """Values of a column in order, and where each is; NULLs are not among them."""

    keys: Ints
    places: Ints
    # Whether no value is there twice, as it mostly is where rows are looked for.
    unique: bool

    def count(self, wanted: Ints) -> int:
        """How many places `find` would give."""
        ends = self.keys.searchsorted(wanted, "right")
        return int((ends - self.keys.searchsorted(wanted, "left")).sum())

    def find(self, wanted: Ints) -> tuple[Ints, Ints]:
        """Places with a wanted value, and beside each the place among `wanted` of that value."""
        first = self.keys.searchsorted(wanted, "left")
        if self.unique and len(self.keys):
            (which,) = (self.keys.take(first, mode="clip") == wanted).nonzero()
            return self.places.take(first.take(which)), which
        counts = self.keys.searchsorted(wanted, "right") - first
        if not counts.any():
            return _NOWHERE, _NOWHERE
        which = np.repeat(np.arange(len(wanted)), counts)
        before = np.cumsum(counts) - counts
        at = np.repeat(first - before, counts) + np.arange(len(which))
        return self.places[at], which

    def find_one(self, wanted: int) -> Ints:
        """Places with this value."""
        first = int(self.keys.searchsorted(wanted, "left"))
        if first == len(self.keys) or self.keys[first] != wanted:
            return _NOWHERE
        end = first + 1 if self.unique else int(self.keys.searchsorted(wanted, "right"))
        return self.places[first:end]


# So many pairs of a stored row and one to go are looked at.
_MOST_PAIRS: Final = 200_000
_NOWHERE: Final[Ints] = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Gone:
    """Places in order, each once, and how often the row there went."""

    places: Ints = field(default_factory=lambda: _NOWHERE)
    times: Ints = field(default_factory=lambda: _NOWHERE)

    def more(self, places: Ints, times: Ints) -> "Gone":
        """With these, among which places may repeat."""
        if len(self.places):
            places = np.concatenate([self.places, places])
            times = np.concatenate([self.times, times])
        by = places.argsort(kind="stable")
        places, times = places[by], times[by]
        if _repeats(places):
            starts = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
            places, times = places[starts], np.add.reduceat(times, starts)
        return Gone(places, times)

    def at(self, places: Ints) -> Ints:
        """How often the rows at these places went."""
        near = self.places.searchsorted(places)
        went = self.places.take(near, mode="clip") == places
        return np.where(went, self.times.take(near, mode="clip"), 0)


_NONE_GONE: Final = Gone()


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Rows, and how often each is there; 0: it is gone."""

    rows: pa.Table
    # How often each was there before some of them went.
    first_counts: npt.NDArray[np.int32]
    # How many of the rows are there.
    alive: int
    nbytes: int
    gone: Gone = _NONE_GONE
    # By column, made when first asked for; None: by the whole row's hash. Shared by later images.
    orders: dict[int | None, Order] = field(default_factory=dict)
    # The one that was asked for last, if any was; shared likewise.
    readers: list[RowReader] = field(default_factory=list)

    def __len__(self) -> int:
        """How many rows, those that went included."""
        return len(self.first_counts)

    def order(self, column: int | None) -> Order:
        """The rows by the values of a column of integers, or by their hashes."""
        known = self.orders.get(column)
        if known is None:
            known = self.orders[column] = _order(self.rows, column)
        return known

    def read(self, places: Ints, types: tuple[SqlType, ...]) -> list[Row]:
        """The rows at these places as Python's, which have columns of these types."""
        return self.reader(types).rows(places)

    def reader(self, types: tuple[SqlType, ...]) -> RowReader:
        """What reads them."""
        if not self.readers or self.readers[0].types != types:
            self.readers[:] = [RowReader(self.rows, types)]
        return self.readers[0]

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """How often each row is there."""
        if not len(self.gone.places):
            return self.first_counts
        counts = self.first_counts.copy()
        counts[self.gone.places] -= self.gone.times.astype(np.int32)
        return counts

    def counts_at(self, places: Ints) -> Ints:
        """How often the rows at these places are there."""
        counts = self.first_counts.take(places).astype(np.int64)
        return counts - self.gone.at(places) if len(self.gone.places) else counts

    def without(self, places: Ints, times: Ints) -> "Run":
        """The same with rows taken away so many times; all of them are there so often."""
        gone = self.gone.more(places, times)
        once = np.unique(places) if _repeats(np.sort(places)) else places
        left = self.first_counts[once] - gone.at(once)
        alive = self.alive - (len(once) - int(np.count_nonzero(left)))
        run = replace(self, alive=alive, gone=gone)
        if len(self) > _COPIED_ROWS and _NOTED_SHARE * len(gone.places) <= len(self):
            return run
        return replace(run, first_counts=run.counts, gone=_NONE_GONE)


def new_run(rows: pa.Table, counts: Ints) -> Run:
    """Rows that nobody has looked for yet; none is there two billion times."""
    nbytes = rows.nbytes + 24 * len(counts)  # with an order or two
    return Run(rows, counts.astype(np.int32), int(np.count_nonzero(counts)), nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class TableImage:
    """What a table holds at a timestamp."""

    as_of: Timestamp
    # Where the last of the shard's batches that are in it ends; None: one of them is cut.
    boundary: Timestamp | None
    runs: tuple[Run, ...]
    # The column that tells rows apart; None: none does, their hashes do.
    telling: int | None

    @property
    def nbytes(self) -> int:
        """About how much memory it takes, the orders included."""
        return sum(run.nbytes for run in self.runs)

    def all_places(self) -> Places:
        """Every row."""
        return [np.flatnonzero(run.counts) for run in self.runs]

    def find(self, column: int, wanted: Ints) -> Places:
        """Rows with one of these different values in a column of integers."""
        return self.find_counted(column, wanted)[0]

    def find_counted(self, column: int, wanted: Ints) -> tuple[Places, list[int]]:
        """The same, and how often each of the rows is there."""
        found: Places = []
        times: list[int] = []
        for run in self.runs:
            order = run.order(column)
            places = order.find_one(wanted[0]) if len(wanted) == 1 else order.find(wanted)[0]
            if len(places):
                places = np.sort(places)
                counts = run.counts_at(places)
                if not counts.all():
                    places, counts = places[counts != 0], counts[counts != 0]
                times += counts.tolist()
            found.append(places)
        return found, times

    def prepare(self, earlier: "TableImage") -> None:
        """Make of new runs, which are short, what whoever looked for rows asked of an earlier one:
        otherwise the next would wait for it."""
        asked = earlier.runs[0]
        for run in self.runs:
            if len(run) > _QUICK_ROWS:
                continue
            for column in tuple(asked.orders):
                run.order(column)
            for reader in tuple(asked.readers):
                run.reader(reader.types)

    def without(self, places: Places) -> "TableImage":
        """The same after all of these rows went."""
        runs = [
            run.without(at, run.counts_at(at)) if len(at) else run
            for run, at in zip(self.runs, places, strict=True)
        ]
        return replace(self, runs=tuple(runs))

    def counts(self, places: Places) -> list[int]:
        """How often each of these rows is there."""
        pairs = zip(self.runs, places, strict=True)
        return [count for run, at in pairs if len(at) for count in run.counts_at(at).tolist()]

    def read(self, places: Places, types: tuple[SqlType, ...]) -> list[Row]:
        """These rows as Python's: the way for a few of them."""
        pairs = zip(self.runs, places, strict=True)
        return [row for run, at in pairs if len(at) for row in run.read(at, types)]

    def take(self, places: Places) -> tuple[pa.Table, Ints]:
        """These rows, and how often each is there."""
        found = [(run, at) for run, at in zip(self.runs, places, strict=True) if len(at)]
        if not found:
            return self.runs[0].rows.slice(0, 0), _NOWHERE
        tables = [_look_at(run.rows, at) for run, at in found]
        counts = [run.counts_at(at) for run, at in found]
        if len(found) == 1:
            return tables[0], counts[0]
        return pa.concat_tables(tables), np.concatenate(counts)


def make_image(table: pa.Table, as_of: Timestamp, boundary: Timestamp | None) -> TableImage | None:
    """The image of a snapshot, which persist/snapshot.py makes; None if it cannot have one.

    A row that is there less than no times, or an error, is for others to tell.
    """
    counts = table["d"].to_numpy().astype(np.int64)
    if table["e"].null_count != table.num_rows or not _countable(counts):
        return None
    rows = _one_chunk(table.drop_columns(list(_OWN)))
    telling = _telling_column(rows)
    return TableImage(as_of, boundary, (new_run(rows, counts),), telling)


def advance(
    image: TableImage, updates: pa.Table, as_of: Timestamp, boundary: Timestamp | None
) -> TableImage | None:
    """The image after these updates; None if a row goes that was not there."""
    diffs = updates["d"].to_numpy()
    if updates["e"].null_count != updates.num_rows or not _countable(np.abs(diffs)):
        return None
    rows = updates.drop_columns(list(_OWN))
    runs = list(image.runs)
    if (diffs > 0).any():
        added = rows if (diffs > 0).all() else rows.filter(pa.array(diffs > 0))
        runs.append(new_run(_one_chunk(added), diffs[diffs > 0].astype(np.int64)))
    if (diffs < 0).any():
        gone = _one_chunk(rows.filter(pa.array(diffs < 0)))
        left = _without(runs, gone, -diffs[diffs < 0].astype(np.int64), image.telling)
        if left is None:
            return None
        runs = left
    return TableImage(as_of, boundary, tuple(_merged(runs)), image.telling)


def _without(
    runs: Sequence[Run], gone: pa.Table, times: Ints, column: int | None
) -> list[Run] | None:
    """The runs with these rows taken away as many times.

    None if they do not hold them, or if so many rows look alike that it is quicker to read all.
    """
    if column is not None and gone.column(column).null_count:
        return None
    keys = _keys(gone, column)
    owed = times.copy()
    left: list[Run] = []
    for run in runs:
        order = run.order(column)
        if order.count(keys) > _MOST_PAIRS + len(keys):
            return None
        places, which = order.find(keys)
        if not len(places):
            left.append(run)
            continue
        there = run.counts_at(places) > 0
        places, which = places[there], which[there]
        same = _same_rows(_look_at(run.rows, places), _look_at(gone, which))
        places, which = places[same], which[same]
        taken = _taken(run, places, which, owed)
        np.subtract.at(owed, which, taken)
        left.append(run.without(places, taken) if len(places) else run)
    return None if owed.any() else left


def _taken(run: Run, places: Ints, which: Ints, owed: Ints) -> Ints:
    """How often each pair of a stored row and a row to go cancel each other out."""
    counts = run.counts_at(places)
    if not _repeats(np.sort(places)) and not _repeats(which):
        return np.minimum(counts, owed[which])
    have, want = dict(zip(places.tolist(), counts.tolist(), strict=True)), owed.copy()
    taken = np.zeros(len(places), np.int64)
    for pair, (place, row) in enumerate(zip(places.tolist(), which.tolist(), strict=True)):
        taken[pair] = min(have[place], want[row])
        have[place] -= taken[pair]
        want[row] -= taken[pair]
    return taken


def _countable(counts: Ints) -> bool:
    return not len(counts) or bool(counts.min() >= 0 and counts.max() < _MOST_TIMES)


def _repeats(ordered: Ints) -> bool:
    return bool((ordered[1:] == ordered[:-1]).any())


def _same_rows(left: pa.Table, right: pa.Table) -> npt.NDArray[np.bool_]:
    same = np.ones(left.num_rows, np.bool_)
    for one, other in zip(to_keys(left).columns, to_keys(right).columns, strict=True):
        equal = pc.equal(one, other)
        if equal.null_count:
            both = pc.and_(pc.is_null(one), pc.is_null(other))
            equal = pc.if_else(both, True, pc.fill_null(equal, False))
        same &= equal.to_numpy()
    return same


def _merged(runs: Sequence[Run]) -> list[Run]:
    """Runs of which each is more than twice as long as the next, without most of what is gone."""
    kept: list[Run] = []
    for run in runs:
        if run.alive:
            kept.append(run if _SPARSE * run.alive >= len(run) else _joined([run]))
    small = len(kept)
    while small and sum(map(len, kept[small - 1 :])) <= _SMALL_ROWS:
        small -= 1
    if len(kept) - small > 1:
        kept[small:] = [_joined(kept[small:])]
    merged: list[Run] = []
    for run in kept:
        merged.append(run)
        while len(merged) > 1 and 2 * len(merged[-1]) >= len(merged[-2]):
            merged[-2:] = [_joined(merged[-2:])]
    return merged or list(runs[:1])


def _joined(runs: Sequence[Run]) -> Run:
    rows: list[pa.Table] = []
    counts: list[npt.NDArray[np.int32]] = []
    for run in runs:
        there = run.counts
        live = np.flatnonzero(there)
        rows.append(run.rows if len(live) == len(run) else _take(run.rows, live))
        counts.append(there[live])
    return new_run(_one_chunk(pa.concat_tables(rows)), np.concatenate(counts).astype(np.int64))


def _telling_column(rows: pa.Table) -> int | None:
    """The column of integers in which most rows differ, if they mostly do."""
    step = rows.num_rows // _SAMPLE_ROWS + 1
    best, share = None, _TELLING
    for index, column in enumerate(rows.columns):
        if is_integer(column.type) and not column.null_count and rows.num_rows:
            sample = _keys(rows, index)[::step]
            found = len(np.unique(sample)) / len(sample)
            if found > share:
                best, share = index, found
    return best


def is_integer(kind: pa.DataType) -> bool:
    """Whether rows can be found by the values of such a column."""
    return bool(pa.types.is_signed_integer(kind))


def _order(rows: pa.Table, column: int | None) -> Order:
    keys = _keys(rows, column)
    places = None
    if column is not None and rows.column(column).null_count:
        places = np.flatnonzero(rows.column(column).is_valid().to_numpy())
        keys = keys[places]
    by = np.argsort(keys, kind="stable")
    if len(keys) > _QUICK_ROWS:
        give_way()
    ordered = keys[by]
    return Order(ordered, by if places is None else places[by], not _repeats(ordered))


def _keys(rows: pa.Table, column: int | None) -> Ints:
    """Integers that are equal where the column's values, or the whole rows, are; 0 for NULL."""
    if column is None:
        return row_hashes(to_keys(rows)).view(np.int64)
    values = rows.column(column)
    if values.null_count:
        values = values.fill_null(0)
    keys: Ints = values.to_numpy().astype(np.int64, copy=False)
    return keys


def _take(rows: pa.Table, places: Ints) -> pa.Table:
    return rows.take(pa.array(places))


def _look_at(rows: pa.Table, places: Ints) -> pa.Table:
    """The same for whoever soon lets go of it: a single row is not copied, and keeps all others."""
    return rows.slice(int(places[0]), 1) if len(places) == 1 else _take(rows, places)


def _one_chunk(rows: pa.Table) -> pa.Table:
    return rows.combine_chunks()
