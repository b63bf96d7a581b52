"""Rows of temporary tables, in memory and bounded."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from sys import getsizeof
from typing import Final, TypeAlias

from evertide.expr.group_rows import consolidated
from evertide.expr.row_key import RowKey, identity_function
from evertide.persist.txn import TableWrite, diff_rows
from evertide.sql.syntax.definition import OnCommit
from evertide.vocab.datum import Row
from evertide.vocab.errors import InsufficientResources
from evertide.vocab.relation_desc import RelationDesc

_Counted: TypeAlias = tuple[Row, int]

# What the temporary tables of one session may take, and those of all sessions of a process.
SESSION_BYTES: Final = 64 * 1024 * 1024
PROCESS_BYTES: Final = 512 * 1024 * 1024
# A place in a list, and the pair that stands there.
_PER_ROW: Final = 72


@dataclass(frozen=True, slots=True)
class HeldTable:
    """What one table holds; a change makes another, so that a block can be rolled back."""

    desc: RelationDesc
    # Later ones are shorter, so that adding a row seldom copies many.
    runs: tuple[Sequence[_Counted], ...] = ()
    weight: int = 0
    # What becomes of it when a transaction ends; None: nothing.
    on_commit: OnCommit | None = None

    @property
    def rows(self) -> list[_Counted]:
        """Each row with how often it is there."""
        return [row for run in self.runs for row in run]

    @property
    def count(self) -> int:
        """How many entries it has; equal rows may be one."""
        return sum(map(len, self.runs))

    def looked_at(self, write: TableWrite) -> int:
        """How many rows it takes a look at to write this."""
        return row_count(write) + (0 if write.only_adds else self.count)

    def after(self, write: TableWrite) -> "HeldTable":
        """The table once this is written."""
        rows = diff_rows(write)
        if all(diff > 0 for _, diff in rows):
            return self._with(rows)
        changes = consolidated(rows, self.desc.types)
        gone = [(row, -diff) for row, diff in changes if diff < 0]
        return self._without(gone)._with([change for change in changes if change[1] > 0])

    def _without(self, gone: Sequence[_Counted]) -> "HeldTable":
        """Each of these rows as often less; only what goes is weighed."""
        identity = identity_function(self.desc.types) or _itself
        left = {identity(row): count for row, count in gone}
        runs: list[Sequence[_Counted]] = []
        weight = self.weight
        for run in self.runs:
            kept = run
            if any(identity(row) in left for row, _ in run):
                kept, lost = _taken_from(run, left, identity)
                weight -= weight_of(lost)
            if kept:
                runs.append(kept)
        missing = [(row, -left[identity(row)]) for row, _ in gone if left[identity(row)]]
        return replace(self, runs=tuple(runs), weight=weight)._with(missing)

    def _with(self, rows: Sequence[_Counted]) -> "HeldTable":
        if not rows:
            return self
        runs = [*self.runs, rows]
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            last = runs.pop()
            runs[-1] = [*runs[-1], *last]
        return replace(self, runs=tuple(runs), weight=self.weight + weight_of(rows))

    def emptied(self) -> "HeldTable":
        return replace(self, runs=(), weight=0)


def _itself(row: Row) -> Hashable:
    return row


def _taken_from(
    run: Sequence[_Counted], left: dict[Hashable, int], identity: RowKey
) -> tuple[list[_Counted], list[_Counted]]:
    """What stays of a run, and entries that go; `left` is what is still to be taken elsewhere."""
    kept: list[_Counted] = []
    lost: list[_Counted] = []
    for entry in run:
        key = identity(entry[0])
        wanted = left.get(key, 0)
        if not wanted or entry[1] < 0:
            kept.append(entry)
            continue
        taken = min(wanted, entry[1])
        left[key] = wanted - taken
        if taken == entry[1]:
            lost.append(entry)
        else:
            kept.append((entry[0], entry[1] - taken))
    return kept, lost


def row_count(write: TableWrite) -> int:
    """How many rows a write has, be they rows or columns."""
    columns: int = sum(table.num_rows for table in write.tables)
    return len(write.rows) + columns


def least_weight(write: TableWrite) -> int:
    """What those of its rows which are columns yet will take as rows, and more."""
    return (row_count(write) - len(write.rows)) * least_row_weight(write.desc.arity)


def least_row_weight(arity: int) -> int:
    """What a row of so many columns takes, whatever its values are."""
    return _PER_ROW + getsizeof((None,) * arity)


def weight_of(rows: Iterable[_Counted]) -> int:
    """About how many bytes these rows take."""
    return sum(_PER_ROW + _weight(row) for row, _ in rows)


def _weight(datum: object) -> int:
    inner = sum(map(_weight, datum)) if isinstance(datum, tuple | list) else 0
    if isinstance(datum, dict):
        inner = sum(_weight(key) + _weight(value) for key, value in datum.items())
    return getsizeof(datum) + inner


class Space:
    """What the temporary tables of a process take together."""

    def __init__(self, limit: int = PROCESS_BYTES) -> None:
        self._limit = limit
        self._used = 0

    def check(self, before: int, after: int) -> None:
        """Refuse that one session's tables grow by so much, if that is too much."""
        if after <= before:
            return
        if after > SESSION_BYTES:
            raise too_large()
        if self._used + after - before > self._limit:
            raise InsufficientResources(
                f"temporary tables of all sessions are limited to {self._limit} bytes",
                hint="Use a table that is not temporary, or try again later.",
            )

    def change(self, before: int, after: int) -> None:
        self._used += after - before


def too_large() -> InsufficientResources:
    """The error of more rows than one session may have."""
    return InsufficientResources(
        f"the session's temporary tables are limited to {SESSION_BYTES} bytes",
        hint="Delete rows, or keep them in a table that is not temporary.",
    )
