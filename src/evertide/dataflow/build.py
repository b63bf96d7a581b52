"""From a planned relation to the description of its dataflow, and a delta plan as text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, assert_never

from evertide.catalog.builtin.registry import builtin_of
from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaNode,
    DeltaPlan,
    FlatMapNode,
    InputNode,
    JoinNode,
    JoinPath,
    LinearNode,
    NegateNode,
    RecomputeNode,
    ReduceNode,
    TemporalFilterNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
    WindowNode,
    inputs_of,
)
from evertide.dataflow.description import DataflowDescription, Export, Import
from evertide.expr.argument_order import as_asked
from evertide.expr.functions.row import Accumulator
from evertide.expr.locality import interpreted_only
from evertide.expr.relation import AggregateCall, Get, Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import Scalar, SessionCall
from evertide.expr.scalar_walk import children
from evertide.expr.show import show_aggregate, show_node, show_scalar, show_window_call
from evertide.expr.temporal import MZ_NOW
from evertide.expr.transform.passes import optimize_at_leisure
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.timestamp import Timestamp

_HOW: Final = {
    False: "every change is propagated",
    True: "recursion (WITH MUTUALLY RECURSIVE) is computed anew when what it reads changes",
}


def build(
    global_id: GlobalId,
    cluster_id: ClusterId,
    relation: Relation,
    imports: Iterable[Import],
    export: Export,
    as_of: Timestamp,
) -> DataflowDescription:
    """Optimise the relation and import what is left in it, no more: an import holds back time."""
    optimized = optimize_at_leisure(relation)
    used = {node.global_id for node in in_order_of_use(optimized) if isinstance(node, Get)}
    needed = tuple(given for given in imports if given.global_id in used)
    missing = used - {given.global_id for given in needed}
    assert not missing, f"no import is given for {sorted(missing)}"
    return DataflowDescription(global_id, cluster_id, needed, optimized, export, as_of)


@dataclass(frozen=True, slots=True)
class ShownNode:
    """One node of a delta plan in words; `keeps`: what stays between ticks, None if nothing."""

    operator: str
    inputs: tuple[int, ...]
    keeps: str | None
    lines: tuple[str, ...]


def _not_maintainable(relation: Relation) -> str | None:
    """Why changes of an optimised relation cannot be followed; None: they can, incrementally.

    Nothing is recomputed as a whole on a change: what has no delta plan is refused.
    """
    for node in in_order_of_use(relation):
        builtin = builtin_of(node.global_id) if isinstance(node, Get) else None
        if builtin is not None:
            return f"system relation {builtin.schema}.{builtin.name} is not kept anywhere"
        for scalar in scalars_of(node):
            called = _session_call(scalar)
            if called is not None:
                return f"the value of {called}() differs between statements"
    return interpreted_only(relation)


def _session_call(scalar: Scalar) -> str | None:
    """The first one that only a statement can give a value; the time itself is not among them."""
    if isinstance(scalar, SessionCall) and scalar != MZ_NOW:
        return scalar.name
    return next((found for part in children(scalar) if (found := _session_call(part))), None)


def plan_or_reason(relation: Relation) -> DeltaPlan | str:
    """An optimised relation's delta plan, or why there is none."""
    reason = _not_maintainable(relation)
    if reason is not None:
        return reason
    try:
        return delta_plan(relation)
    except FeatureNotSupported as error:
        return error.message


def show_nodes(plan: DeltaPlan, name: Callable[[GlobalId], str] = str) -> list[ShownNode]:
    """The nodes by position, collections named by `name`."""
    return [
        ShownNode(
            type(node).__name__.removesuffix("Node"),
            inputs_of(node),
            _kept(node),
            tuple(_lines(node, name)),
        )
        for node in plan.nodes
    ]


def maintenance(plan: DeltaPlan) -> str:
    """In a word: whether all of it is followed, or some is computed anew with every change."""
    return "recomputes" if plan.recomputes else "incremental"


