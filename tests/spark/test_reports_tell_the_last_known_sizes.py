"""Goal: what a replica tells of itself does not wait for an engine that is busy or gone.

Method: an engine whose answers the test gives, under a worker that only lists its dataflows.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from evertide.dataflow.delta_plan import DeltaPlan, InputNode
from evertide.spark.engine import EngineLost
from evertide.spark.reports import Reports
from evertide.spark.running import Building, Placement, RunningDataflow
from evertide.spark.setbacks import Setbacks
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp

MISSING: Any = None
PLAN = DeltaPlan((InputNode(GlobalId("u1"), (INT8,)),) * 3)


@dataclass
class SlowEngine:
    """Answers when it is allowed to."""

    free: asyncio.Event = field(default_factory=asyncio.Event)
    records: int = 1
    lost: bool = False
    asked: int = 0

    async def sizes(self, _: GlobalId) -> Mapping[str, int]:
        self.asked += 1
        if self.lost:
            raise EngineLost(self)  # type: ignore[arg-type]
        await self.free.wait()
        return {"records": self.records, "bytes": 10, "arrangements": 2, "groups": 0}


@dataclass
class Listing:
    """A worker as far as reports look at it."""

    running: list[RunningDataflow]
    setbacks: Setbacks = field(default_factory=Setbacks)

    def dataflows(self) -> list[RunningDataflow]:
        return self.running


def dataflow(engine: SlowEngine) -> RunningDataflow:
    described: Any = SimpleNamespace(global_id="u5", cluster_id="c1")
    placement = Placement(engine, Timestamp(3), MISSING)  # type: ignore[arg-type]
    return RunningDataflow(described, PLAN, None, placement, Timestamp(9))


def reports_of(*running: RunningDataflow) -> Reports:
    worker: Any = Listing(list(running))
    return Reports(worker)


async def rows(reports: Reports, relation: str) -> list[tuple]:
    return list((await reports.response(1, relation)).rows)


def test_a_busy_engine_is_asked_once_and_its_last_sizes_are_told() -> None:
    async def scenario() -> None:
        engine = SlowEngine()
        reports = reports_of(dataflow(engine))
        assert await rows(reports, "mz_arrangement_sizes") == []
        assert await rows(reports, "mz_arrangement_sizes") == []
        assert engine.asked == 1
        engine.free.set()
        assert await rows(reports, "mz_arrangement_sizes") == [("u5", "c1", 1, 10, 2)]
        engine.free.clear()
        engine.records = 7
        assert await rows(reports, "mz_arrangement_sizes") == [("u5", "c1", 1, 10, 2)]
        engine.free.set()
        assert await rows(reports, "mz_arrangement_sizes") == [("u5", "c1", 7, 10, 2)]

    asyncio.run(scenario())


def test_sizes_go_with_the_engine_that_kept_them() -> None:
    async def scenario() -> None:
        engine = SlowEngine()
        engine.free.set()
        reports = reports_of(dataflow(engine))
        assert len(await rows(reports, "mz_arrangement_sizes")) == 1
        engine.lost = True
        assert await rows(reports, "mz_arrangement_sizes") == []

    asyncio.run(scenario())


def test_hydration_tells_how_many_nodes_are_done() -> None:
    async def scenario() -> None:
        running = dataflow(SlowEngine())
        reports = reports_of(running)
        placement, running.placement = running.placement, None
        assert await rows(reports, "mz_hydration_statuses") == [("u5", "c1", False, 0, 3, None)]
        running.building = Building(MISSING, Timestamp(1), MISSING, MISSING)
        running.building.progress.nodes_done = 2
        assert await rows(reports, "mz_hydration_statuses") == [("u5", "c1", False, 2, 3, None)]
        running.placement = placement
        running.stopped = "a bug"
        assert await rows(reports, "mz_hydration_statuses") == [("u5", "c1", True, 3, 3, "a bug")]
        assert await rows(reports, "mz_cluster_replica_frontiers") == [("u5", "c1", 9, 3)]

    asyncio.run(scenario())
