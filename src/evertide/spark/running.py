"""One dataflow as a replica runs it: how far it is, where its state lies, what it still owes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.description import DataflowDescription, IndexExport
from evertide.persist.leases import ReadHold
from evertide.spark.engine import Engine
from evertide.spark.sink import ShardSink
from evertide.spark.takeover.sink import TakeoverSink
from evertide.spark.tick_records import RECOMPUTE
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update


@dataclass(slots=True)
class Progress:
    """How far a hydration by Spark is; set by the thread that runs it."""

    nodes_done: int = 0
    # Why it has not begun, if it has not.
    waits_for: str | None = None


# Peeks come at the newest timestamps; an index keeps this much history for those under way.
INDEX_HISTORY_MS: Final = 10_000
LEAST_INDEX_HISTORY_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Building:
    """State being built on an engine, in the background: hydration, or a move between engines.

    The task's result is the output at `start`.
    """

    engine: Engine
    start: Timestamp
    task: asyncio.Task[Sequence[Update]]
    # What keeps the inputs readable from `start` on.
    hold: ReadHold
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a dataflow's state lies; a peek may read it from `since` on.

    Inputs are held readable from where the dataflow stands, so that it can go on and be built
    again; an index's from its since on.
    """

    engine: Engine
    since: Timestamp
    hold: ReadHold


@dataclass(slots=True)
class RunningDataflow:
    """Owned by the worker's loop; peeks only read it.

    `frontier` is the upper of what has been computed. A dataflow without engine waits to be
    hydrated: at its as_of, or, when an engine was lost, where it stood.
    """

    description: DataflowDescription
    plan: DeltaPlan
    sink: ShardSink | TakeoverSink | None
    placement: Placement | None = None
    frontier: Timestamp = MIN_TS
    building: Building | None = None
    # Replaced by a new event whenever the frontier moves; peeks wait on it.
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    # Why it will not go on: its shard belongs to another version, or our own bug.
    stopped: str | None = None

    @property
    def index_key(self) -> tuple[int, ...] | None:
        """The key its output is kept arranged by, if it is an index."""
        export = self.description.export
        return export.key if isinstance(export, IndexExport) else None

    @property
    def history_ms(self) -> int:
        """How far an index's since trails its frontier."""
        export = self.description.export
        asked = export.history_ms if isinstance(export, IndexExport) else None
        return INDEX_HISTORY_MS if asked is None else max(asked, LEAST_INDEX_HISTORY_MS)

    @property
    def engine(self) -> Engine | None:
        """The engine that ticks it; None while it is not hydrated."""
        return None if self.placement is None else self.placement.engine

    @property
    def owes(self) -> bool:
        """Whether readers wait for output that is computed and not in its shard yet."""
        return self.sink is not None and self.sink.awaited

    @property
    def ahead_of_target(self) -> bool:
        """Whether it must wait for the view that it is to replace."""
        return isinstance(self.sink, TakeoverSink) and self.sink.ahead

    def is_due(self, engine: Engine, upper: Timestamp) -> bool:
        """Whether the output may change below `upper` though no input does."""
        due = engine.due(self.description.global_id) if self.plan.is_temporal else None
        return due is not None and due < upper

    def advance(self, frontier: Timestamp) -> None:
        """The output is known below `frontier` now."""
        self.frontier = frontier
        self.moved.set()
        self.moved = asyncio.Event()

    def stop(self, reason: str) -> None:
        """It will not go on; whoever waits for its frontier learns that."""
        self.stopped = reason
        self.stop_building()
        if isinstance(self.sink, TakeoverSink):
            self.sink.close()
        self.moved.set()

    def place(self, placement: Placement | None) -> None:
        """The state lies there from now on; None: nowhere. The output stays as far as it was."""
        if self.placement is not None:
            self.placement.hold.release()
        self.placement = placement

    def stop_building(self) -> None:
        """Give up what is being built."""
        if self.building is not None:
            self.building.task.cancel()
            self.building.hold.release()
            self.building = None


def forsake(dataflow: RunningDataflow) -> None:
    """What there is of its state counts no more: it will be built again."""
    dataflow.stop_building()
    dataflow.place(None)


def executor_of(dataflow: RunningDataflow, engine: Engine) -> str:
    """Who ticks it on this engine, for tick records."""
    return RECOMPUTE if dataflow.plan.recomputes else engine.executor