def describe(plan: DeltaPlan, name: Callable[[GlobalId], str] = str) -> str:
    """The plan as EXPLAIN shows it: a line per node, those that keep state marked."""
    lines = [f"{maintenance(plan)}: {_HOW[plan.recomputes]}, exact at every timestamp"]
    for position, node in enumerate(show_nodes(plan, name)):
        first, *more = node.lines
        kept = "" if node.keeps is None else f"  [keeps {node.keeps}]"
        lines.append(f"  {position:>2}: {first}{kept}")
        lines += [f"        {line}" for line in more]
    return "\n".join(lines)


def _kept(node: DeltaNode) -> str | None:
    """What of its input, or for its output, a node keeps from one tick to the next."""
    match node:
        case ArrangeNode():
            return "all rows, by key"
        case RecomputeNode():
            return "all rows, and what it gave last"
        case TopKNode():
            return "all rows, by group"
        case WindowNode():
            return "all rows, by partition"
        case ThresholdNode():
            return "all rows"
        case TemporalFilterNode():
            return "what appears or disappears later, by time"
        case ReduceNode(aggregates=()):
            return "a count per group"
        case ReduceNode(aggregates=aggregates):
            if any(_needs_rows(call) for call in aggregates):
                return "the arguments of all rows, by group"
            return "an accumulator per group"
        case _:
            return None


def _lines(node: DeltaNode, name: Callable[[GlobalId], str]) -> list[str]:
    match node:
        case InputNode(global_id=global_id):
            return [f"changes of {name(global_id)}"]
        case ConstantNode(rows=rows):
            return [f"constant, {len(rows)} rows, once"]
        case LinearNode():
            return _linear_lines(node)
        case FlatMapNode(input=source, function=function, arguments=arguments, ordinality=numbered):
            with_number = " with ordinality" if numbered else ""
            return [f"flat map {source} by {function.name}({_scalars(arguments)}){with_number}"]
        case TemporalFilterNode(input=source, predicates=predicates):
            return [f"temporal filter {source}", f"filter [{_scalars(predicates)}]"]
        case NegateNode(input=source):
            return [f"negate {source}"]
        case UnionNode(inputs=inputs):
            return [f"union {_numbers(inputs)}"]
        case ArrangeNode(input=source, key=key):
            return [f"arrange {source} by {_columns(key)}"]
        case JoinNode(inputs=inputs, paths=paths):
            return [f"join {_numbers(inputs)}", *[_path_line(node, path) for path in paths]]
        case RecomputeNode(inputs=inputs):
            over = f" over {_numbers(inputs)}" if inputs else ""
            return [f"recompute {show_node(node.core)}{over}"]
        case ReduceNode():
            return _reduce_lines(node)
        case TopKNode(input=source, group=group, order=order, limit=limit, offset=offset):
            by = ", ".join(f"#{key.column}{' desc' if key.descending else ''}" for key in order)
            window = f"limit {'all' if limit is None else limit} offset {offset}"
            return [f"top-k of {source} per {_columns(group)} order by [{by}] {window}"]
        case WindowNode(input=source, group=group, order=order, calls=calls):
            by = ", ".join(f"#{key.column}{' desc' if key.descending else ''}" for key in order)
            functions = ", ".join(show_window_call(call) for call in calls)
            return [f"window of {source} per {_columns(group)} order by [{by}]", f"[{functions}]"]
        case ThresholdNode(input=source):
            return [f"threshold of {source}"]
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
        return [f"distinct of {node.input} by [{keys}]"]
    calls = ", ".join(show_aggregate(as_asked(call)) for call in node.aggregates)
    return [f"reduce {node.input} by [{_scalars(node.keys)}]", f"[{calls}]"]


def _needs_rows(call: AggregateCall) -> bool:
    return call.distinct or call.function.accumulator is Accumulator.ROWS


def _scalars(scalars: Iterable[Scalar]) -> str:
    return ", ".join(show_scalar(scalar) for scalar in scalars)


def _columns(columns: Iterable[int]) -> str:
    return f"[{', '.join(f'#{column}' for column in columns)}]"


def _numbers(positions: Iterable[int]) -> str:
    return ", ".join(str(position) for position in positions)
