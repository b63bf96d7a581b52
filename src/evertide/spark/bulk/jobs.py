"""The two kinds of bulk job. Calls block: give them a thread."""

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Final

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan, InputNode
from evertide.dataflow.plan_codec import decode_plan
from evertide.dataflow.read_columns import read_columns
from evertide.expr.codec import decode_relation
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import OrderKey
from evertide.persist.coding.batch import UpdateBatch, from_payload, to_batch
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.hydrate import Imports, hydrate, offer_inputs
from evertide.spark.building.result_files import (
    WRITTEN_SCHEMA,
    FrameWriter,
    ResultFile,
    ResultWriter,
    named_files,
    read_frames,
)
from evertide.spark.bulk.first_rows import candidates, net_first
from evertide.spark.bulk.protocol import BuildJob, DoneEvent, InputFiles, SelectJob
from evertide.spark.jobs import Job, SparkJobs
from evertide.spark.render.keys import order_by
from evertide.spark.render.netted import linear_inputs, render_netted, retractions_text
from evertide.spark.render.relation import ImportView, render_contents
from evertide.spark.render.text import Rendered, rows_only, select_list
from evertide.spark.render.top_k import render_consolidated
from evertide.spark.tables import desc_of, updates_to_table
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# Rows that were found by another way than by tasks.
FIRST_FILE: Final = "first"
# The hashes of so many rows that were taken back fit in every task's memory.
_FEW_RETRACTIONS: Final = 2_000_000
# Spark counts the rows of a LIMIT as an int; whoever wants more gets all.
_MOST_LIMIT: Final = 2**31 - 1


def run_select(jobs: SparkJobs, job: SelectJob, cancelled: Event) -> DoneEvent:
    """A query's result as files, or the least error that it has."""
    plan = delta_plan(decode_relation(job.relation, by_signature))
    imports, as_of = read_inputs(plan, job.inputs), Timestamp(job.as_of)
    error = _least_error(jobs, plan, imports, as_of, cancelled)
    if error is not None:
        return DoneEvent(job.job_id, (), error)
    retractions = _count_retractions(jobs, plan, imports, as_of, cancelled)
    if any(retractions.values()):
        first = _find_first(jobs, plan, imports, job, cancelled)
        if first is not None:
            return DoneEvent(job.job_id, first)
    with jobs.job() as spark_job:
        rows = _render_rows(spark_job, plan, imports, as_of, retractions)
        files = _write_rows(spark_job, rows, job, job.most, cancelled)
    return DoneEvent(job.job_id, files)


def run_build(
    jobs: SparkJobs, job: BuildJob, cancelled: Event, on_node: Callable[[int], None]
) -> DoneEvent:
    """All state of a dataflow as files, and its output as more of them."""
    plan = decode_plan(job.plan)
    imports, as_of = read_inputs(plan, job.inputs), Timestamp(job.as_of)
    output = hydrate(
        jobs,
        plan,
        imports,
        as_of,
        Path(job.directory),
        index_key=job.index_key,
        cancelled=cancelled,
        on_node=on_node,
    )
    return DoneEvent(job.job_id, output)


def write_inputs(plan: DeltaPlan, imports: Imports) -> tuple[InputFiles, ...]:
    """Inputs as a message says them."""
    types = {node.global_id: node.types for node in plan.nodes if isinstance(node, InputNode)}
    written = []
    for global_id, files in imports.items():
        inline = None
        if files.inline and global_id in types:
            inline = to_batch(desc_of(types[global_id]), files.inline).payload
        written.append(InputFiles(global_id, tuple(map(str, files.paths)), inline))
    return tuple(written)


def read_inputs(plan: DeltaPlan, inputs: tuple[InputFiles, ...]) -> Imports:
    """Inverse of write_inputs, as far as a job looks at them."""
    types = {node.global_id: node.types for node in plan.nodes if isinstance(node, InputNode)}
    read: dict[GlobalId, PartFiles] = {}
    for one in inputs:
        global_id = GlobalId(one.global_id)
        inline: tuple[Update, ...] = ()
        if one.inline is not None:
            batch = UpdateBatch(desc_of(types[global_id]), payload=one.inline)
            inline = tuple(batch)
        read[global_id] = PartFiles(tuple(map(Path, one.paths)), inline)
    return read


