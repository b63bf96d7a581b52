"""A plan in stages, in words."""

from collections.abc import Callable, Iterable

from evertide.dataflow.build import show_nodes
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.stages import (
    ExchangeNode,
    FeedNode,
    LookupNode,
    StagedPlan,
    StageNode,
)
from evertide.expr.show import show_scalar
from evertide.vocab.ids import GlobalId


def describe_stages(
    staged: StagedPlan, partitions: int, name: Callable[[GlobalId], str] = str
) -> str:
    """What each task does on a tick, stage by stage, and which rows go from task to task."""
    lines = [f"in {partitions} partitions: {staged.last + 1} stages"]
    for stage in range(staged.last + 1):
        lines.append(f"  stage {stage}")
        for position, node in enumerate(staged.nodes):
            if staged.stages[position] == stage:
                first, *more = node_lines(node, name)
                lines.append(f"    {position:>2}: {first}")
                lines += [f"          {line}" for line in more]
    lines.append(f"  output {staged.output}")
    return "\n".join(lines)


def node_lines(node: StageNode, name: Callable[[GlobalId], str]) -> tuple[str, ...]:
    """One node, whose inputs are named by their positions in the plan in stages."""
    match node:
        case FeedNode(global_id=global_id, key=key):
            return (f"changes of {name(global_id)} by {_columns(key)}",)
        case ExchangeNode(input=source, key=key):
            return (f"exchange {source} by [{', '.join(map(show_scalar, key))}]",)
        case LookupNode(input=source, arrangement=arranged, probe=probe, new=new):
            age = "new" if new else "old"
            return (f"look up {source} in {age} {arranged} by {_columns(probe)}",)
        case _:
            (shown,) = show_nodes(DeltaPlan((node,)), name)
            return shown.lines


def _columns(columns: Iterable[int]) -> str:
    return f"[{', '.join(f'#{column}' for column in columns)}]"
