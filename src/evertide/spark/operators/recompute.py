"""Recursions in dataflows: computed anew at every timestamp at which an input changes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from evertide.dataflow.delta_plan import RecomputeNode
from evertide.expr.budget import Budget
from evertide.expr.columnar.batch import Entry
from evertide.expr.group_rows import consolidated
from evertide.expr.interpret import Collection
from evertide.expr.relation import Types
from evertide.expr.row_key import RowKey, identity_function
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.delta import (
    NOTHING,
    Delta,
    ErrorEntry,
    Room,
    Tick,
    counted_by_identity,
)
from evertide.spark.operators.solver import MakePlan, Solver
from evertide.vocab.datum import Row
from evertide.vocab.errors import ProgramLimitExceeded, encode_error
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back

Rows: TypeAlias = dict[Hashable, tuple[Row, int]]


@dataclass(frozen=True, slots=True)
class _Given:
    """What it gave last."""

    rows: Rows
    errors: dict[str, int]


class RecomputeOperator:
    """Keeps its inputs; emits how what comes of them has changed, per timestamp.

    Errors of the inputs pass. A recursion that takes too much is an error too: it is one for
    everybody who computes it, and goes with the rows that made it.
    """

    def __init__(
        self, node: RecomputeNode, input_types: Sequence[Types], room: Room, make_plan: MakePlan
    ) -> None:
        self._node = node
        self._room = room
        self._solver = Solver(node.recursion, make_plan)
        self._kept = [
            room.arrangement(f"rows{number}", types, tuple(range(len(types))), MIN_TS)
            for number, types in enumerate(input_types)
        ]
        # None: not known, it has to be found out from what is kept.
        self._last: _Given | None = _Given({}, {})
        self._next: _Given | None = None
        self._pending: list[Sequence[Entry]] = []

    @property
    def arrangements(self) -> Sequence[Arrangement]:
        return self._kept

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        given = [deltas[place] for place in self._node.inputs]
        errors: list[ErrorEntry] = [error for delta in given for error in delta.errors]
        if not any(map(len, given)):
            return Delta((), errors) if errors else NOTHING
        self._pending = [delta.rows for delta in given]
        changes = sorted(
            (
                (ts, number, row, diff)
                for number, rows in enumerate(self._pending)
                for row, ts, diff in rows
            ),
            key=itemgetter(0),
        )
        start = step_back(Timestamp(changes[0][0]))
        inputs = [
            counted_by_identity([(row, 0, n) for row, n in kept.scan(start)], kept.identity)
            for kept in self._kept
        ]
        last = self._solved(inputs) if self._last is None else self._last
        rows: list[Entry] = []
        for ts, batch in groupby(changes, key=itemgetter(0)):
            for _, number, row, diff in batch:
                _change(inputs[number], self._kept[number].identity, row, diff)
            new = self._solved(inputs)
            rows += _row_changes(last.rows, new.rows, ts)
            errors += _error_changes(last.errors, new.errors, ts)
            last = new
        self._next = last
        return Delta(rows, errors)

    def _solved(self, inputs: Sequence[Rows]) -> _Given:
        given = [[counted for counted in rows.values() if counted[1]] for rows in inputs]
        try:
            found = self._solver.solve(given, Budget(), self._room.directory)
        except ProgramLimitExceeded as error:
            found = Collection([], [(encode_error(error), 1)])
        identity = identity_function(self._node.types)
        rows = consolidated(found.rows, self._node.types)
        return _Given(
            {row if identity is None else identity(row): (row, n) for row, n in rows},
            dict(found.errors),
        )

    def commit(self, upper: Timestamp) -> None:
        for kept, entries in zip(self._kept, self._pending, strict=False):
            kept.insert(entries)
        for kept in self._kept:
            kept.advance_since(step_back(upper))
        if self._pending:
            self._last = self._next
        self._pending, self._next = [], None

    def abort(self) -> None:
        self._pending, self._next = [], None


def _change(rows: Rows, identity: RowKey | None, row: Row, diff: int) -> None:
    name = row if identity is None else identity(row)
    rows[name] = (row, diff + (rows[name][1] if name in rows else 0))


def _row_changes(before: Rows, after: Rows, ts: int) -> list[Entry]:
    changed = [
        (row, ts, n - before[name][1] if name in before else n) for name, (row, n) in after.items()
    ]
    gone = [(row, ts, -n) for name, (row, n) in before.items() if name not in after]
    return [entry for entry in (*changed, *gone) if entry[2]]


def _error_changes(before: dict[str, int], after: dict[str, int], ts: int) -> list[ErrorEntry]:
    changes = [(e, ts, after.get(e, 0) - before.get(e, 0)) for e in (before | after)]
    return [entry for entry in changes if entry[2]]
