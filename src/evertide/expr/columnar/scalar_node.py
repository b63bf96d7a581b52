"""A part of a scalar, ready to run over columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evertide.expr.columnar.column import Column, Ints
from evertide.expr.columnar.scalar_kernel import Part

Evaluate: TypeAlias = Callable[[Sequence[Column], int], Part]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """How to compute it, the columns it looks at, and whether the row-wise code may fail."""

    evaluate: Evaluate
    columns: frozenset[int]
    fallible: bool

    def at(self, places: Ints, columns: Sequence[Column]) -> Part:
        """Its values at some places only, so that it cannot fail at the others."""
        taken = list(columns)
        for index in self.columns:
            taken[index] = columns[index].take(places)
        return self.evaluate(taken, len(places))
