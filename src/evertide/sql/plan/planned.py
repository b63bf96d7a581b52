"""What planning a query gives, before its place in a statement decides what becomes of its order.

At the top of a SELECT, order and limit are finishing, done outside any dataflow. Inside a
subquery or a view they are part of the relation: a limit becomes TopK, an order without limit
means nothing and goes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evertide.expr.relation import Finishing, OrderKey, Project, Relation, TopK
from evertide.expr.scalar import Literal, Parameter
from evertide.sql.syntax.expression import UNPLACED
from evertide.vocab.relation_desc import RelationDesc


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """`relation` may have columns that only the order needs; `columns` are the output's.

    `untyped` holds, by output position, constants of no type yet. Their columns in `relation` are
    text; whoever knows a better type (UNION, INSERT) puts the constant itself in their place.
    """

    relation: Relation
    columns: tuple[int, ...]
    desc: RelationDesc
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    untyped: Mapping[int, Literal | Parameter] = field(default_factory=dict)
    # Where each output column begins in the text, if it stands there.
    ats: tuple[int, ...] = ()
    # Output columns of type int2vector or oidvector, which are arrays to everyone but clients.
    vectors: tuple[int, ...] = ()

    def at_of(self, column: int, otherwise: int) -> int:
        """Where an error about an output column points."""
        known = column < len(self.ats) and self.ats[column] != UNPLACED
        return self.ats[column] if known else otherwise

    @property
    def finishing(self) -> Finishing:
        """Order, limit and columns as the last step of a peek."""
        whole = self.columns == tuple(range(len(self.relation.types)))
        return Finishing(self.order, self.limit, self.offset, None if whole else self.columns)


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of a WITH list: planned once, put in wherever its name stands."""

    relation: Relation
    desc: RelationDesc
    # How many queries are around the WITH: where the name stands there may be more.
    depth: int = 0


def fold_finishing(planned: PlannedQuery) -> Relation:
    """The query as a relation of exactly its output columns."""
    relation = planned.relation
    if planned.limit is not None or planned.offset:
        relation = TopK(relation, (), planned.order, planned.limit, planned.offset)
    return project(relation, planned.columns)


def project(relation: Relation, columns: tuple[int, ...]) -> Relation:
    """These columns; the relation itself where they are all it has."""
    if columns == tuple(range(len(relation.types))):
        return relation
    if isinstance(relation, Project):
        return Project(relation.input, tuple(relation.columns[column] for column in columns))
    return Project(relation, columns)
