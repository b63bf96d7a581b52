"""Contents computed by Spark SQL: one-shot queries, recomputes and the state that ticks start from.

Calls block: give them a thread.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import (
    ArrangeNode,
    DeltaPlan,
    InputNode,
    ReduceNode,
    ThresholdNode,
    TopKNode,
    WindowNode,
)
from evertide.expr.relation import AggregateCall, Relation, Types
from evertide.persist.coding.encoding import decode_column
from evertide.persist.spark_input import PartFiles
from evertide.spark.accumulate import State, additive
from evertide.spark.arrangements.runs import run_schema
from evertide.spark.engine import Peeked
from evertide.spark.evaluate import OUTPUT, NodeState
from evertide.spark.jobs import Job, SparkJobs
from evertide.spark.render.keys import encoded
from evertide.spark.render.reduce import member_columns, render_members, render_states
from evertide.spark.render.relation import ImportView, render_contents
from evertide.spark.render.text import Rendered, TextBuilder, rows_only, select_list
from evertide.spark.render.top_k import render_consolidated
from evertide.spark.udf.reduce import joined_state, needs_values, part_lists
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

Imports: TypeAlias = Mapping[GlobalId, PartFiles]
StatefulNode: TypeAlias = ArrangeNode | ReduceNode | TopKNode | WindowNode | ThresholdNode
GroupState: TypeAlias = tuple[Row, int, tuple[State, ...]]

# Apart from queries, so that these do not wait for a large hydration to end.
HYDRATION_POOL = "hydration"


@dataclass(frozen=True, slots=True)
class Hydrated:
    """A dataflow at `as_of`: what its nodes keep, by position, and what its output holds."""

    as_of: Timestamp
    states: Mapping[int, NodeState]
    output: Peeked


def recompute(
    jobs: SparkJobs,
    relation: Relation,
    imports: Imports,
    as_of: Timestamp,
    cancelled: Event | None = None,
) -> Peeked:
    """A lowered relation's contents at `as_of`, by one Spark job; raises JobCancelled."""
    plan = delta_plan(relation)
    return decode_contents(plan.types, recompute_table(jobs, plan, imports, as_of, cancelled))


def recompute_table(
    jobs: SparkJobs,
    plan: DeltaPlan,
    imports: Imports,
    as_of: Timestamp,
    cancelled: Event | None = None,
) -> pa.Table:
    """The plan's output at `as_of`: c0..cN-1, e where it may fail, and d; consolidated."""
    with jobs.job() as job:
        nodes = _contents(job, plan, imports, as_of)
        output = render_consolidated(job.builder, nodes[-1])
        return job.run(f"SELECT * FROM {output.name}", cancelled)


def hydrate(
    jobs: SparkJobs,
    plan: DeltaPlan,
    imports: Imports,
    as_of: Timestamp,
    *,
    index_key: tuple[int, ...] | None = None,
    cancelled: Event | None = None,
    on_node: Callable[[int], None] | None = None,
) -> Hydrated:
    """All state of a dataflow at `as_of`, one job per node that keeps some, and its output.

    Given to Evaluator.load_state, with upper = as_of + 1, it is what ticking the inputs' contents
    at as_of from nothing would have made. `on_node` is told how many nodes are done; all are only
    once the output is there too.
    """
    tell = on_node or (lambda _: None)
    states: dict[int, NodeState] = {}
    for position, node in enumerate(plan.nodes):
        tell(position)
        if isinstance(node, StatefulNode):
            with jobs.job(HYDRATION_POOL) as job:
                source = _contents(job, plan, imports, as_of)[node.input]
                states[position] = _node_state(job, node, source, as_of, cancelled)
    with jobs.job(HYDRATION_POOL) as job:
        output = render_consolidated(job.builder, _contents(job, plan, imports, as_of)[-1])
        table = job.run(_hashed(job.builder, output, index_key or ()), cancelled)
    contents = decode_contents(plan.types, table)
    if index_key is not None:
        rows = table if "e" not in table.column_names else table.filter(table["e"].is_null())
        errors = [(error, int(as_of), count) for error, count in contents.errors]
        states[OUTPUT] = NodeState(_as_run(plan.types, rows, as_of), errors=errors)
    tell(len(plan.nodes))
    return Hydrated(as_of, states, contents)


def decode_contents(types: Types, table: pa.Table) -> Peeked:
    """A job's result as rows and errors with multiplicities."""
    columns = [decode_column(t, table.column(f"c{i}")) for i, t in enumerate(types)]
    counts: list[int] = table.column("d").to_pylist()
    rows = zip(*columns, strict=True) if columns else ((),) * len(counts)
    if "e" not in table.column_names:
        return Peeked(list(zip(rows, counts, strict=True)), [])
    errors = table.column("e").to_pylist()
    counted = list(zip(rows, errors, counts, strict=True))
    return Peeked(
        [(row, count) for row, error, count in counted if error is None],
        [(error, count) for _, error, count in counted if error is not None],
    )


