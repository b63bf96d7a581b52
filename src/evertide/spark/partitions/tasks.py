"""Keeps as many resident tasks running as a size has partitions; all together are one engine."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog
from pyspark.sql import SparkSession

from evertide.spark.partitions.engine import PartitionedEngine
from evertide.spark.resident import Resident, ResidentEngine

log = structlog.get_logger()


class ResidentTasks:
    """`on_ready` gets each engine once all its tasks are up, `on_lost` each that lost one.

    What the other tasks keep is of no use without the one that is gone: so all are let go, start
    again side by side, and dataflows are built anew where their outputs stand.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: Path,
        count: int,
        *,
        address: str | None,
        on_ready: Callable[[PartitionedEngine], None],
        on_lost: Callable[[PartitionedEngine], None],
    ) -> None:
        self._count = count
        self._on_ready = on_ready
        self._on_lost = on_lost
        self._up: dict[int, ResidentEngine] = {}
        self._engine: PartitionedEngine | None = None
        self._residents = [
            Resident(
                session,
                directory / str(number),
                address=address,
                on_ready=partial(self._came, number),
                on_lost=partial(self._went, number),
            )
            for number in range(count)
        ]

    async def start(self) -> None:
        """Submit a job for each; `on_ready` follows when all have said hello."""
        for resident in self._residents:
            await resident.start()

    async def stop(self) -> None:
        """Let the tasks return, and their jobs end."""
        await asyncio.gather(*(resident.stop() for resident in self._residents))

    def _came(self, number: int, task: ResidentEngine) -> None:
        before = self._up.get(number)
        if before is not None:
            # The one before was not known to be gone: what the others share with it is.
            self._went(number, before)
        self._up[number] = task
        if len(self._up) == self._count:
            tasks = [self._up[number].connection for number in range(self._count)]
            engine = self._engine = PartitionedEngine(tasks)
            for connection in tasks:
                connection.owner = engine
            log.info("all resident tasks are up", partitions=self._count)
            self._on_ready(engine)

    def _went(self, number: int, task: ResidentEngine) -> None:
        if self._up.get(number) is not task:
            return  # it was let go with another
        del self._up[number]
        engine, self._engine = self._engine, None
        if engine is not None:
            others, self._up = self._up, {}
            for other in others.values():
                other.connection.close()
            self._on_lost(engine)
