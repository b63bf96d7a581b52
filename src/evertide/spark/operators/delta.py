"""What one node gives in one tick."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from evertide.expr.relation import Types
from evertide.expr.row_key import RowKey, identity_function
from evertide.spark.arrangement import Arrangement
from evertide.spark.runs import Entry
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# (encoded error, timestamp, diff)
ErrorEntry: TypeAlias = tuple[str, int, int]


class Delta(NamedTuple):
    """Changes of rows and errors; never changed once made, since several nodes may read it."""

    rows: Sequence[Entry]
    errors: Sequence[ErrorEntry]


NOTHING = Delta((), ())


@dataclass(frozen=True, slots=True)
class Tick:
    """What is asked in one tick. `constants_at` is set in a dataflow's first one only."""

    inputs: Mapping[GlobalId, Delta]
    constants_at: Timestamp | None


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


def delta_of(updates: Iterable[Update]) -> Delta:
    """Updates of a collection, rows and errors told apart."""
    rows: list[Entry] = []
    errors: list[ErrorEntry] = []
    for row, ts, diff, error in updates:
        if error is None:
            rows.append((row, ts, diff))
        else:
            errors.append((error, ts, diff))
    return Delta(rows, errors)


def updates_of(delta: Delta, types: Types) -> list[Update]:
    """A delta as consolidated updates: identical ones added up, zeros dropped."""
    identity = identity_function(types)
    sums: dict[tuple[Hashable, int], int] = {}
    first: dict[tuple[Hashable, int], Entry] = {}
    for entry in delta.rows:
        row, ts, diff = entry
        key = (row if identity is None else identity(row), ts)
        if key in sums:
            sums[key] += diff
        else:
            sums[key] = diff
            first[key] = entry
    updates = [Update(first[key][0], Timestamp(key[1]), diff) for key, diff in sums.items() if diff]
    errors: dict[tuple[str, int], int] = {}
    for error, ts, diff in delta.errors:
        errors[error, ts] = errors.get((error, ts), 0) + diff
    return updates + [
        Update((), Timestamp(ts), diff, error) for (error, ts), diff in errors.items() if diff
    ]


def counted_by_identity(
    entries: Iterable[Entry], identity: RowKey | None
) -> dict[Hashable, tuple[Row, int]]:
    """Rows with their multiplicities, whatever their times; a dict of one's own, to be changed."""
    counted: dict[Hashable, tuple[Row, int]] = {}
    for row, _, diff in entries:
        name = row if identity is None else identity(row)
        counted[name] = (row, counted[name][1] + diff if name in counted else diff)
    return counted
