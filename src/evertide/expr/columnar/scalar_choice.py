"""Case and Coalesce over columns.

What cannot fail is computed for all rows. What may fail is computed where it is asked for only, as
a branch that is not taken has no say.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.expr.columnar.column import Column, Ints, Mask, Numbers, Others, concat
from evertide.expr.columnar.numeric_columns import Scaled
from evertide.expr.columnar.scalar_kernel import (
    Part,
    expanded,
    null_mask,
    plain,
    spread,
)
from evertide.expr.columnar.scalar_node import Evaluate, Node
from evertide.expr.columnar.scalar_numeric import at_one_scale


def case(branches: Sequence[tuple[Node, Node]], otherwise: Node) -> Evaluate:
    """The first branch whose condition is true."""
    nodes = [*(node for branch in branches for node in branch), otherwise]
    if any(node.fallible for node in nodes):
        return _careful_case(branches, otherwise)

    def evaluate(columns: Sequence[Column], length: int) -> Part:
        result = otherwise.evaluate(columns, length)
        for condition, value in reversed(branches):
            taken = _truth(condition.evaluate(columns, length))
            result = chosen(taken, value.evaluate(columns, length), result)
        return result

    return evaluate


def coalesce(nodes: Sequence[Node]) -> Evaluate:
    """The first that is not NULL."""
    if any(node.fallible for node in nodes[1:]):
        return _careful_coalesce(nodes)

    def evaluate(columns: Sequence[Column], length: int) -> Part:
        result = nodes[0].evaluate(columns, length)
        for node in nodes[1:]:
            missing = null_mask(result)
            if missing is None or not missing.any():
                break
            result = chosen(missing, node.evaluate(columns, length), result)
        return result

    return evaluate


def _truth(part: Part) -> Mask:
    """Where it is true: the values below NULLs are false."""
    assert isinstance(part, Numbers), "booleans are numbers"
    values: Mask = part.values
    return values


def chosen(mask: Mask, left: Part, right: Part) -> Part:
    """The left where the mask is set, else the right."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        values = np.where(mask, left.values, right.values)
        if left.nulls is None and right.nulls is None:
            return Numbers(values)
        return Numbers(values, np.where(mask, left.null_mask, right.null_mask))
    if isinstance(left, Scaled) and isinstance(right, Scaled):
        return _chosen_scaled(mask, left, right)
    if len(mask) == 1:
        return left if mask[0] else right
    ones, others = (_operand(plain(part), len(mask)) for part in (left, right))
    return Others(pc.if_else(pa.array(mask), ones, others))


def _chosen_scaled(mask: Mask, left: Scaled, right: Scaled) -> Part:
    ones, others, scale = at_one_scale((left, right))
    picked = chosen(mask, Numbers(ones, left.nulls), Numbers(others, right.nulls))
    assert isinstance(picked, Numbers)
    return Scaled(picked.values, scale, picked.nulls)


def _operand(column: Column, length: int) -> pa.Array | pa.Scalar:
    assert isinstance(column, Others), "columns of one type are of one kind"
    return column.array if len(column) == length else column.array[0]


def _careful_case(branches: Sequence[tuple[Node, Node]], otherwise: Node) -> Evaluate:
    def evaluate(columns: Sequence[Column], length: int) -> Column:
        pieces: list[tuple[Ints, Column]] = []
        rest = np.arange(length)
        for condition, value in branches:
            truth = spread(_truth(_at(condition, rest, columns, length)), len(rest))
            taken, rest = rest[truth], rest[~truth]
            if len(taken):
                pieces.append((taken, _piece(value, taken, columns, length)))
            if not len(rest):
                break
        if len(rest):
            pieces.append((rest, _piece(otherwise, rest, columns, length)))
        return _assembled(pieces)

    return evaluate


def _careful_coalesce(nodes: Sequence[Node]) -> Evaluate:
    def evaluate(columns: Sequence[Column], length: int) -> Column:
        pieces: list[tuple[Ints, Column]] = []
        rest = np.arange(length)
        for node in nodes:
            found = _piece(node, rest, columns, length)
            missing = found.null_mask if node is not nodes[-1] else np.zeros(len(rest), np.bool_)
            pieces.append((rest[~missing], found.take(~missing)))
            rest = rest[missing]
            if not len(rest):
                break
        return _assembled(pieces)

    return evaluate


def _at(node: Node, places: Ints, columns: Sequence[Column], length: int) -> Part:
    if len(places) == length:
        return node.evaluate(columns, length)
    return node.at(places, columns)


def _piece(node: Node, places: Ints, columns: Sequence[Column], length: int) -> Column:
    return expanded(plain(_at(node, places, columns, length)), len(places))


def _assembled(pieces: Sequence[tuple[Ints, Column]]) -> Column:
    """All pieces together, each value at its place."""
    if len(pieces) == 1:
        return pieces[0][1]
    places = np.concatenate([places for places, _ in pieces])
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    return concat([column for _, column in pieces]).take(order)
