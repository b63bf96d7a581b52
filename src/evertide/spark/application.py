"""A replica's Spark applications: the resident one starts behind the replica's back, then ticks are
handed to it; the other does bulk work, in a process of its own (bulk/host.py).

Under `--tick-engine auto` the first resident task takes the dataflows from the driver's evaluator
at a tick border; a task that dies is run again by Spark and rebuilt from the shards. Under `spark`
every tick is a Spark SQL job, so dataflows wait for the session.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
from pyspark.sql import SparkSession

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.description import Import
from evertide.dataflow.plan_codec import encode_plan
from evertide.expr.budget import Budget
from evertide.expr.codec import encode_relation
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.recursion import is_recursive
from evertide.expr.relation import Relation
from evertide.persist.coding.batch import UpdateBatch, concat_batches, from_payload
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.hydrate import STATE_DIRECTORY
from evertide.spark.building.part_jobs import over_parts
from evertide.spark.building.result_files import read_frames
from evertide.spark.bulk.host import BulkHost, Finished
from evertide.spark.bulk.jobs import write_inputs
from evertide.spark.bulk.protocol import BuildJob, SelectJob
from evertide.spark.bulk.results import Result, Select, interpreted_result, written_result
from evertide.spark.conf import SessionSettings
from evertide.spark.engine import Engine, EngineFailing, Peeked
from evertide.spark.job_engine import JobEngine
from evertide.spark.jobs import SparkJobs
from evertide.spark.partitions.engine import PartitionedEngine
from evertide.spark.partitions.tasks import ResidentTasks
from evertide.spark.recursion import solve
from evertide.spark.resident import Resident, ResidentEngine
from evertide.spark.running import Progress, RunningDataflow
from evertide.spark.session import gateway_process, is_stopped, start_session, stop_session
from evertide.spark.source import Collections
from evertide.spark.tables import desc_of
from evertide.spark.worker import Worker
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

# Above this many input records Spark SQL builds a dataflow's state; below, ticks from nothing do,
# which is faster by far (docs/adr/2026-11-15-small-hydrations-tick-from-empty.md) but holds the
# inputs in the replica's memory on the way.
HYDRATE_RECORDS = 8_000_000

JVM_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class FillLimits:
    """Inputs up to which a dataflow's state is built by ticks, in the replica's own memory."""

    records: int = HYDRATE_RECORDS
    decoded_bytes: int = 1 << 30


log = structlog.get_logger()


class SparkGone(Exception):
    """The replica's JVM ended by itself."""


