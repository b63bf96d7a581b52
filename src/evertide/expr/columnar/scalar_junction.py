"""And and Or over columns.

An argument that decides a row makes the errors of all others there count for nothing. So those
that may fail come last, and are computed only where nothing is decided yet.
"""

from collections.abc import Sequence

import numpy as np

from evertide.expr.columnar.column import Column, Mask, Numbers
from evertide.expr.columnar.scalar_kernel import Part, spread
from evertide.expr.columnar.scalar_node import Evaluate, Node


def junction(nodes: Sequence[Node], *, decisive: bool) -> Evaluate:
    """And (false decides) or Or (true decides)."""
    safe = tuple(node.evaluate for node in nodes if not node.fallible)
    fallible = tuple(node for node in nodes if node.fallible)

    def evaluate(columns: Sequence[Column], length: int) -> Numbers:
        state: Numbers | None = None
        for compute in safe:
            state = _joined(state, _booleans(compute(columns, length)), decisive)
        for node in fallible:
            state = _joined(state, _undecided(node, state, columns, length, decisive), decisive)
        return Numbers(np.array([not decisive])) if state is None else state

    return evaluate


def _booleans(part: Part) -> Numbers:
    assert isinstance(part, Numbers), "booleans are numbers"
    return part


def _joined(left: Numbers | None, right: Numbers, decisive: bool) -> Numbers:
    """Two of them; below NULLs the values are false."""
    if left is None:
        return right
    if decisive:
        values = left.values | right.values
    else:
        values = left.values & right.values
    if left.nulls is None and right.nulls is None:
        return Numbers(values)
    nulls = left.null_mask | right.null_mask
    if decisive:
        return Numbers(values, nulls & ~values)
    return Numbers(values, nulls & ~(_false(left) | _false(right)))


def _false(part: Numbers) -> Mask:
    return ~part.values if part.nulls is None else ~(part.values | part.nulls)


def _undecided(
    node: Node, state: Numbers | None, columns: Sequence[Column], length: int, decisive: bool
) -> Numbers:
    """The argument where it counts, and elsewhere what was decided without it."""
    if state is None:
        return _booleans(node.evaluate(columns, length))
    decided = spread(state.values if decisive else _false(state), length)
    if not decided.any():
        return _booleans(node.evaluate(columns, length))
    values = np.full(length, decisive)
    places = np.flatnonzero(~decided)
    if not len(places):
        return Numbers(values)
    found = _booleans(node.at(places, columns))
    values[places] = found.values
    if found.nulls is None:
        return Numbers(values)
    nulls = np.zeros(length, np.bool_)
    nulls[places] = found.nulls
    return Numbers(values, nulls)
