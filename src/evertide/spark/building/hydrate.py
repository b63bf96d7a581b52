"""Contents computed by Spark SQL: one-shot queries, recomputes and the state that ticks start from.

Calls block: give them a thread.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final, TypeAlias, assert_never

import pyarrow as pa
from pyspark.sql import DataFrame

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
from evertide.spark.building.result_files import (
    WRITTEN_SCHEMA,
    ResultFile,
    ResultWriter,
    named_files,
)
from evertide.spark.building.run_files import RunWriter
from evertide.spark.building.state_files import adopt_runs, write_states
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
# Below the directory of a build: the files of its states.
STATE_DIRECTORY: Final = "state"


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
    directory: Path,
    *,
    index_key: tuple[int, ...] | None = None,
    cancelled: Event | None = None,
    on_node: Callable[[int], None] | None = None,
) -> tuple[ResultFile, ...]:
    """All state of a dataflow at `as_of`, one job per node that keeps some, and its output.

    Tasks write it into the directory: state where state_files reads it, the output as files of
    batches, whose names this gives. An index has its output as state alone. Given to
    Evaluator.load_state, with upper = as_of + 1, the state is what ticking the inputs' contents at
    as_of from nothing would have made. `on_node` is told how many nodes are done; all are only
    once the output is there too.
    """
    tell = on_node or (lambda _: None)
    for position, node in enumerate(plan.nodes):
        tell(position)
        if isinstance(node, StatefulNode):
            with jobs.job(HYDRATION_POOL) as job:
                source = _contents(job, plan, imports, as_of)[node.input]
                target = _Target(job, plan, position, as_of, directory, cancelled)
                _write_node(target, node, source)
    with jobs.job(HYDRATION_POOL) as job:
        output = _contents(job, plan, imports, as_of)[-1]
        target = _Target(job, plan, OUTPUT, as_of, directory, cancelled)
        files = _write_output(target, output, index_key)
    tell(len(plan.nodes))
    return files


@dataclass(frozen=True, slots=True)
class _Target:
    """Whose state a job writes, and where."""

    job: Job
    plan: DeltaPlan
    position: int
    as_of: Timestamp
    directory: Path
    cancelled: Event | None

    @property
    def states(self) -> Path:
        return self.directory / STATE_DIRECTORY

    def write(self, state: NodeState) -> None:
        """What of a state came here."""
        write_states(self.states, self.plan, {self.position: state})


def _write_output(
    target: _Target, output: Rendered, index_key: tuple[int, ...] | None
) -> tuple[ResultFile, ...]:
    job = target.job
    whole = render_consolidated(job.builder, output)
    if index_key is None:
        writer = ResultWriter(str(target.directory), target.plan.types, target.as_of)
        written = job.collect(
            f"SELECT * FROM {whole.name}",
            lambda frame: frame.mapInArrow(writer, WRITTEN_SCHEMA),
            target.cancelled,
        )
        return named_files(written)
    if whole.fallible:
        failed = job.run(f"SELECT e, d FROM {whole.name} WHERE e IS NOT NULL", target.cancelled)
        counted = zip(failed["e"].to_pylist(), failed["d"].to_pylist(), strict=True)
        errors = [(error, int(target.as_of), count) for error, count in counted]
        target.write(NodeState(None, errors=errors))
    _write_run(target, output, index_key)
    return ()


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


def offer_inputs(job: Job, plan: DeltaPlan, imports: Imports) -> dict[GlobalId, ImportView]:
    """The plan's inputs, as far as they are given, as views of the job."""
    types = {node.global_id: node.types for node in plan.nodes if isinstance(node, InputNode)}
    return {
        g: job.offer(types[g], files.paths, files.inline)
        for g, files in imports.items()
        if g in types
    }


def _contents(job: Job, plan: DeltaPlan, imports: Imports, as_of: Timestamp) -> list[Rendered]:
    return render_contents(job.builder, plan, offer_inputs(job, plan, imports), as_of)


def _write_node(target: _Target, node: StatefulNode, source: Rendered) -> None:
    builder = target.job.builder
    match node:
        case ArrangeNode(key=key, drop_null_keys=drop_null_keys):
            kept = source if not drop_null_keys else _without_nulls(builder, source, key)
            _write_run(target, kept, key)
        case TopKNode(group=group) | WindowNode(group=group):
            _write_run(target, source, group)
        case ThresholdNode(types=types):
            _write_run(target, source, range(len(types)))
        case ReduceNode():
            members = render_members(builder, source, node)
            found = target.job.run(render_states(builder, members, node), target.cancelled)
            target.write(NodeState(None, _groups(node, found)))
            looked_at = member_columns(node)
            if len(looked_at) > len(node.keys):
                values = _picked(builder, members, looked_at)
                _write_run(target, values, range(len(node.keys)))
        case _:
            assert_never(node)


def _write_run(target: _Target, source: Rendered, key: Sequence[int]) -> None:
    """Rows as an arrangement keeps them: each task sorts a range of hashes and writes it."""
    job = target.job
    kept = render_consolidated(job.builder, _picked(job.builder, source, range(len(source.types))))
    writer = RunWriter(str(target.directory), kept.types, target.as_of)
    count = job.partitions

    def write(frame: DataFrame) -> DataFrame:
        ranges = frame.repartitionById(count, "p").sortWithinPartitions("h").drop("p")
        return ranges.mapInArrow(writer, WRITTEN_SCHEMA)

    written = job.collect(_hashed(job.builder, kept, key, count), write, target.cancelled)
    files = [target.directory / file.name for file in named_files(written)]
    adopt_runs(target.states, target.position, files)


def _hashed(builder: TextBuilder, relation: Rendered, key: Sequence[int], count: int) -> str:
    """A SELECT of the relation with the hash that arrangements by this key sort by, and which of
    so many ranges of hashes that is in.

    The range is found with floats, which are monotone: no hash lies before one that is less.
    """
    encoded_key = encoded(builder, [relation.types[i] for i in key], [f"c{i}" for i in key])
    hashed = f"SELECT xxhash64({encoded_key}) AS h, * FROM {relation.name}"
    last, all_hashes = builder.bind(count - 1, "int"), builder.bind(2.0**64, "double")
    place = f"floor((CAST(h AS double) / {all_hashes} + 0.5D) * {builder.bind(count, 'int')})"
    return f"SELECT least(CAST({place} AS int), {last}) AS p, * FROM ({hashed})"


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
