"""A replica's Spark application: starts behind the replica's back, then ticks are handed to it.

Under `--tick-engine auto` the first resident task takes the dataflows from the driver's evaluator
at a tick border; a task that dies is run again by Spark and rebuilt from the shards. Under `spark`
every tick is a Spark SQL job, so dataflows wait for the session.
"""

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

import structlog
from pyspark.sql import SparkSession

from evertide.dataflow.description import Import
from evertide.expr.budget import Budget
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.recursion import is_recursive
from evertide.expr.relation import Relation
from evertide.spark.building.hydrate import hydrate, recompute
from evertide.spark.building.part_jobs import over_parts
from evertide.spark.engine import Engine, Peeked
from evertide.spark.job_engine import JobEngine
from evertide.spark.jobs import SparkJobs
from evertide.spark.partitions.engine import PartitionedEngine
from evertide.spark.partitions.tasks import ResidentTasks
from evertide.spark.recursion import solve
from evertide.spark.resident import Resident, ResidentEngine
from evertide.spark.running import Progress, RunningDataflow
from evertide.spark.session import (
    SessionSettings,
    gateway_process,
    is_stopped,
    start_session,
    stop_session,
)
from evertide.spark.source import Collections
from evertide.spark.worker import Worker
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# Above this many input records Spark SQL builds a dataflow's state; below, ticks from nothing do,
# which is faster by far (docs/adr/2026-11-15-small-hydrations-tick-from-empty.md) but holds the
# inputs in the replica's memory on the way.
HYDRATE_RECORDS = 8_000_000

JVM_POLL_SECONDS = 0.5

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
        hydrate_records: int | None = None,
    ) -> None:
        self._settings = settings
        self._worker = worker
        self._collections = collections
        self._engine = engine
        self._hydrate_records = hydrate_records or HYDRATE_RECORDS
        self._session: SparkSession | None = None
        self._jobs: SparkJobs | None = None
        self._resident: Resident | ResidentTasks | None = None
        worker.hydrator = self

    async def run(self) -> None:
        """Start Spark on a thread and hand the dataflows over; raises once the JVM is gone."""
        self._session = await asyncio.to_thread(start_session, self._settings)
        self._jobs = SparkJobs(self._session, self._directory("jobs"))
        log.info("spark is up", master=self._session.sparkContext.master)
        if self._engine == "spark":
            self._worker.use_engine(JobEngine(self._jobs, self._directory("ticks")))
        else:
            self._resident = self._tasks(self._session)
            await self._resident.start()
        await self._until_dead(self._session)

    def _tasks(self, session: SparkSession) -> Resident | ResidentTasks:
        """One task, or as many as the size has partitions; reached by TCP if they are elsewhere."""
        settings, directory = self._settings, self._directory("resident")
        address = None if settings.is_local else settings.address
        ready, lost = self._worker.use_engine, self._worker.lose_engine
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
    ) -> list[Update] | None:
        """State of a dataflow over many records, by Spark SQL jobs over its inputs' files."""
        imports = dataflow.description.imports
        if self._jobs is None or not isinstance(engine, ResidentEngine | PartitionedEngine):
            return None
        if dataflow.plan.is_temporal or dataflow.plan.recomputes:
            return None  # what is due later, and what goes round, is found by ticking
        if sum([await self._collections.records(i) for i in imports]) < self._hydrate_records:
            return None
        jobs, plan, index_key = self._jobs, dataflow.plan, dataflow.index_key
        on_node = _telling(dataflow)
        hydrated = await over_parts(
            self._collections,
            imports,
            as_of,
            lambda files, cancelled: hydrate(
                jobs,
                plan,
                files,
                as_of,
                index_key=index_key,
                cancelled=cancelled,
                on_node=on_node,
            ),
        )
        await engine.load(
            dataflow.description.global_id,
            dataflow.plan,
            hydrated,
            index_key=dataflow.index_key,
            directory=self._directory(f"load-{secrets.token_hex(8)}"),
        )
        return hydrated.output.updates(as_of)

    async def one_shot(
        self, relation: Relation, imports: tuple[Import, ...], as_of: Timestamp
    ) -> Peeked:
        """A query over many rows: one Spark job.

        The interpreter does it while Spark is starting, and recursions always.
        """
        jobs = self._jobs
        if jobs is None or is_recursive(relation):
            return await self._interpreted(relation, imports, as_of)
        return await over_parts(
            self._collections,
            imports,
            as_of,
            lambda files, cancelled: recompute(jobs, relation, files, as_of, cancelled),
        )

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
        if self._session is not None:
            await asyncio.to_thread(stop_session, self._session)


def _telling(dataflow: RunningDataflow) -> Callable[[int], None]:
    """Notes how many nodes of what is being built are done; threads may call it."""
    building = dataflow.building
    progress = Progress() if building is None else building.progress

    def done(nodes: int) -> None:
        progress.nodes_done = nodes

    return done