class SparkApplication:
    """Owns the session and the resident task of one replica process."""

    def __init__(
        self,
        settings: SessionSettings,
        worker: Worker,
        collections: Collections,
        engine: str,
        bulk: BulkHost,
        limits: FillLimits,
    ) -> None:
        self._settings = settings
        self._bulk = bulk
        self._worker = worker
        self._collections = collections
        self._engine = engine
        self._limits = limits
        self._session: SparkSession | None = None
        self._has_task = asyncio.Event()
        self._resident: Resident | ResidentTasks | None = None
        worker.hydrator = self

    async def run(self) -> None:
        """Start Spark on a thread and hand the dataflows over; raises once the JVM is gone."""
        self._session = await asyncio.to_thread(start_session, self._settings)
        log.info("spark is up", master=self._session.sparkContext.master)
        if self._engine == "spark":
            jobs = SparkJobs(self._session, self._directory("jobs"))
            self._worker.use_engine(JobEngine(jobs, self._directory("ticks")))
        else:
            self._resident = self._tasks(self._session)
            await self._resident.start()
        await self._until_dead(self._session)

    def _tasks(self, session: SparkSession) -> Resident | ResidentTasks:
        """One task, or as many as the size has partitions; reached by TCP if they are elsewhere."""
        settings, directory = self._settings, self._directory("resident")
        address = None if settings.is_local else settings.address
        ready, lost = self._use, self._worker.lose_engine
        if settings.partitions == 1:
            return Resident(session, directory, address=address, on_ready=ready, on_lost=lost)
        return ResidentTasks(
            session,
            directory,
            settings.partitions,
            address=address,
            on_ready=ready,
            on_lost=lost,
        )

    def _use(self, engine: Engine) -> None:
        self._has_task.set()
        self._worker.use_engine(engine)

    async def _until_dead(self, session: SparkSession) -> None:
        """Without its JVM a replica can do nothing: it ends, and is started again."""
        jvm = gateway_process(session)
        while jvm is None or jvm.poll() is None:
            await asyncio.sleep(JVM_POLL_SECONDS)
            # A cluster may end an application whose JVM lives on.
            if not self._settings.is_local and await asyncio.to_thread(is_stopped, session):
                raise SparkGone("the cluster has ended the application")
        raise SparkGone(f"the JVM ended with code {jvm.returncode}")

    def _directory(self, name: str) -> Path:
        return self._settings.directory / name

    async def hydrate(
        self, dataflow: RunningDataflow, engine: Engine, as_of: Timestamp
    ) -> UpdateBatch | None:
        """State of a dataflow over much data, by Spark SQL jobs over its inputs' files.

        Where nothing can take it in yet this waits for a resident task, and is to be asked again.
        """
        imports = dataflow.description.imports
        if dataflow.plan.is_temporal or dataflow.plan.recomputes or self._engine == "spark":
            return None  # what is due later, and what goes round, is found by ticking
        if await self._fits_fill(imports):
            return None
        if not isinstance(engine, ResidentEngine | PartitionedEngine):
            _progress(dataflow).waits_for = "Spark is starting, which is to build its state"
            await self._has_task.wait()
            raise EngineFailing("a resident task is there to take its state in by now")
        return await over_parts(
            self._collections,
            imports,
            as_of,
            lambda files: self._built(dataflow, engine, files, as_of),
        )

    async def _fits_fill(self, imports: Sequence[Import]) -> bool:
        if sum([await self._collections.records(i) for i in imports]) >= self._limits.records:
            return False
        decoded = sum([await self._collections.decoded_bytes(i) for i in imports])
        return decoded <= self._limits.decoded_bytes

    async def _built(
        self,
        dataflow: RunningDataflow,
        engine: ResidentEngine | PartitionedEngine,
        files: Mapping[GlobalId, PartFiles],
        as_of: Timestamp,
    ) -> UpdateBatch:
        plan, index_key = dataflow.plan, dataflow.index_key
        inputs = await asyncio.to_thread(write_inputs, plan, files)
        encoded = encode_plan(plan)

        def job(job_id: int, directory: str) -> BuildJob:
            return BuildJob(job_id, directory, encoded, inputs, as_of, index_key)

        async with self._bulk.finished(BuildJob, job, _telling(dataflow)) as finished:
            await engine.load(
                dataflow.description.global_id,
                plan,
                index_key=index_key,
                as_of=as_of,
                directory=finished.directory / STATE_DIRECTORY,
            )
            return await asyncio.to_thread(_read_output, plan, finished)

    @asynccontextmanager
    async def select(
        self, select: Select, imports: tuple[Import, ...], as_of: Timestamp
    ) -> AsyncIterator[Result]:
        """A query's result over many rows, to be read within the context.

        Recursions are interpreted; all else is a job of the bulk process. Raises the SqlError that
        is the result, JobFailed, and what over_parts raises.
        """
        if is_recursive(select.relation):
            peeked = await self._interpreted(select.relation, imports, as_of)
            yield interpreted_result(select, peeked, as_of)
            return
        plan = delta_plan(select.relation)
        encoded = encode_relation(select.relation)
        async with AsyncExitStack() as kept:

            async def run(files: Mapping[GlobalId, PartFiles]) -> Finished:
                inputs = await asyncio.to_thread(write_inputs, plan, files)

                def job(job_id: int, directory: str) -> SelectJob:
                    return SelectJob(
                        job_id, directory, encoded, inputs, as_of, select.order, select.most
                    )

                return await kept.enter_async_context(self._bulk.finished(SelectJob, job))

            # The inputs are let go of once the job is done; what it wrote is kept.
            yield written_result(await over_parts(self._collections, imports, as_of, run))

    async def _interpreted(
        self, relation: Relation, imports: tuple[Import, ...], as_of: Timestamp
    ) -> Peeked:
        contents = {}
        for collection in imports:
            found = await self._collections.contents(collection, as_of)
            contents[collection.global_id] = Collection(list(found.rows), list(found.errors))
        budget = Budget()
        get = contents.__getitem__
        try:
            result = await asyncio.to_thread(evaluate, relation, get, budget, solve)
        finally:
            budget.cancel()  # nobody waits for it any more, if it still runs
        return Peeked(result.rows, result.errors)

    async def stop(self) -> None:
        """End the task, then the application and its JVM."""
        if self._resident is not None:
            await self._resident.stop()
        await self._bulk.stop()
        if self._session is not None:
            await asyncio.to_thread(stop_session, self._session)


def _read_output(plan: DeltaPlan, finished: Finished) -> UpdateBatch:
    desc = desc_of(plan.types)
    batches = [
        from_payload(desc, payload)
        for file in finished.done.files
        for payload in read_frames(finished.directory / file.name)
    ]
    return concat_batches(desc, batches)


def _progress(dataflow: RunningDataflow) -> Progress:
    """How far what is being built is; one that nobody sees if nothing is."""
    return Progress() if dataflow.building is None else dataflow.building.progress


def _telling(dataflow: RunningDataflow) -> Callable[[int], None]:
    """Notes how many nodes of what is being built are done; threads may call it."""
    progress = _progress(dataflow)

    def done(nodes: int) -> None:
        progress.nodes_done = nodes

    return done
