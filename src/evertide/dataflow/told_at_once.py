"""Which inputs' rows show before other inputs may take them back."""

from evertide.dataflow.delta_plan import (
    DeltaPlan,
    InputNode,
    JoinNode,
    LinearNode,
    NegateNode,
    inputs_of,
)
from evertide.expr.scalar import Literal
from evertide.vocab.ids import GlobalId


def told_at_once(plan: DeltaPlan) -> set[GlobalId]:
    """Inputs that an outer join keeps, or from which others are subtracted.

    They reach the output on a way without a join, and something else reaches it negated.
    """
    if not any(isinstance(node, NegateNode) for node in plan.nodes):
        return set()
    found: set[GlobalId] = set()
    waiting, seen = [plan.output], set[int]()
    while waiting:
        position = waiting.pop()
        node = plan.nodes[position]
        if position in seen or isinstance(node, JoinNode | NegateNode) or _drops_all(node):
            continue
        seen.add(position)
        if isinstance(node, InputNode):
            found.add(node.global_id)
        waiting += inputs_of(node)
    return found


def _drops_all(node: object) -> bool:
    return isinstance(node, LinearNode) and any(
        isinstance(predicate, Literal) and not predicate.value for predicate in node.predicates
    )
