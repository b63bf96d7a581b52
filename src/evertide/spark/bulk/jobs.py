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
from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.hydrate import Imports, hydrate, offer_inputs
from evertide.spark.building.result_files import WRITTEN_SCHEMA, ResultWriter, named_files
from evertide.spark.bulk.protocol import BuildJob, DoneEvent, InputFiles, SelectJob
from evertide.spark.jobs import Job, SparkJobs
from evertide.spark.render.keys import order_by
from evertide.spark.render.netted import linear_inputs, render_netted, retractions_text
from evertide.spark.render.relation import ImportView, render_contents
from evertide.spark.render.text import Rendered, rows_only, select_list
from evertide.spark.render.top_k import render_consolidated
from evertide.spark.tables import desc_of
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

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
    few = _count_retractions(jobs, plan, imports, as_of, cancelled)
    with jobs.job() as spark_job:
        rows = _render_rows(spark_job, plan, imports, as_of, few)
        writer = ResultWriter(job.directory, plan.types, job.as_of)
        written = spark_job.collect(
            _ordered(spark_job, rows, job),
            lambda frame: frame.mapInArrow(writer, WRITTEN_SCHEMA),
            cancelled,
        )
    return DoneEvent(job.job_id, named_files(written))


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
    listed = select_list(output.columns, ["d"])
    rows = job.builder.add(f"SELECT {listed} FROM {rows_only(output)}", output, fallible=False)
    return rows if decisive is not None else render_consolidated(job.builder, rows)


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


def _ordered(job: Job, rows: Rendered, select: SelectJob) -> str:
    """A SELECT of the rows in order, those that are wanted."""
    text = f"SELECT * FROM {rows.name}"
    order = [OrderKey(*key) for key in select.order]
    if order:
        text += f" ORDER BY {', '.join(order_by(job.builder, rows.types, order))}"
    if select.most is not None and select.most <= _MOST_LIMIT:
        # Each of these rows is there once at least.
        text += f" LIMIT {job.builder.bind(select.most, 'int')}"
    return text
