"""What a replica tells of itself, as rows of system relations.

The second column of each row is the cluster whose dataflow it is about: one process may run several
clusters, and which replica that makes it is for the adapter to say.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from evertide.dataflow.protocol import FactsResponse
from evertide.spark.engine import Engine, EngineFailing, EngineLost
from evertide.spark.partitions.connection import ResidentFault
from evertide.spark.running import RunningDataflow
from evertide.spark.takeover.sink import TakeoverSink
from evertide.spark.worker import Worker
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, step_back

Facts: TypeAlias = tuple[str | int | float | bool | None, ...]

# An engine in the middle of a long tick answers after it: until then the last sizes are told.
SIZES_SECONDS: Final = 0.5


class Reports:
    """Of one worker. Nothing here waits long for a dataflow."""

    def __init__(self, worker: Worker, others: Callable[[str], list[Facts]] = lambda _: []) -> None:
        self._worker = worker
        # Tells the rows of relations that are not about dataflows, and of what should be one.
        self._others = others
        self._sizes: dict[GlobalId, Mapping[str, int]] = {}
        self._asking: dict[GlobalId, asyncio.Task[None]] = {}

    async def response(self, request_id: int, relation: str) -> FactsResponse:
        """The rows of the relation of this name; none of one that is not known here."""
        return FactsResponse(request_id, tuple(await self._rows(relation)))

    async def _rows(self, relation: str) -> list[Facts]:
        match relation:
            case "mz_tick_records":
                return [
                    (r.object_id, r.cluster_id, r.started_at_us, r.rows_in, r.rows_out, r.executor,
                     r.duration_ms, r.upper)
                    for r in self._worker.tick_records
                ]  # fmt: skip
            case "mz_hydration_statuses":
                known = [self._hydration(dataflow) for dataflow in self._worker.dataflows()]
                return [*known, *self._others(relation)]
            case "mz_cluster_replica_frontiers":
                return [_frontiers(dataflow) for dataflow in self._worker.dataflows()]
            case "mz_replacement_changes":
                return [found for d in self._worker.dataflows() for found in _to_change(d)]
            case "mz_arrangement_sizes":
                return await self._arrangement_sizes()
            case _:
                return self._others(relation)

    def _hydration(self, dataflow: RunningDataflow) -> Facts:
        """(object, cluster, hydrated, nodes that have their state, all nodes, why it is late)."""
        nodes, done = len(dataflow.plan.nodes), 0
        # What is finished needs no state.
        hydrated = dataflow.placement is not None or dataflow.frontier == EMPTY_FRONTIER
        if hydrated:
            done = nodes
        elif dataflow.building is not None:
            done = dataflow.building.progress.nodes_done
        described = dataflow.description
        why = dataflow.stopped or self._worker.setbacks.reason(dataflow)
        if why is None and dataflow.building is not None:
            why = dataflow.building.progress.waits_for
        return (described.global_id, described.cluster_id, hydrated, done, nodes, why)

    async def _arrangement_sizes(self) -> list[Facts]:
        """Of each hydrated dataflow; one whose engine has never answered yet is left out."""
        placed = {d.description.global_id: d for d in self._worker.dataflows() if d.placement}
        for global_id, dataflow in placed.items():
            engine = dataflow.engine
            if engine is not None and global_id not in self._asking:
                self._asking[global_id] = asyncio.create_task(self._ask(engine, global_id))
        if self._asking:
            await asyncio.wait(list(self._asking.values()), timeout=SIZES_SECONDS)
        self._sizes = {g: found for g, found in self._sizes.items() if g in placed}
        return [
            (g, placed[g].description.cluster_id, s["records"], s["bytes"], s["arrangements"])
            for g, s in self._sizes.items()
        ]

    async def _ask(self, engine: Engine, global_id: GlobalId) -> None:
        try:
            found = await engine.sizes(global_id)
            if found:
                self._sizes[global_id] = found
        except (EngineLost, EngineFailing, ResidentFault):
            self._sizes.pop(global_id, None)  # its state is gone, or will be soon
        finally:
            del self._asking[global_id]


def _to_change(dataflow: RunningDataflow) -> list[Facts]:
    """(object, cluster, records and bytes to be inserted, to be deleted, as of when)."""
    sink = dataflow.sink
    if not isinstance(sink, TakeoverSink) or sink.comparison is None:
        return []
    described, compared = dataflow.description, sink.comparison
    come, go = compared.difference.inserted, compared.difference.deleted
    sizes = (come.records, come.size_bytes, go.records, go.size_bytes)
    as_of = step_back(compared.new_below)
    return [(described.global_id, described.cluster_id, *sizes, as_of)]


def _frontiers(dataflow: RunningDataflow) -> Facts:
    """(object, cluster, upper of what is computed, since of the state here if there is some)."""
    described, placement = dataflow.description, dataflow.placement
    upper = None if dataflow.frontier == EMPTY_FRONTIER else dataflow.frontier
    since = None if placement is None else placement.since
    return (described.global_id, described.cluster_id, upper, since)
