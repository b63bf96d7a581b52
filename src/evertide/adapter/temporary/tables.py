"""Rows of temporary tables, in memory and bounded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from sys import getsizeof
from typing import Final, TypeAlias

from evertide.expr.interpret import consolidated
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

    def after(self, write: TableWrite) -> "HeldTable":
        """The table once this is written."""
        rows = diff_rows(write)
        if any(diff < 0 for _, diff in rows):
            left = consolidated([*self.rows, *rows], self.desc.types)
            return replace(self, runs=(left,), weight=weight_of(left))
        runs = [*self.runs, rows]
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            last = runs.pop()
            runs[-1] = [*runs[-1], *last]
        return replace(self, runs=tuple(runs), weight=self.weight + weight_of(rows))

    def emptied(self) -> "HeldTable":
        return replace(self, runs=(), weight=0)


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
            raise InsufficientResources(
                f"the session's temporary tables are limited to {SESSION_BYTES} bytes",
                hint="Delete rows, or keep them in a table that is not temporary.",
            )
        if self._used + after - before > self._limit:
            raise InsufficientResources(
                f"temporary tables of all sessions are limited to {self._limit} bytes",
                hint="Use a table that is not temporary, or try again later.",
            )

    def change(self, before: int, after: int) -> None:
        self._used += after - before
