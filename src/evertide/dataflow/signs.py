"""Which collections can never hold a row less than zero times."""

from collections.abc import Sequence
from typing import assert_never

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    FlatMapNode,
    InputNode,
    JoinNode,
    LinearNode,
    NegateNode,
    RecomputeNode,
    ReduceNode,
    TemporalFilterNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
    WindowNode,
)
from evertide.dataflow.stages import ExchangeNode, FeedNode, LookupNode, StageNode


def never_negative(nodes: Sequence[StageNode], position: int) -> bool:
    """Whether this node's collection is a multiset at every timestamp.

    Tables and views are. A difference may not be: not until a threshold has cut it off.
    """
    node = nodes[position]
    match node:
        case InputNode() | FeedNode() | ReduceNode() | TopKNode() | WindowNode() | ThresholdNode():
            return True
        case ConstantNode(rows=rows):
            return all(count > 0 for _, count in rows)
        case (
            LinearNode(input=source)
            | ArrangeNode(input=source)
            | FlatMapNode(input=source)
            | TemporalFilterNode(input=source)
            | ExchangeNode(input=source)
        ):
            return never_negative(nodes, source)
        case NegateNode() | RecomputeNode():
            return False
        case UnionNode(inputs=inputs) | JoinNode(inputs=inputs):
            return all(never_negative(nodes, source) for source in inputs)
        case LookupNode(input=source, arrangement=arranged):
            return never_negative(nodes, source) and never_negative(nodes, arranged)
        case _:
            assert_never(node)
