"""Map, filter and project by columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evertide.dataflow.delta_plan import LinearNode
from evertide.dataflow.read_columns import looked_at
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
    needed = looked_at(node, late, len(types))
    return Linear(tests[0], tuple(scalars), tests[1], node.columns, node.types, needed)


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
    # The input's columns that are still looked at after the first test.
    needed: frozenset[int]

    def __call__(self, batch: Batch) -> Batch:
        columns, times, diffs = list(batch.columns), batch.times, batch.diffs
        if self.before is not None:
            there = self.before(columns, len(batch))
            # Columns that nobody looks at any more stay as they are: taking rows costs a copy.
            columns = [c.take(there) if i in self.needed else c for i, c in enumerate(columns)]
            times, diffs = times[there], diffs[there]
        for scalar in self.scalars:
            columns.append(scalar(columns, len(times)))
        kept = tuple([columns[i] for i in self.picked])
        mapped = Batch(self.types, kept, times, diffs)
        return mapped if self.after is None else mapped.take(self.after(columns, len(times)))
