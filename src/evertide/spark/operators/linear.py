"""Map, filter and project by columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evertide.dataflow.delta_plan import LinearNode
from evertide.expr.columnar.batch import Batch
from evertide.expr.columnar.column import Column, Mask
from evertide.expr.columnar.scalars import (
    ColumnFunction,
    compile_column_predicates,
    compile_columns,
)
from evertide.expr.relation import Types
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import columns_of, is_fallible

Test: TypeAlias = Callable[[Sequence[Column], int], Mask]


def compile_linear(node: LinearNode, types: Types) -> "Linear | None":
    """The node by columns; None if some scalar has to be looked at row by row."""
    every = types
    scalars: list[ColumnFunction] = []
    for scalar in node.scalars:
        compiled = compile_columns(scalar, every)
        if compiled is None:
            return None
        scalars.append(compiled)
        every += (scalar.type,)
    early, late = early_and_late(node, len(types))
    tests: list[Test | None] = []
    for predicates in (early, late):
        test = compile_column_predicates(predicates, every) if predicates else None
        if predicates and test is None:
            return None
        tests.append(test)
    return Linear(tests[0], tuple(scalars), tests[1], node.columns, node.types)


def early_and_late(node: LinearNode, width: int) -> tuple[list[Scalar], list[Scalar]]:
    """Where nothing can fail, predicates over the input's columns go first: less is mapped."""
    if any(map(is_fallible, (*node.scalars, *node.predicates))):
        return [], list(node.predicates)
    early = [part for part in node.predicates if max(columns_of(part), default=0) < width]
    return early, [part for part in node.predicates if part not in early]


@dataclass(frozen=True, slots=True)
class Linear:
    """A LinearNode compiled; raises ByRows where the rows have to be looked at one by one."""

    before: Test | None
    scalars: tuple[ColumnFunction, ...]
    after: Test | None
    picked: tuple[int, ...]
    types: Types

    def __call__(self, batch: Batch) -> Batch:
        if self.before is not None:
            batch = batch.take(self.before(batch.columns, len(batch)))
        columns = list(batch.columns)
        for scalar in self.scalars:
            columns.append(scalar(columns, len(batch)))
        kept = tuple([columns[i] for i in self.picked])
        mapped = Batch(self.types, kept, batch.times, batch.diffs)
        return mapped if self.after is None else mapped.take(self.after(columns, len(batch)))
