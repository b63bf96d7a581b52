"""Nodes that keep nothing: inputs, constants, map-filter-project, negate, union."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evertide.dataflow.delta_plan import (
    ConstantNode,
    InputNode,
    LinearNode,
    NegateNode,
    UnionNode,
)
from evertide.expr.columnar.batch import Entry
from evertide.expr.columnar.batch import add_up as add_up_columns
from evertide.expr.columnar.scalars import ByRows
from evertide.expr.compile import compile_predicates, compile_scalar
from evertide.expr.relation import Types
from evertide.expr.row_key import identity_function, picker
from evertide.expr.scalar_walk import columns_of
from evertide.spark.arrangements.layer import add_up
from evertide.spark.operators.delta import NOTHING, Delta, ErrorEntry, Tick, gathered
from evertide.spark.operators.linear import compile_linear, early_and_late
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlError, encode_error
from evertide.vocab.timestamp import MIN_TS

RowFunction: TypeAlias = Callable[[Row], Row]
Test: TypeAlias = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class InputOperator:
    """The changes of an imported collection."""

    node: InputNode

    def step(self, _deltas: Sequence[Delta], tick: Tick) -> Delta:
        return tick.inputs.get(self.node.global_id, NOTHING)


@dataclass(frozen=True, slots=True)
class ConstantOperator:
    """Rows that come once."""

    node: ConstantNode

    def step(self, _deltas: Sequence[Delta], tick: Tick) -> Delta:
        if tick.constants_at is None:
            return NOTHING
        return Delta([(row, tick.constants_at, count) for row, count in self.node.rows], ())


@dataclass(frozen=True, slots=True)
class NegateOperator:
    """Diffs times -1; those of errors stay, so that no error hides another."""

    node: NegateNode

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self.node.input]
        if delta.is_wide:
            batch = delta.batch(self.node.types)
            return Delta(errors=delta.errors, batch=batch.with_diffs(-batch.diffs))
        return Delta([(row, ts, -diff) for row, ts, diff in delta.rows], delta.errors)


@dataclass(frozen=True, slots=True)
class UnionOperator:
    """All inputs' changes, added up: what lowering an outer join adds it mostly takes away again,
    and a chain of them would triple the rows with each.
    """

    node: UnionNode

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        types = self.node.types
        given = [delta for number in self.node.inputs if not (delta := deltas[number]).is_nothing]
        together = gathered(types, given)
        if len(given) < 2:
            return together
        if together.is_wide:
            return Delta(errors=together.errors, batch=add_up_columns(together.batch(types)))
        rows = add_up(together.rows, MIN_TS, identity_function(types))
        return Delta(rows, together.errors)


class LinearOperator:
    """Map, filter, project. Where no scalar can fail, predicates over the input's columns go first:
    nothing tells the difference, and rows that go need not be mapped.
    """

    def __init__(self, node: LinearNode, types: Types) -> None:
        self._input = node.input
        self._types = types
        self._columns = compile_linear(node, types)
        width = len(types)
        early, late = early_and_late(node, width)
        self._before = compile_predicates(early) if early else None
        self._extend = _extension(node, width)
        self._after = compile_predicates(late) if late else None
        unchanged = node.columns == tuple(range(width + len(node.scalars)))
        self._pick = None if unchanged else picker(node.columns)

    def step(self, deltas: Sequence[Delta], _tick: Tick) -> Delta:
        delta = deltas[self._input]
        if not len(delta):
            return delta
        if delta.is_wide and self._columns is not None:
            try:
                return Delta(errors=delta.errors, batch=self._columns(delta.batch(self._types)))
            except ByRows:
                pass  # some value needs a closer look
        before, extend, after, pick = self._before, self._extend, self._after, self._pick
        rows: list[Entry] = []
        failed: list[ErrorEntry] = []
        for row, ts, diff in delta.rows:
            try:
                if before is not None and not before(row):
                    continue
                if extend is not None:
                    row = extend(row)
                if after is not None and not after(row):
                    continue
                rows.append((row if pick is None else pick(row), ts, diff))
            except SqlError as error:
                failed.append((encode_error(error), ts, diff))
        return Delta(rows, [*delta.errors, *failed] if failed else delta.errors)


def _extension(node: LinearNode, width: int) -> RowFunction | None:
    """Scalars appended one after another, or at once where none looks at another."""
    scalars = tuple(compile_scalar(scalar) for scalar in node.scalars)
    if not scalars:
        return None
    if all(max(columns_of(scalar), default=0) < width for scalar in node.scalars):
        return lambda row: row + tuple([scalar(row) for scalar in scalars])

    def one_by_one(row: Row) -> Row:
        for scalar in scalars:
            row = (*row, scalar(row))
        return row

    return one_by_one
