"""Which columns of its inputs a plan looks at."""

from collections.abc import Mapping, Sequence

from evertide.dataflow.delta_plan import DeltaPlan, InputNode, LinearNode, inputs_of
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import columns_of
from evertide.vocab.ids import GlobalId


def read_columns(plan: DeltaPlan) -> Mapping[GlobalId, frozenset[int]]:
    """By input; whoever leaves the others out, or puts NULL there, changes nothing.

    All of them, unless each node that takes the input picks columns of its own.
    """
    read: dict[GlobalId, frozenset[int]] = {}
    for position, node in enumerate(plan.nodes):
        if isinstance(node, InputNode):
            found = _read_of(plan, position, len(node.types))
            read[node.global_id] = read.get(node.global_id, frozenset()) | found
    return read


def _read_of(plan: DeltaPlan, position: int, width: int) -> frozenset[int]:
    every = frozenset(range(width))
    if position == plan.output:
        return every
    takers = [node for node in plan.nodes if position in inputs_of(node)]
    return frozenset[int]().union(
        *(
            looked_at(node, node.predicates, width) if isinstance(node, LinearNode) else every
            for node in takers
        )
    )


def looked_at(node: LinearNode, predicates: Sequence[Scalar], width: int) -> frozenset[int]:
    """The input's columns that a node needs for what it gives, and for these of its predicates."""
    read = frozenset(node.columns).union(*map(columns_of, (*node.scalars, *predicates)))
    return frozenset(column for column in read if column < width)
