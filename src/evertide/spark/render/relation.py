"""A delta plan's contents at one timestamp: what hydration and recomputes run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaNode,
    DeltaPlan,
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
from evertide.expr.relation import Types
from evertide.persist.coding.encoding import encode_column
from evertide.spark.render.flat_map import render_flat_map
from evertide.spark.render.join import render_join
from evertide.spark.render.linear import render_linear
from evertide.spark.render.reduce import render_reduce
from evertide.spark.render.temporal import render_temporal_at
from evertide.spark.render.text import Rendered, TextBuilder, select_list
from evertide.spark.render.top_k import render_threshold, render_top_k
from evertide.spark.render.window import render_window
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp


class NoText(Exception):
    """A recursion is not one SQL text: who asks for that must look for one first."""


@dataclass(frozen=True, slots=True)
class ImportView:
    """A collection as the job offers it: a view with c0.., e, t and d.

    `may_fail` False promises that no row of it is an error, `may_retract` False that none takes
    another back.
    """

    name: str
    may_fail: bool
    may_retract: bool = True


def render_contents(
    builder: TextBuilder,
    plan: DeltaPlan,
    imports: Mapping[GlobalId, ImportView],
    as_of: Timestamp,
) -> list[Rendered]:
    """Every node's contents at `as_of`, in the order of the plan."""
    done: list[Rendered] = []
    readers = reader_counts(plan)
    for position, node in enumerate(plan.nodes):
        rendered = _render_node(builder, plan.nodes, node, done, imports, as_of)
        # Scans are cheaper than sharing them: each reads only what its place needs.
        if readers[position] > 1 and not isinstance(node, InputNode | ConstantNode | ArrangeNode):
            rendered = builder.share(rendered)
        done.append(rendered)
    return done


def reader_counts(plan: DeltaPlan) -> Counter[int]:
    """How often each node's output is read, those that look at rows and errors apart twice."""
    counts: Counter[int] = Counter()
    for node in plan.nodes:
        match node:
            case LinearNode() | NegateNode() | ReduceNode():
                counts[origin(plan.nodes, node.input)] += 1
            case UnionNode(inputs=inputs) | RecomputeNode(inputs=inputs):
                counts.update(origin(plan.nodes, i) for i in inputs)
            case JoinNode(inputs=inputs):
                counts.update(2 * [origin(plan.nodes, i) for i in inputs])
            case TopKNode() | WindowNode() | ThresholdNode() | FlatMapNode() | TemporalFilterNode():
                counts[origin(plan.nodes, node.input)] += 2
            case InputNode() | ConstantNode() | ArrangeNode():
                pass
            case _:
                assert_never(node)
    return counts


def origin(nodes: Sequence[DeltaNode], position: int) -> int:
    """The node whose output this is: arranging passes it on unchanged."""
    node = nodes[position]
    return origin(nodes, node.input) if isinstance(node, ArrangeNode) else position


def _render_node(
    builder: TextBuilder,
    nodes: Sequence[DeltaNode],
    node: DeltaNode,
    done: Sequence[Rendered],
    imports: Mapping[GlobalId, ImportView],
    as_of: Timestamp,
) -> Rendered:
    match node:
        case InputNode():
            return _render_import(builder, node, imports[node.global_id], as_of)
        case ConstantNode(rows=rows, types=types):
            return render_constant(builder, rows, types)
        case LinearNode():
            return render_linear(builder, done[node.input], node)
        case FlatMapNode():
            return render_flat_map(builder, done[node.input], node)
        case TemporalFilterNode():
            return render_temporal_at(builder, done[node.input], node, as_of)
        case NegateNode():
            return render_negate(builder, done[node.input])
        case UnionNode():
            return render_union(builder, [done[i] for i in node.inputs], node.types)
        case ArrangeNode():
            return done[node.input]
        case JoinNode():
            return render_join(builder, nodes, [done[i] for i in node.inputs], node)
        case RecomputeNode():
            raise NoText
        case ReduceNode():
            return render_reduce(builder, done[node.input], node)
        case TopKNode():
            return render_top_k(builder, done[node.input], node)
        case WindowNode():
            return render_window(builder, done[node.input], node)
        case ThresholdNode():
            return render_threshold(builder, done[node.input], node)
        case _:
            assert_never(node)


def _render_import(
    builder: TextBuilder, node: InputNode, view: ImportView, as_of: Timestamp
) -> Rendered:
    shape = Rendered(view.name, node.types, fallible=view.may_fail)
    columns = select_list(shape.columns, shape.extra, ["d"])
    until = builder.bind(as_of, "bigint")
    return builder.add(f"SELECT {columns} FROM {view.name} WHERE t <= {until}", shape)


def render_constant(
    builder: TextBuilder, rows: Sequence[tuple[Row, int]], types: Types
) -> Rendered:
    """Rows known at planning: a view of their own, because binding each datum costs time."""
    name = f"{builder.prefix}k{len(builder.constants)}"
    columns = [
        encode_column(sql_type, [row[i] for row, _ in rows]) for i, sql_type in enumerate(types)
    ]
    diffs = pa.array([count for _, count in rows], pa.int64())
    names = [*(f"c{i}" for i in range(len(types))), "d"]
    table = pa.Table.from_arrays([*columns, diffs], names=names)
    builder.constants[name] = (types, table)
    return Rendered(name, types)


def render_negate(builder: TextBuilder, source: Rendered) -> Rendered:
    """Multiplicities turned round; those of errors stay."""
    turned = "CASE WHEN e IS NULL THEN -d ELSE d END AS d" if source.fallible else "-d AS d"
    columns = select_list(source.columns, source.extra, [turned])
    return builder.add(f"SELECT {columns} FROM {source.name}", source)


def render_union(builder: TextBuilder, sources: Sequence[Rendered], types: Types) -> Rendered:
    """All rows together; where one may hold errors all get the column for them."""
    fallible = any(source.fallible for source in sources)
    parts = []
    for source in sources:
        missing = fallible and not source.fallible
        error = ["CAST(NULL AS string) AS e" if missing else "e"] * fallible
        time = ["t"] * source.timed
        parts.append(f"SELECT {select_list(source.columns, error, time, ['d'])} FROM {source.name}")
    return builder.add(" UNION ALL ".join(parts), sources[0], types=types, fallible=fallible)
