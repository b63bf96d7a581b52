"""Which collections can never hold a row less than zero times."""

from collections.abc import Sequence
from typing import assert_never

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaNode,
    FlatMapNode,
    InputNode,
    JoinNode,
    LinearNode,
    NegateNode,
    ReduceNode,
    TemporalFilterNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
)


def never_negative(nodes: Sequence[DeltaNode], position: int) -> bool:
    """Whether this node's collection is a multiset at every timestamp.

    Tables and views are. A difference may not be: not until a threshold has cut it off.
    """
    node = nodes[position]
    match node:
        case InputNode() | ReduceNode() | TopKNode() | ThresholdNode():
            return True
        case ConstantNode(rows=rows):
            return all(count > 0 for _, count in rows)
        case (
            LinearNode(input=source)
            | ArrangeNode(input=source)
            | FlatMapNode(input=source)
            | TemporalFilterNode(input=source)
        ):
            return never_negative(nodes, source)
        case NegateNode():
            return False
        case UnionNode(inputs=inputs) | JoinNode(inputs=inputs):
            return all(never_negative(nodes, source) for source in inputs)
        case _:
            assert_never(node)
