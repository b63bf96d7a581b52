"""The engine of `--tick-engine spark`: ticks are Spark SQL jobs, but for those of recursions.

A recursion is no SQL text. Dataflows that hold one are ticked by the evaluator in this process.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.spark.engine import DriverEngine, Engine, Inputs, Peeked
from evertide.spark.evaluate import Evaluator
from evertide.spark.jobs import SparkJobs
from evertide.spark.operators.arrange import Wanted
from evertide.spark.tick_job import SparkTickEngine
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update


class JobEngine:
    """An Engine of two: which one has a dataflow is decided when it is created."""

    executor = SparkTickEngine.executor

    def __init__(self, jobs: SparkJobs, directory: Path) -> None:
        self._jobs = SparkTickEngine(jobs, directory / "jobs")
        self._evaluated = DriverEngine(Evaluator(directory / "evaluated"))
        self._owners: dict[GlobalId, Engine] = {}

    async def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        whole_from: Timestamp | None = None,
    ) -> None:
        owner: Engine = self._evaluated if plan.recomputes else self._jobs
        self._owners[dataflow_id] = owner
        await owner.create(
            dataflow_id, plan, index_key=index_key, as_of=as_of, whole_from=whole_from
        )

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        return await self._owners[dataflow_id].prepared(dataflow_id, inputs)

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Inputs,
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        return await self._owners[dataflow_id].tick(dataflow_id, inputs, lower, upper)

    def due(self, dataflow_id: GlobalId) -> Timestamp | None:
        return self._owners[dataflow_id].due(dataflow_id)

    async def peek(self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp) -> Peeked:
        return await self._owners[dataflow_id].peek(dataflow_id, keys, as_of)

    async def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        if dataflow_id in self._owners:
            await self._owners[dataflow_id].allow_compaction(dataflow_id, since)

    async def drop(self, dataflow_id: GlobalId) -> None:
        owner = self._owners.pop(dataflow_id, None)
        if owner is not None:
            await owner.drop(dataflow_id)

    async def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        owner = self._owners.get(dataflow_id)
        return {} if owner is None else await owner.sizes(dataflow_id)
