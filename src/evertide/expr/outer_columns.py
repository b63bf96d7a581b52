"""Columns of rows around: finding them in a relation, and putting something in their place.

A relation's *free* outer columns are those that refer to rows around the whole relation. Within the
right side of an Apply the same column has a depth greater by one, since one more row is around.
"""

from collections.abc import Callable
from typing import Final

from evertide.expr.relation import Apply, Relation
from evertide.expr.relation_walk import inputs_of, rewrite_scalars, scalars_of, with_inputs
from evertide.expr.scalar import ColumnRef, Literal, OuterColumn, Scalar
from evertide.expr.scalar_walk import children, rewrite
from evertide.vocab.datum import Row

_NONE: Final[frozenset[OuterColumn]] = frozenset()


def free_columns(relation: Relation) -> frozenset[OuterColumn]:
    """The relation's free outer columns, with their depths as seen from it."""
    return FreeColumns().of(relation)


class FreeColumns:
    """Free outer columns of relations and their parts, each object looked at once."""

    def __init__(self) -> None:
        # The relation is kept beside the answer, so that its id is not given to another object.
        self._known: dict[int, tuple[Relation, frozenset[OuterColumn]]] = {}

    def of(self, relation: Relation) -> frozenset[OuterColumn]:
        known = self._known.get(id(relation))
        if known is None:
            known = relation, self._found(relation)
            self._known[id(relation)] = known
        return known[1]

    def _found(self, relation: Relation) -> frozenset[OuterColumn]:
        if isinstance(relation, Apply):
            return self.of(relation.left) | _seen_from_outside(self.of(relation.right))
        own = [_columns_in(scalar) for scalar in scalars_of(relation)]
        return _NONE.union(*own, *map(self.of, inputs_of(relation)))


def _seen_from_outside(columns: frozenset[OuterColumn]) -> frozenset[OuterColumn]:
    return frozenset(moved(column, -1) for column in columns if column.depth > 0)


def _columns_in(scalar: Scalar) -> frozenset[OuterColumn]:
    if isinstance(scalar, OuterColumn):
        return frozenset((scalar,))
    return _NONE.union(*map(_columns_in, children(scalar)))


def moved(column: OuterColumn, by: int) -> OuterColumn:
    """The same column seen from further in, or further out."""
    return OuterColumn(column.depth + by, column.index, column.type, column.nullable)


def lifted(scalar: Scalar, *, depth: int = 0, nullable: Callable[[int], bool]) -> Scalar:
    """A scalar over a row, as it is written further in, where that row is one around."""

    def outer(part: Scalar) -> Scalar:
        if isinstance(part, ColumnRef):
            return OuterColumn(depth, part.index, part.type, nullable(part.index))
        return moved(part, depth + 1) if isinstance(part, OuterColumn) else part

    return rewrite(scalar, outer)


def change_free(relation: Relation, change: Callable[[OuterColumn], Scalar]) -> Relation:
    """The relation with its free outer columns replaced.

    `change` gets a column as seen from the whole relation, and what it gives is seen from there.
    Parts without free columns stay the same objects.
    """
    free = FreeColumns()
    done: dict[tuple[int, int], tuple[Relation, Relation]] = {}

    def visit(node: Relation, within: int) -> Relation:
        if not any(column.depth >= within for column in free.of(node)):
            return node
        known = done.get((id(node), within))
        if known is None:
            known = node, changed(node, within)
            done[id(node), within] = known
        return known[1]

    def changed(node: Relation, within: int) -> Relation:
        if isinstance(node, Apply):
            return Apply(visit(node.left, within), visit(node.right, within + 1))
        node = with_inputs(node, tuple(visit(source, within) for source in inputs_of(node)))
        return rewrite_scalars(node, lambda scalar: _replaced(scalar, change, within))

    return visit(relation, 0)


def _replaced(scalar: Scalar, change: Callable[[OuterColumn], Scalar], within: int) -> Scalar:
    def replaced(part: Scalar) -> Scalar:
        if not isinstance(part, OuterColumn) or part.depth < within:
            return part
        given = change(moved(part, -within))
        return rewrite(given, lambda p: moved(p, within) if isinstance(p, OuterColumn) else p)

    return rewrite(scalar, replaced)


def move_free(relation: Relation, by: int) -> Relation:
    """The relation as it is written `by` rows further in; negative: further out."""
    return change_free(relation, lambda column: moved(column, by)) if by else relation


def bind_row(relation: Relation, row: Row) -> Relation:
    """The right side of an Apply for one row of its left side."""

    def bound(column: OuterColumn) -> Scalar:
        if column.depth:
            return moved(column, -1)
        return Literal(row[column.index], column.type)

    return change_free(relation, bound)
