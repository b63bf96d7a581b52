"""The engine in which every tick is a Spark SQL job: `--tick-engine spark`.

Slow and simple on purpose: the same delta plan, run by other code, must give the same shards. State
is what plan nodes gave in earlier ticks, as Parquet files beside the job's.
"""

import asyncio
import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evertide.dataflow.delta_plan import DeltaPlan, InputNode
from evertide.dataflow.lookup import Lookup
from evertide.expr.relation import Types
from evertide.expr.row_key import column_encoder, group_key
from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.engine import Inputs, Peeked
from evertide.spark.jobs import Job, SparkJobs
from evertide.spark.operators.arrange import Wanted
from evertide.spark.render.delta import Tick, kept_positions, render_tick
from evertide.spark.render.relation import ImportView
from evertide.spark.render.text import Rendered, select_list
from evertide.spark.render.top_k import render_consolidated
from evertide.spark.tables import (
    consolidate_updates,
    table_to_updates,
    updates_to_table,
    write_parquet,
)
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update

# More files than this are put together into one.
MAX_FILES = 8


@dataclass(slots=True)
class _History:
    """What one node gave so far, rows only, in files."""

    types: Types
    paths: list[Path] = field(default_factory=list)

    def append(self, path: Path, updates: Sequence[Update]) -> None:
        """Keep a tick's updates in a file of this name."""
        write_parquet(updates_to_table(self.types, updates), path)
        self.paths.append(path)

    def compact(self, path: Path, since: Timestamp) -> None:
        """Put all files together, times raised to since."""
        tables = [pq.read_table(stored) for stored in self.paths]
        updates = [u for table in tables for u in table_to_updates(self.types, table)]
        old, self.paths = self.paths, []
        self.append(path, consolidate_updates(self.types, updates, since))
        for stale in old:
            stale.unlink()


@dataclass(slots=True)
class _Dataflow:
    """One dataflow's state."""

    plan: DeltaPlan
    index_key: tuple[int, ...] | None
    as_of: Timestamp
    directory: Path
    histories: dict[int, _History]
    # The output of an index, for peeks.
    output: list[Update] = field(default_factory=list)
    since: Timestamp = MIN_TS
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def next_path(self) -> Path:
        return self.directory / f"{next(self.numbers)}.parquet"


class SparkTickEngine:
    """An Engine whose ticks are computed by Spark SQL and nothing else."""

    executor = "job"

    def __init__(self, jobs: SparkJobs, directory: Path) -> None:
        self._jobs = jobs.for_tiny_jobs()
        self._directory = directory
        self._dataflows: dict[GlobalId, _Dataflow] = {}
        self._created = itertools.count()

    async def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        whole_from: Timestamp | None = None,  # noqa: ARG002  # nothing is shared
    ) -> None:
        directory = self._directory / f"dataflow{next(self._created)}"
        directory.mkdir(mode=0o700, parents=True)
        histories = {i: _History(plan.nodes[i].types) for i in kept_positions(plan)}
        self._dataflows[dataflow_id] = _Dataflow(plan, index_key, as_of, directory, histories)

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        del dataflow_id
        return inputs

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Inputs,
        lower: Timestamp,
        upper: Timestamp,
    ) -> list[Update]:
        dataflow = self._dataflows[dataflow_id]
        return await asyncio.to_thread(self._tick, dataflow, inputs, lower, upper)

    def due(self, dataflow_id: GlobalId) -> Timestamp | None:
        """What comes when, a job finds out: time that passes may always bring something."""
        return MIN_TS if self._dataflows[dataflow_id].plan.is_temporal else None

    async def peek(self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp) -> Peeked:
        return await asyncio.to_thread(_peek, self._dataflows[dataflow_id], keys, as_of)

    async def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        if dataflow_id in self._dataflows:
            self._dataflows[dataflow_id].since = since

    async def drop(self, dataflow_id: GlobalId) -> None:
        dataflow = self._dataflows.pop(dataflow_id, None)
        if dataflow is not None:
            shutil.rmtree(dataflow.directory, ignore_errors=True)

    async def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        dataflow = self._dataflows.get(dataflow_id)
        return {} if dataflow is None else await asyncio.to_thread(_sizes, dataflow)

    def _tick(
        self,
        dataflow: _Dataflow,
        inputs: Inputs,
        lower: Timestamp,
        upper: Timestamp,
    ) -> list[Update]:
        with self._jobs.job() as job:
            starts = lower <= dataflow.as_of < upper
            tick = Tick(
                dataflow.plan,
                _offer_deltas(job, dataflow.plan, inputs),
                {i: job.offer(h.types, h.paths, ()) for i, h in dataflow.histories.items()},
                lower,
                upper,
                dataflow.as_of,
                with_constants=starts,
            )
            output, kept = _run(job, tick)
        for position, updates in kept.items():
            history = dataflow.histories[position]
            history.append(dataflow.next_path(), updates)
            if len(history.paths) > MAX_FILES:
                history.compact(dataflow.next_path(), dataflow.since)
        if dataflow.index_key is not None:
            types = dataflow.plan.types
            dataflow.output = consolidate_updates(
                types, [*dataflow.output, *output], dataflow.since
            )
        return output