def _contents(job: Job, plan: DeltaPlan, imports: Imports, as_of: Timestamp) -> list[Rendered]:
    views: dict[GlobalId, ImportView] = {}
    for node in plan.nodes:
        if isinstance(node, InputNode) and node.global_id not in views:
            files = imports[node.global_id]
            views[node.global_id] = job.offer(node.types, files.paths, files.inline)
    return render_contents(job.builder, plan, views, as_of)


def _node_state(
    job: Job, node: StatefulNode, source: Rendered, as_of: Timestamp, cancelled: Event | None
) -> NodeState:
    match node:
        case ArrangeNode(key=key, drop_null_keys=drop_null_keys):
            kept = source if not drop_null_keys else _without_nulls(job.builder, source, key)
            return NodeState(_run(job, kept, key, as_of, cancelled))
        case TopKNode(group=group) | WindowNode(group=group):
            return NodeState(_run(job, source, group, as_of, cancelled))
        case ThresholdNode(types=types):
            return NodeState(_run(job, source, range(len(types)), as_of, cancelled))
        case ReduceNode():
            members = render_members(job.builder, source, node)
            groups = _groups(node, job.run(render_states(job.builder, members, node), cancelled))
            looked_at = member_columns(node)
            if len(looked_at) == len(node.keys):
                return NodeState(None, groups)
            values = _picked(job.builder, members, looked_at)
            return NodeState(_run(job, values, range(len(node.keys)), as_of, cancelled), groups)
        case _:
            assert_never(node)


def _run(
    job: Job, source: Rendered, key: Sequence[int], as_of: Timestamp, cancelled: Event | None
) -> pa.Table | None:
    """Rows as an arrangement keeps them; None if there are none."""
    rows = _picked(job.builder, source, range(len(source.types)))
    kept = render_consolidated(job.builder, rows)
    table = job.run(_hashed(job.builder, kept, key), cancelled)
    return _as_run(source.types, table, as_of)


def _hashed(builder: TextBuilder, relation: Rendered, key: Sequence[int]) -> str:
    """A SELECT of the relation with the hash that arrangements by this key sort by."""
    encoded_key = encoded(builder, [relation.types[i] for i in key], [f"c{i}" for i in key])
    return f"SELECT xxhash64({encoded_key}) AS h, * FROM {relation.name}"


def _as_run(types: Types, table: pa.Table, as_of: Timestamp) -> pa.Table | None:
    """Hashed rows at `as_of` in the shape and order of a run."""
    if not table.num_rows:
        return None
    hashes = table.column("h").combine_chunks().to_numpy()
    ordered = table.take(pa.array(np.argsort(hashes, kind="stable")))
    columns = [ordered.column(f"c{i}") for i in range(len(types))]
    times = pa.array(np.full(table.num_rows, as_of, np.int64))
    columns = [ordered.column("h"), *columns, times, ordered.column("d")]
    return pa.Table.from_arrays(columns, names=run_schema(types).names).cast(run_schema(types))


def _without_nulls(builder: TextBuilder, source: Rendered, key: Sequence[int]) -> Rendered:
    if not key:
        return source
    there = " AND ".join(f"c{i} IS NOT NULL" for i in key)
    return builder.add(f"SELECT * FROM {source.name} WHERE {there}", source)


def _picked(builder: TextBuilder, source: Rendered, columns: Sequence[int]) -> Rendered:
    """Rows without errors, of these columns only."""
    listed = select_list([f"c{c} AS c{i}" for i, c in enumerate(columns)], ["d"])
    types = tuple(source.types[i] for i in columns)
    select = f"SELECT {listed} FROM {rows_only(source)}"
    return builder.add(select, source, types=types, fallible=False)


def _groups(node: ReduceNode, table: pa.Table) -> list[GroupState]:
    """Keys, net rows and accumulators; groups of which nothing is left are dropped."""
    columns = [decode_column(k.type, table.column(f"c{i}")) for i, k in enumerate(node.keys)]
    rows: list[int] = table.column("n").to_pylist()
    keys = zip(*columns, strict=True) if columns else [()] * len(rows)
    calls = [call for call in node.aggregates if call.argument and not needs_values(call)]
    states = [_states(number, call, table) for number, call in enumerate(calls)]
    per_group = zip(*states, strict=True) if states else [()] * len(rows)
    zero = tuple(additive(call).zero for call in calls)
    return [
        (key, count, found)
        for key, count, found in zip(keys, rows, per_group, strict=True)
        if count or found != zero
    ]


def _states(number: int, call: AggregateCall, table: pa.Table) -> list[State]:
    counts: list[int] = table.column(f"n{number}").to_pylist()
    name = f"a{number}"
    if name not in table.column_names:
        return [joined_state(call, (), count) for count in counts]
    parts = part_lists(table.column(name).combine_chunks())
    return [joined_state(call, p, count) for p, count in zip(parts, counts, strict=True)]
