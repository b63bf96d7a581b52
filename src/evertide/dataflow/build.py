"""From a planned relation to the description of its dataflow, and a delta plan as text."""

from collections.abc import Iterable
from typing import assert_never

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaNode,
    DeltaPlan,
    InputNode,
    JoinNode,
    JoinPath,
    LinearNode,
    NegateNode,
    ReduceNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
)
from evertide.dataflow.description import DataflowDescription, Export, Import
from evertide.expr.functions.row import Accumulator
from evertide.expr.relation import AggregateCall, Get, Relation
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.scalar import Scalar
from evertide.expr.show import show_scalar
from evertide.expr.transform.passes import optimize
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.timestamp import Timestamp


def build(
    global_id: GlobalId,
    cluster_id: ClusterId,
    relation: Relation,
    imports: Iterable[Import],
    export: Export,
    as_of: Timestamp,
) -> DataflowDescription:
    """Optimise the relation and import what is left in it, no more: an import holds back time."""
    optimized = optimize(relation)
    used = {node.global_id for node in in_order_of_use(optimized) if isinstance(node, Get)}
    needed = tuple(given for given in imports if given.global_id in used)
    missing = used - {given.global_id for given in needed}
    assert not missing, f"no import is given for {sorted(missing)}"
    return DataflowDescription(global_id, cluster_id, needed, optimized, export, as_of)


def describe(plan: DeltaPlan) -> str:
    """The plan as EXPLAIN shows it: a line per node, those that keep state marked."""
    lines = ["incremental: every change is propagated, exact at every timestamp"]
    for position, node in enumerate(plan.nodes):
        first, *more = _lines(node)
        lines.append(f"  {position:>2}: {first}")
        lines += [f"        {line}" for line in more]
    return "\n".join(lines)


def _lines(node: DeltaNode) -> list[str]:
    match node:
        case InputNode(global_id=global_id):
            return [f"changes of {global_id}"]
        case ConstantNode(rows=rows):
            return [f"constant, {len(rows)} rows, once"]
        case LinearNode():
            return _linear_lines(node)
        case NegateNode(input=source):
            return [f"negate {source}"]
        case UnionNode(inputs=inputs):
            return [f"union {_numbers(inputs)}"]
        case ArrangeNode(input=source, key=key):
            return [f"arrange {source} by {_columns(key)}  [keeps all rows, by key]"]
        case JoinNode(inputs=inputs, paths=paths):
            return [f"join {_numbers(inputs)}", *[_path_line(node, path) for path in paths]]
        case ReduceNode():
            return _reduce_lines(node)
        case TopKNode(input=source, group=group, order=order, limit=limit, offset=offset):
            by = ", ".join(f"#{key.column}{' desc' if key.descending else ''}" for key in order)
            window = f"limit {'all' if limit is None else limit} offset {offset}"
            return [f"top-k of {source} per {_columns(group)} order by [{by}] {window}"
                    "  [keeps all rows, by group]"]  # fmt: skip
        case ThresholdNode(input=source):
            return [f"threshold of {source}  [keeps all rows]"]
        case _:
            assert_never(node)


def _linear_lines(node: LinearNode) -> list[str]:
    lines = [f"map, filter, project {node.input}"]
    if node.scalars:
        lines.append(f"map [{_scalars(node.scalars)}]")
    if node.predicates:
        lines.append(f"filter [{_scalars(node.predicates)}]")
    lines.append(f"project {_columns(node.columns)}")
    return lines


def _path_line(join: JoinNode, path: JoinPath) -> str:
    """Which arrangements a change of one input is looked up in, before or after this tick."""
    steps = [
        f"{'new' if step.relation < path.source else 'old'} {step.arrangement}"
        f" by {_columns(step.probe)}"
        for step in path.steps
    ]
    return f"delta path: changes of {join.inputs[path.source]} look up {', then '.join(steps)}"


def _reduce_lines(node: ReduceNode) -> list[str]:
    if not node.aggregates:
        keys = _scalars(node.keys)
        return [f"distinct of {node.input} by [{keys}]  [keeps a count per group]"]
    kept = "an accumulator per group"
    if any(_needs_rows(call) for call in node.aggregates):
        kept = "the arguments of all rows, by group"
    calls = ", ".join(_call(call) for call in node.aggregates)
    return [f"reduce {node.input} by [{_scalars(node.keys)}]  [keeps {kept}]", f"[{calls}]"]


def _needs_rows(call: AggregateCall) -> bool:
    return call.distinct or call.function.accumulator is Accumulator.ROWS


def _call(call: AggregateCall) -> str:
    inside = "*" if call.argument is None else show_scalar(call.argument)
    return f"{call.function.name}({'distinct ' if call.distinct else ''}{inside})"


def _scalars(scalars: Iterable[Scalar]) -> str:
    return ", ".join(show_scalar(scalar) for scalar in scalars)


def _columns(columns: Iterable[int]) -> str:
    return f"[{', '.join(f'#{column}' for column in columns)}]"


def _numbers(positions: Iterable[int]) -> str:
    return ", ".join(str(position) for position in positions)