def _sizes(dataflow: _Dataflow) -> dict[str, int]:
    """Of the files; a tick beside this may just have put some of them together."""
    records = size = 0
    for path in [path for history in dataflow.histories.values() for path in history.paths]:
        try:
            records += pq.read_metadata(path).num_rows
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return {
        "arrangements": len(dataflow.histories) + (dataflow.index_key is not None),
        "records": records + len(dataflow.output),
        "bytes": size,
    }


def _offer_deltas(
    job: Job, plan: DeltaPlan, inputs: Mapping[GlobalId, Sequence[Update]]
) -> dict[GlobalId, ImportView]:
    shapes = {n.global_id: n.types for n in plan.nodes if isinstance(n, InputNode)}
    return {g: job.offer(types, (), inputs.get(g, ())) for g, types in shapes.items()}


def _run(job: Job, tick: Tick) -> tuple[list[Update], dict[int, list[Update]]]:
    """The output's changes, and those of every node that later ticks look at again.

    One text gives them all: each relation's rows are a struct in a column of its own, and m says
    whose row it is.
    """
    nodes = render_tick(job.builder, tick)
    wanted = [len(nodes) - 1, *tick.histories]
    relations = [render_consolidated(job.builder, nodes[i]) for i in wanted]
    parts = [_tagged(number, relations) for number in range(len(relations))]
    table = job.run(" UNION ALL ".join(parts))
    marks = table.column("m")
    found = []
    for number, relation in enumerate(relations):
        own = table.filter(pc.equal(marks, number))
        found.append(_decode(relation.types, own, f"s{number}"))
    kept = {
        position: [update for update in updates if update.error is None]
        for position, updates in zip(tick.histories, found[1:], strict=True)
    }
    return found[0], kept


def _tagged(number: int, relations: Sequence[Rendered]) -> str:
    relation = relations[number]
    columns = [f"CAST({number} AS int) AS m"]
    for other, shape in enumerate(relations):
        fields = [f"c{i}: {spark_type_name(t)}" for i, t in enumerate(shape.types)]
        struct = f"struct<{', '.join([*fields, 'z: int'])}>"
        if other == number:
            values = [f"'c{i}', c{i}" for i in range(len(shape.types))]
            columns.append(f"named_struct({', '.join([*values, chr(39) + 'z' + chr(39) + ', 0'])})")
        else:
            columns.append(f"CAST(NULL AS {struct})")
        columns[-1] += f" AS s{other}"
    error = "e" if relation.fallible else "CAST(NULL AS string) AS e"
    return f"SELECT {select_list(columns, [error, 't', 'd'])} FROM {relation.name}"


def _decode(types: Types, table: pa.Table, column: str) -> list[Update]:
    values = table.column(column).combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    schema = updates_to_table(types, []).schema
    arrays = [values.field(i).cast(schema.field(i).type) for i in range(len(types))]
    arrays += [table.column(name).combine_chunks() for name in ("e", "t", "d")]
    return table_to_updates(types, pa.Table.from_arrays(arrays, schema=schema))


def _peek(dataflow: _Dataflow, keys: Wanted, as_of: Timestamp) -> Peeked:
    """The index's rows at as_of with one of the keys, or all; errors always."""
    assert dataflow.index_key is not None, "only indexes answer peeks"
    types = dataflow.plan.types
    found = consolidate_updates(types, [u for u in dataflow.output if u.ts <= as_of], as_of)
    rows = [(update.row, update.diff) for update in found if update.error is None]
    errors = [(update.error, update.diff) for update in found if update.error is not None]
    if keys is None:
        return Peeked(rows, errors)
    if isinstance(keys, Lookup):
        encode = column_encoder(types, dataflow.index_key)
        return Peeked([found for found in rows if keys.contains(encode(found[0]))], errors)
    key_types = tuple(types[i] for i in dataflow.index_key)
    wanted_key = group_key(key_types, tuple(range(len(key_types))))
    wanted = {wanted_key(key) for key in keys}
    key_of = group_key(types, dataflow.index_key)
    return Peeked([(row, count) for row, count in rows if key_of(row) in wanted], errors)
