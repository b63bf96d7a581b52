"""Joins by the paths of the delta plan."""

from collections.abc import Sequence

from evertide.dataflow.delta_plan import ArrangeNode, DeltaNode, JoinNode, JoinPath, JoinStep
from evertide.expr.relation import Types
from evertide.spark.render.keys import equality
from evertide.spark.render.text import Rendered, TextBuilder, rows_only, select_list, with_errors


def render_join(
    builder: TextBuilder, nodes: Sequence[DeltaNode], inputs: Sequence[Rendered], node: JoinNode
) -> Rendered:
    """The contents of a join: one path's order of inputs is as good as another's."""
    joined = render_path(builder, nodes, inputs, node, node.paths[0])
    return with_errors(builder, joined, inputs)


def render_path(
    builder: TextBuilder,
    nodes: Sequence[DeltaNode],
    inputs: Sequence[Rendered],
    node: JoinNode,
    path: JoinPath,
) -> Rendered:
    """The source's rows extended step by step; multiplicities multiply, the latest time counts."""
    source = inputs[path.source]
    bound = [(f"b0.c{i}", sql_type) for i, sql_type in enumerate(source.types)]
    text = f"{rows_only(source)} b0"
    for position, step in enumerate(path.steps, start=1):
        relation = inputs[step.relation]
        arrangement = nodes[step.arrangement]
        assert isinstance(arrangement, ArrangeNode), "a join looks into arrangements"
        alias = f"b{position}"
        condition = _condition(step, arrangement.key, bound, alias, relation.types)
        text += f" JOIN {rows_only(relation)} {alias}{condition}"
        bound += [(f"{alias}.c{i}", sql_type) for i, sql_type in enumerate(relation.types)]
    columns = [f"{bound[c][0]} AS c{i}" for i, c in enumerate(path.columns)]
    aliases = [f"b{i}" for i in range(len(path.steps) + 1)]
    times = [_greatest([f"{alias}.t" for alias in aliases]) + " AS t"] * source.timed
    diff = " * ".join(f"{alias}.d" for alias in aliases)
    select = f"SELECT {select_list(columns, times, [f'{diff} AS d'])} FROM {text}"
    return builder.add(select, source, types=node.types, fallible=False)


def _condition(
    step: JoinStep,
    key: Sequence[int],
    bound: Sequence[tuple[str, object]],
    alias: str,
    types: Types,
) -> str:
    pairs = [*zip(step.probe, key, strict=True), *step.also_equal]
    if not pairs:
        return ""
    equal = []
    for probe, column in pairs:
        left = equality(types[column], bound[probe][0])
        equal.append(f"{left} = {equality(types[column], f'{alias}.c{column}')}")
    return f" ON {' AND '.join(equal)}"


def _greatest(times: Sequence[str]) -> str:
    return times[0] if len(times) == 1 else f"greatest({', '.join(times)})"