def _find_first(
    jobs: SparkJobs, plan: DeltaPlan, imports: Imports, job: SelectJob, cancelled: Event
) -> tuple[ResultFile, ...] | None:
    """The first rows of an order by one pass over the inputs; None: that is no way to them."""
    with jobs.job() as spark_job:
        views = offer_inputs(spark_job, plan, imports)
        count = candidates(job.most, spark_job.input_rows, spark_job.input_bytes)
        if count is None or job.most is None:
            return None
        output = render_contents(spark_job.builder, plan, views, Timestamp(job.as_of))[-1]
        rows = _without_errors(spark_job, output)
        written = _write_rows(spark_job, rows, job, count, cancelled)
    desc, directory = desc_of(plan.types), Path(job.directory)
    payloads = [frame for file in written for frame in read_frames(directory / file.name)]
    found = [update for payload in payloads for update in from_payload(desc, payload)]
    net = net_first(found, count, job.most, _order_of(job), plan.types)
    if net is None:
        return None
    with FrameWriter(directory, FIRST_FILE) as writer:
        if net:
            updates = [Update(row, Timestamp(job.as_of), diff) for row, diff in net]
            writer.write(updates_to_table(plan.types, updates))
    return (writer.written,)


def _least_error(
    jobs: SparkJobs, plan: DeltaPlan, imports: Imports, as_of: Timestamp, cancelled: Event
) -> str | None:
    """Looked for before any row is told: a result has rows or an error, never both."""
    with jobs.job() as job:
        output = render_contents(job.builder, plan, offer_inputs(job, plan, imports), as_of)[-1]
        if not output.fallible:
            return None
        found = job.run(
            f"SELECT e FROM {output.name} WHERE e IS NOT NULL GROUP BY e"
            " HAVING sum(d) <> 0 ORDER BY e LIMIT 1",
            cancelled,
        )
    errors: list[str] = found.column("e").to_pylist()
    return errors[0] if errors else None


def _count_retractions(
    jobs: SparkJobs, plan: DeltaPlan, imports: Imports, as_of: Timestamp, cancelled: Event
) -> Mapping[GlobalId, int]:
    """Of the inputs that decide whether the output must be added up."""
    counts: dict[GlobalId, int] = {}
    wanted = linear_inputs(plan) or frozenset()
    with jobs.job() as job:
        views = offer_inputs(job, plan, imports)
    for global_id, view in views.items():
        if global_id in wanted and view.may_retract:
            with jobs.job() as job:
                offered = offer_inputs(job, plan, {global_id: imports[global_id]})[global_id]
                found = job.run(retractions_text(job.builder, offered, as_of), cancelled)
            counts[global_id] = found.column("n")[0].as_py()
    return counts


def _render_rows(
    job: Job,
    plan: DeltaPlan,
    imports: Imports,
    as_of: Timestamp,
    retractions: Mapping[GlobalId, int],
) -> Rendered:
    """The plan's output with positive multiplicities, without errors."""
    views = offer_inputs(job, plan, imports)
    decisive = linear_inputs(plan)
    if decisive is not None:
        views = {**views, **_netted(job, plan, views, retractions, as_of)}
    output = render_contents(job.builder, plan, views, as_of)[-1]
    rows = _without_errors(job, output)
    return rows if decisive is not None else render_consolidated(job.builder, rows)


def _without_errors(job: Job, output: Rendered) -> Rendered:
    listed = select_list(output.columns, ["d"])
    return job.builder.add(f"SELECT {listed} FROM {rows_only(output)}", output, fallible=False)


def _netted(
    job: Job,
    plan: DeltaPlan,
    views: Mapping[GlobalId, ImportView],
    retractions: Mapping[GlobalId, int],
    as_of: Timestamp,
) -> Mapping[GlobalId, ImportView]:
    types = {node.global_id: node.types for node in plan.nodes if isinstance(node, InputNode)}
    read = read_columns(plan)
    return {
        g: render_netted(
            job.builder,
            views[g],
            types[g],
            read[g],
            as_of,
            few=count <= _FEW_RETRACTIONS,
        )
        for g, count in retractions.items()
        if count
    }


def _write_rows(
    job: Job, rows: Rendered, select: SelectJob, most: int | None, cancelled: Event
) -> tuple[ResultFile, ...]:
    """The first `most` of the rows in order, or all, where tasks find them."""
    text = f"SELECT * FROM {rows.name}"
    if select.order or most != select.most:
        text += f" ORDER BY {', '.join(order_by(job.builder, rows.types, _order_of(select)))}"
    if most is not None and most <= _MOST_LIMIT:
        # Each of these rows is there once at least.
        text += f" LIMIT {job.builder.bind(most, 'int')}"
    writer = ResultWriter(select.directory, rows.types, select.as_of)
    return named_files(
        job.collect(text, lambda frame: frame.mapInArrow(writer, WRITTEN_SCHEMA), cancelled)
    )


def _order_of(select: SelectJob) -> tuple[OrderKey, ...]:
    return tuple(OrderKey(*key) for key in select.order)
