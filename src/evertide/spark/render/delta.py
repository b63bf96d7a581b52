"""A delta plan's tick: changes of inputs to changes of the output, exact at every timestamp.

Every relation here is timed. Where an operator looks at the group of a row (Reduce, TopK, Window,
Threshold) its groups are recomputed at every *point*: each timestamp at which the group changes in
this tick, and the one before the tick. What a group gives at a point is there from that point on
until the next one, so it is added at the first and taken away at the second; what did not change
cancels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

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
from evertide.spark.render.flat_map import render_flat_map
from evertide.spark.render.join import render_path
from evertide.spark.render.keys import equality
from evertide.spark.render.linear import render_linear
from evertide.spark.render.reduce import render_groups, render_members
from evertide.spark.render.relation import (
    ImportView,
    NoText,
    origin,
    reader_counts,
    render_constant,
    render_negate,
    render_union,
)
from evertide.spark.render.temporal import render_temporal_changes
from evertide.spark.render.text import (
    Rendered,
    TextBuilder,
    rows_only,
    select_list,
    with_errors,
)
from evertide.spark.render.top_k import render_consolidated, render_threshold, render_top_k
from evertide.spark.render.window import render_window
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Tick:
    """What a tick's text is made from.

    `deltas` are the inputs' changes; `histories` what the nodes of these positions gave before the
    tick, without errors. `with_constants`: the dataflow starts in this tick, at `as_of`.
    """

    plan: DeltaPlan
    deltas: Mapping[GlobalId, ImportView]
    histories: Mapping[int, ImportView]
    lower: Timestamp
    upper: Timestamp
    as_of: Timestamp
    with_constants: bool


def kept_positions(plan: DeltaPlan) -> list[int]:
    """Nodes whose earlier output a tick looks at again."""
    kept = set()
    for node in plan.nodes:
        match node:
            case JoinNode(inputs=inputs):
                kept |= {origin(plan.nodes, i) for i in inputs}
            case (
                ReduceNode(input=source)
                | TopKNode(input=source)
                | WindowNode(input=source)
                | ThresholdNode(input=source)
                | TemporalFilterNode(input=source)
            ):
                kept.add(origin(plan.nodes, source))
    return sorted(kept)


def render_tick(builder: TextBuilder, tick: Tick) -> list[Rendered]:
    """Every node's changes, in the order of the plan."""
    done: list[Rendered] = []
    readers = reader_counts(tick.plan)
    readers.update([*tick.histories, tick.plan.output])
    for position, node in enumerate(tick.plan.nodes):
        rendered = _TickNode(builder, tick, done).render(node)
        if readers[position] > 1 and not isinstance(node, InputNode | ConstantNode | ArrangeNode):
            rendered = builder.share(rendered)
        done.append(rendered)
    return done


