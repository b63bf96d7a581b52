"""Many updates at once: making them, telling them apart, adding them up."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Final, TypeAlias, cast

from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import Kind, SqlType
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

RowIdentity: TypeAlias = Callable[[Row], Hashable]
# What an Update is, whether or not it says so: row, ts, diff, error.
PlainUpdate: TypeAlias = tuple[Row, Timestamp, int, str | None]

# Kinds whose Python equality is not sameness of representation: 0.0 == -0.0, NaN != NaN.
_DECEPTIVE: Final = frozenset({Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC})
# Fills in a named tuple without the Python-level call of its constructor: half the time, and
# reading a shard is mostly this.
_new_update = cast(Callable[[PlainUpdate], Update], partial(tuple.__new__, Update))


def zip_updates(
    rows: Iterable[Row],
    timestamps: Iterable[Timestamp],
    diffs: Iterable[int],
    errors: Iterable[str | None],
) -> list[Update]:
    """Updates from their columns; as many as the shortest has."""
    return list(map(_new_update, zip(rows, timestamps, diffs, errors, strict=False)))


@dataclass(frozen=True, slots=True)
class UpdateColumns:
    """Updates in parallel sequences: how they are kept in memory.

    Rows of plain values are of no interest to the garbage collector, while it goes through every
    Update again and again: with some hundred thousand of them that stops the process for long.
    """

    rows: Sequence[Row]
    timestamps: Sequence[Timestamp]
    diffs: Sequence[int]
    errors: Sequence[str | None] | None = None  # None: there are none

    def __len__(self) -> int:
        return len(self.rows)

    def each(self) -> Iterator[PlainUpdate]:
        """One after the other."""
        errors = repeat(None) if self.errors is None else self.errors
        return zip(self.rows, self.timestamps, self.diffs, errors, strict=False)

    def updates(self) -> list[Update]:
        """The same as updates."""
        return list(map(_new_update, self.each()))

    def between(self, lower: Timestamp, upper: Timestamp) -> "UpdateColumns":
        """Those with lower <= ts < upper; the same object if that is all of them."""
        if not self.rows or (lower <= min(self.timestamps) and max(self.timestamps) < upper):
            return self
        return to_columns([update for update in self.each() if lower <= update[1] < upper])


def to_columns(updates: Sequence[PlainUpdate]) -> UpdateColumns:
    """Updates, or tuples like them, as columns."""
    if not updates:
        return UpdateColumns((), (), ())
    rows, timestamps, diffs, errors = zip(*updates, strict=True)
    has_errors = errors.count(None) < len(errors)
    return UpdateColumns(rows, timestamps, diffs, errors if has_errors else None)


def concat_columns(many: Sequence[UpdateColumns]) -> UpdateColumns:
    """All of them, one after the other; the same object if there is only one."""
    if len(many) == 1:
        return many[0]
    errors: list[str | None] | None = None
    if any(columns.errors is not None for columns in many):
        errors = [error for columns in many for *_, error in columns.each()]
    return UpdateColumns(
        list(chain.from_iterable(columns.rows for columns in many)),
        list(chain.from_iterable(columns.timestamps for columns in many)),
        list(chain.from_iterable(columns.diffs for columns in many)),
        errors,
    )


def consolidate_columns(
    types: tuple[SqlType, ...], updates: Iterable[PlainUpdate], since: Timestamp
) -> UpdateColumns:
    """Raise times to since, add up diffs of equal (row, timestamp), drop zeros; ordered by time."""
    identity_of = row_identity(types)
    diffs: dict[Hashable, int] = {}
    rows: dict[Hashable, tuple[Row, Timestamp, str | None]] = {}
    for row, ts, diff, error in updates:
        raised = max(ts, since)
        identity = (row if identity_of is None or error else identity_of(row), raised, error)
        diffs[identity] = diffs.get(identity, 0) + diff
        rows.setdefault(identity, (row, raised, error))
    left = [(*rows[identity], diff) for identity, diff in diffs.items() if diff]
    left.sort(key=lambda update: update[1])
    return to_columns([(row, ts, diff, error) for row, ts, error, diff in left])


@lru_cache(maxsize=1024)
def row_identity(types: tuple[SqlType, ...]) -> RowIdentity | None:
    """What tells rows of these types apart by representation; None: the row itself does.

    Most rows are their own identity even where a column may deceive; only those with a zero or NaN
    in it get a stand-in, which no row equals because it has a text in the column's place.
    """
    positions = [i for i, sql_type in enumerate(types) if _may_deceive(sql_type)]
    if not positions:
        return None

    def identity(row: Row) -> Hashable:
        for position in positions:
            if _deceives(row[position]):
                return tuple(_stand_in(datum) if _deceives(datum) else datum for datum in row)
        return row

    return identity


def _may_deceive(sql_type: SqlType) -> bool:
    if sql_type.element is not None:
        return _may_deceive(sql_type.element)
    return sql_type.kind in _DECEPTIVE


def _deceives(datum: Datum) -> bool:
    if isinstance(datum, tuple):
        return any(map(_deceives, datum))
    return datum != datum or (datum == 0 and isinstance(datum, float))


def _stand_in(datum: Datum) -> Hashable:
    if isinstance(datum, tuple):
        return tuple(_stand_in(d) if _deceives(d) else d for d in datum)
    return repr(datum)