@dataclass(frozen=True, slots=True)
class _TickNode:
    """Renders one node upon those before it."""

    builder: TextBuilder
    tick: Tick
    done: Sequence[Rendered]

    def render(self, node: DeltaNode) -> Rendered:
        builder, done = self.builder, self.done
        match node:
            case InputNode():
                return self._input(node)
            case ConstantNode():
                return self._constant(node)
            case LinearNode():
                return render_linear(builder, done[node.input], node)
            case FlatMapNode():
                return render_flat_map(builder, done[node.input], node)
            case TemporalFilterNode():
                return self._temporal(node)
            case NegateNode():
                return render_negate(builder, done[node.input])
            case UnionNode():
                return render_union(builder, [done[i] for i in node.inputs], node.types)
            case ArrangeNode():
                return done[node.input]
            case JoinNode():
                return self._join(node)
            case RecomputeNode():
                raise NoText
            case ReduceNode():
                return self._reduce(node)
            case TopKNode(group=group):
                points = self._at_points(done[node.input], self._history(node.input), group)
                return self._settle(render_top_k(builder, points, node), [done[node.input]])
            case WindowNode(group=group):
                points = self._at_points(done[node.input], self._history(node.input), group)
                return self._settle(render_window(builder, points, node), [done[node.input]])
            case ThresholdNode():
                whole = tuple(range(len(node.types)))
                points = self._at_points(done[node.input], self._history(node.input), whole)
                return self._settle(render_threshold(builder, points, node), [done[node.input]])
            case _:
                assert_never(node)

    def _input(self, node: InputNode) -> Rendered:
        view = self.tick.deltas[node.global_id]
        return _view(self.builder, view, node.types)

    def _constant(self, node: ConstantNode) -> Rendered:
        rows = node.rows if self.tick.with_constants else ()
        constant = render_constant(self.builder, rows, node.types)
        time = f"{self.builder.bind(self.tick.as_of, 'bigint')} AS t"
        columns = select_list(constant.columns, [time], ["d"])
        return self.builder.add(f"SELECT {columns} FROM {constant.name}", constant, timed=True)

    def _history(self, position: int) -> Rendered:
        position = origin(self.tick.plan.nodes, position)
        types = self.tick.plan.nodes[position].types
        return _view(self.builder, self.tick.histories[position], types)

    def _join(self, node: JoinNode) -> Rendered:
        """Inputs before a path's source are looked up new, those after it old."""
        builder = self.builder
        deltas = [self.done[i] for i in node.inputs]
        old = [self._history(i) for i in node.inputs]
        new = [_together(builder, o, d) for o, d in zip(old, deltas, strict=True)]
        paths = []
        for path in node.paths:
            at = path.source
            inputs = [*new[:at], deltas[at], *old[at + 1 :]]
            paths.append(render_path(builder, self.tick.plan.nodes, inputs, node, path))
        return with_errors(builder, render_union(builder, paths, node.types), deltas)

    def _temporal(self, node: TemporalFilterNode) -> Rendered:
        """What is due in the tick comes from updates of any time before."""
        builder, delta = self.builder, self.done[node.input]
        updates = _together(builder, self._history(node.input), delta)
        lower, upper = self.tick.lower, self.tick.upper
        changes = render_temporal_changes(builder, updates, node, lower, upper)
        return with_errors(builder, changes, [delta])

    def _reduce(self, node: ReduceNode) -> Rendered:
        builder = self.builder
        delta = builder.share(render_members(builder, self.done[node.input], node))
        old = render_members(builder, self._history(node.input), node)
        keys = tuple(range(len(node.keys)))
        points = self._at_points(delta, _rows(builder, old), keys)
        return self._settle(render_groups(builder, points, node), [delta])

    def _at_points(self, delta: Rendered, old: Rendered, keys: Sequence[int]) -> Rendered:
        """The rows of changed groups, once for every point of their group.

        Their t is the point: its timestamp t and that of the next point n, NULL at the last.
        """
        builder = self.builder
        before = builder.bind(self.tick.lower - 1, "bigint")
        own = [f"{equality(delta.types[k], f'c{k}')} AS g{i}" for i, k in enumerate(keys)]
        names = [f"g{i}" for i in range(len(keys))]
        changed = f"SELECT {select_list(own, ['t'])} FROM {rows_only(delta)}"
        times = f"explode(array({before}, t)) AS t"
        points = f"SELECT DISTINCT {select_list(names, [times])} FROM ({changed})"
        partition = f"PARTITION BY {', '.join(names)} " if names else ""
        following = f"lead(t) OVER ({partition}ORDER BY t) AS n"
        numbered = f"SELECT {select_list(names, ['t', following])} FROM ({points})"
        rows = _together(builder, old, delta)
        same = [f"m.q{i} <=> p.g{i}" for i in range(len(keys))]
        condition = " AND ".join([*same, "m.t <= p.t"])
        columns = [f"m.{column} AS {column}" for column in delta.columns]
        point = "named_struct('t', p.t, 'n', p.n) AS t"
        keyed = [f"{equality(delta.types[k], f'c{k}')} AS q{i}" for i, k in enumerate(keys)]
        members = f"(SELECT {select_list(['*'], keyed)} FROM {rows.name}) m"
        select = (
            f"SELECT {select_list(columns, [point], ['m.d AS d'])} FROM {members} "
            f"JOIN ({numbered}) p ON {condition}"
        )
        return builder.add(select, delta, fallible=False)

    def _settle(self, results: Rendered, sources: Sequence[Rendered]) -> Rendered:
        """What groups give at points, as changes: there from one point on until the next."""
        builder = self.builder
        before = builder.bind(self.tick.lower, "bigint")
        starts = "named_struct('t', t.t, 's', 1L)"
        ends = "named_struct('t', t.n, 's', -1L)"
        columns = select_list(results.columns, ["e"] * results.fallible, ["d"])
        both = f"SELECT {columns}, inline(array({starts}, {ends})) AS (t, s) FROM {results.name}"
        signed = select_list(results.columns, results.extra, ["d * s AS d"])
        select = f"SELECT {signed} FROM ({both}) WHERE t >= {before}"
        changes = render_consolidated(builder, builder.add(select, results))
        return with_errors(builder, changes, sources)


def _view(builder: TextBuilder, view: ImportView, types: Types) -> Rendered:
    shape = Rendered(view.name, types, fallible=view.may_fail, timed=True)
    columns = select_list(shape.columns, shape.extra, ["d"])
    return builder.add(f"SELECT {columns} FROM {view.name}", shape)


def _rows(builder: TextBuilder, relation: Rendered) -> Rendered:
    """The relation without its errors."""
    columns = select_list(relation.columns, ["t"] * relation.timed, ["d"])
    select = f"SELECT {columns} FROM {rows_only(relation)}"
    return builder.add(select, relation, fallible=False)


def _together(builder: TextBuilder, old: Rendered, delta: Rendered) -> Rendered:
    """State after the tick: rows only, because errors are not state."""
    return render_union(builder, [_rows(builder, old), _rows(builder, delta)], delta.types)
