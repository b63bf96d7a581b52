"""One replica's loop: follows its dataflows' inputs and keeps their outputs up to date.

One task owns all dataflows. A round looks at every dataflow once, hydrates or ticks those whose
inputs moved, then appends all outputs that are due in one commit. Rounds are started by pushes from
the shards; polling is only the fallback.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.description import DataflowDescription, Import
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.faults import BelowSince, PersistFault
from evertide.persist.push.watch import Signal
from evertide.persist.trouble import PASSING, until_done
from evertide.spark.arrangements.memory import give_back
from evertide.spark.building.filling import PIECE_ROWS, fill
from evertide.spark.building.recompute import (
    Changes,
    differences,
    output_at,
    output_before,
    too_many_changes,
)
from evertide.spark.engine import Engine, EngineFailing, EngineLost
from evertide.spark.outputs import Outputs, Shards
from evertide.spark.refresh import is_over, postponed, reached, stands_still
from evertide.spark.running import Building, Placement, RunningDataflow, executor_of, forsake
from evertide.spark.setbacks import Setbacks
from evertide.spark.source import (
    Collections,
    Look,
    count_updates,
    input_deltas,
    input_since,
    input_upper,
    snapshot_inputs,
)
from evertide.spark.takeover.moves import Takeovers, looked_at
from evertide.spark.takeover.sink import TakeoverSink
from evertide.spark.tick_records import KEPT_TICK_RECORDS, RECOMPUTE, TickRecord, tick_record
from evertide.spark.watch import JobFailed
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import (
    EMPTY_FRONTIER,
    MIN_TS,
    Timestamp,
    step_back,
    step_forward,
)
from evertide.vocab.update import Update

# A job that failed, a disk without room for state: reasons that may pass.
FAILING = (EngineFailing, JobFailed, OSError)

POLL_SECONDS = 1.0
READERS_TURNS = 4  # of the event loop: what is asked by then is read, taken up and answered

log = structlog.get_logger()


class Hydrator(Protocol):
    """Builds state by Spark SQL where that is worth its price."""

    async def hydrate(
        self, dataflow: RunningDataflow, engine: Engine, as_of: Timestamp
    ) -> Sequence[Update] | None:
        """The output at `as_of` with the state loaded into the engine; None: not worth it."""
        ...


class Worker:
    """Owns a replica's dataflows."""

    def __init__(
        self,
        shards: Shards,
        collections: Collections,
        engine: Engine | None,
        oracle: TimestampOracle | None = None,
    ) -> None:
        """Without an oracle no dataflow takes another one's shard over."""
        self._collections = collections
        self.hydrator: Hydrator | None = None
        # Where dataflows are hydrated; None while the first one is still starting.
        self._engine = engine
        self._dataflows: dict[GlobalId, RunningDataflow] = {}
        self._wake = Signal()
        self.tick_records: deque[TickRecord] = deque(maxlen=KEPT_TICK_RECORDS)
        self.setbacks = Setbacks()
        takeovers = Takeovers(shards, collections, oracle, self._wake.set)
        self._outputs = Outputs(shards, self.setbacks, takeovers)

    def wake(self) -> None:
        """Something may have moved: look again."""
        self._wake.set()

    def dataflow(self, global_id: GlobalId) -> RunningDataflow | None:
        """For peeks and introspection."""
        return self._dataflows.get(global_id)

    def dataflows(self) -> list[RunningDataflow]:
        """All of them, in order of creation."""
        return list(self._dataflows.values())

    @property
    def engine(self) -> Engine | None:
        """Where dataflows run by now; None while there is nowhere."""
        return self._engine

    def use_engine(self, engine: Engine) -> None:
        """Hydrate on this one from now on, and move what runs elsewhere at a tick border."""
        self._engine = engine
        self._wake.set()

    def lose_engine(self, engine: Engine) -> None:
        """Dataflows that ran there are rebuilt once there is an engine again."""
        if self._engine is engine:
            self._engine = None
        for dataflow in self._dataflows.values():
            if dataflow.engine is engine:
                dataflow.place(None)
            if dataflow.building is not None and dataflow.building.engine is engine:
                dataflow.stop_building()
        self._wake.set()

    def found_broken(self, dataflow: RunningDataflow, engine: Engine, fault: Exception) -> None:
        """Its state there answers no more, as somebody learnt who asked for something else than a
        tick. Without a change of its inputs nothing else would notice."""
        if dataflow.stopped is None and dataflow.engine is engine:
            forsake(dataflow)
            self.setbacks.met(dataflow, fault)
            self._wake.set()

    async def set_dataflows(self, wanted: Mapping[GlobalId, DataflowDescription]) -> None:
        """Run exactly these: what is new is created, what is gone is dropped."""
        for global_id in [g for g in self._dataflows if g not in wanted]:
            await self._drop(self._dataflows.pop(global_id))
        for global_id, description in wanted.items():
            if global_id not in self._dataflows:
                self._dataflows[global_id] = await self._create(description)
            else:
                # What may have changed is how long an index remembers, from what its inputs
                # follow, and whether it may write.
                self._dataflows[global_id].description = description
        self._wake.set()

    async def _create(self, description: DataflowDescription) -> RunningDataflow:
        plan = delta_plan(description.relation)
        sink = await self._outputs.sink(description)
        log.info("dataflow created", object_id=description.global_id)
        return RunningDataflow(description, plan, sink)

    async def _drop(self, dataflow: RunningDataflow) -> None:
        engines = {e for e in (dataflow.engine, self._engine) if e is not None}
        dataflow.stop("dropped")
        self.setbacks.over(dataflow)
        dataflow.place(None)
        for engine in engines:
            await _forget(engine, dataflow)
        log.info("dataflow dropped", object_id=dataflow.description.global_id)

    async def run(self) -> None:
        """Rounds until cancelled. Fenced, or without a store, it ends, and the process with it."""
        while True:
            await self._wake.wait(POLL_SECONDS)  # and look anyway: a push may have been lost
            self._wake.clear()
            await self.round()

    async def round(self) -> None:
        """Bring every dataflow as far as its inputs are, then append what is due.

        One whose last output could not be appended goes no further: else a full disk would fill the
        memory.
        """
        running = [d for d in self._dataflows.values() if d.stopped is None]
        imports = [i for d in running for i in looked_at(d)]
        inputs = await until_done("reading inputs", lambda: self._collections.look(imports))
        behind = False
        for dataflow in running:
            if dataflow.owes or self.setbacks.waits(dataflow):
                behind = True
            elif dataflow.stopped is None and not dataflow.ahead_of_target:
                await self._guarded(dataflow, self._step(dataflow, inputs))
        for dataflow in running:
            # After all ticks: readers wait while a view changes hands.
            if isinstance(dataflow.sink, TakeoverSink) and dataflow.stopped is None:
                await self._guarded(dataflow, self._outputs.take_over(dataflow, inputs))
        for _ in range(READERS_TURNS):
            await asyncio.sleep(0)  # who waits for a view's frontier needs not wait for its shard
        moved = await self._outputs.append_due(self.dataflows())
        if moved and (behind or any(i.shard_id in moved for i in imports)):
            # Others of this replica read it; pushes only come from other processes.
            self._wake.set()

    async def _guarded(self, dataflow: RunningDataflow, step: Awaitable[None]) -> None:
        """One dataflow's bug must not stop the others: it is set aside and shown as stopped.

        Nor must what it cannot read: it is tried again later.
        """
        try:
            await step
            if dataflow.building is None and not dataflow.owes:
                self.setbacks.over(dataflow)
        except PASSING as fault:
            self.setbacks.met(dataflow, fault)
        except FAILING as fault:
            # What is left of its state there may be half of a tick's: it is built again.
            forsake(dataflow)
            self.setbacks.met(dataflow, fault)
        except EngineLost as lost:
            self.lose_engine(lost.engine)
        except BelowSince as fault:
            await self._restart(dataflow, str(fault))
        except PersistFault:
            raise
        except Exception:  # this loop owns the dataflow
            dataflow.stop("internal error")
            log.exception("dataflow stopped", object_id=dataflow.description.global_id)

    async def _restart(self, dataflow: RunningDataflow, reason: str) -> None:
        """History that it needed has been merged.

        An index begins again where its inputs are readable now. A view's holds follow whichever
        replica is furthest: one that lags behind begins again where its shard is. If nobody has
        brought the shard further, the holds failed: a fault that someone must look at.
        """
        global_id = dataflow.description.global_id
        if dataflow.sink is not None:
            sink = await self._outputs.sink(dataflow.description)
            stuck = sink is None or sink.upper <= max(dataflow.sink.upper, dataflow.frontier)
            if stuck and not isinstance(sink, TakeoverSink):
                dataflow.stop(reason)
                log.error("dataflow cannot go on", object_id=global_id, reason=reason)
                return
            if isinstance(dataflow.sink, TakeoverSink):
                dataflow.sink.close()
            dataflow.sink = sink
        log.warning("dataflow begins again", object_id=global_id, reason=reason)
        engine = dataflow.engine
        forsake(dataflow)
        dataflow.frontier = MIN_TS
        if engine is not None:
            await _forget(engine, dataflow)

    async def _step(self, dataflow: RunningDataflow, inputs: Look) -> None:
        if is_over(dataflow):
            await self._finish(dataflow)
            return
        if self._engine is not None and dataflow.engine is not self._engine:
            await self._build(dataflow, self._engine)
        if dataflow.engine is None:
            return
        imports, frontier = dataflow.description.imports, dataflow.frontier
        upper = reached(dataflow, inputs)
        if upper <= frontier:
            return
        changed = [i for i in imports if not inputs.unchanged(i, frontier)]
        if changed or dataflow.is_due(dataflow.engine, upper):
            await self._tick(dataflow, changed, upper, inputs)
        else:
            self._computed(dataflow, (), upper, still=stands_still(dataflow))

    async def _finish(self, dataflow: RunningDataflow) -> None:
        """Nothing more will come of it: what it needed may go."""
        if dataflow.frontier != EMPTY_FRONTIER:
            self._computed(dataflow, (), EMPTY_FRONTIER)
        engine = dataflow.engine
        dataflow.stop_building()
        dataflow.place(None)
        if engine is not None:
            await _forget(engine, dataflow)

    async def _build(self, dataflow: RunningDataflow, engine: Engine) -> None:
        """Start building the state on this engine, or adopt it once it is there.

        It is built in the background: meanwhile other dataflows tick, and so does this one where it
        has another engine still.
        """
        building = dataflow.building
        if building is not None and building.engine is engine:
            if building.task.done():
                try:
                    await self._adopt(dataflow, building, building.task.result())
                except Exception:
                    dataflow.stop_building()
                    raise
            return
        dataflow.stop_building()
        start = await self._start(dataflow)
        imports = dataflow.description.imports
        if await input_upper(self._collections, imports) > start:
            # For views too: their critical holds follow the fastest replica, which may be another.
            hold = await self._collections.hold(imports, start)
            if dataflow.stopped is not None:
                # It was dropped meanwhile, and nobody will look at what is built for it.
                hold.release()
                return
            task = asyncio.create_task(self._hydrate(dataflow, engine, start))
            task.add_done_callback(lambda _: self._wake.set())
            dataflow.building = Building(engine, start, task, hold)

    async def _hydrate(
        self, dataflow: RunningDataflow, engine: Engine, start: Timestamp
    ) -> Sequence[Update]:
        """Build the state at `start`; returns the output there."""
        started = time.perf_counter()
        executor, rows_in, output = await self._built(dataflow, engine, start)
        self._record(dataflow, executor, started, rows_in, output, step_forward(start))
        return output

    async def _built(
        self, dataflow: RunningDataflow, engine: Engine, start: Timestamp
    ) -> tuple[str, int, Sequence[Update]]:
        """Who built the state at `start`, from how many rows, and the output there.

        Very many rows are hydrated by Spark SQL; others are fed to an empty dataflow.
        """
        description = dataflow.description
        if self.hydrator is not None:
            output = await self.hydrator.hydrate(dataflow, engine, start)
            if output is not None:
                return "spark", 0, output
        inputs = await snapshot_inputs(self._collections, description.imports, start)
        ticked = await fill(
            engine,
            description.global_id,
            dataflow.plan,
            inputs,
            start,
            index_key=dataflow.index_key,
        )
        rows = count_updates(inputs)
        if rows > PIECE_ROWS:
            inputs.clear()
            await asyncio.to_thread(give_back)
        return executor_of(dataflow, engine), rows, ticked

    async def _adopt(
        self, dataflow: RunningDataflow, building: Building, output: Sequence[Update]
    ) -> None:
        """Go on from the state that was built.

        A dataflow that ran elsewhere meanwhile is ahead of it: the new state is brought to the same
        frontier first, and what that gives is dropped, for it was given already.
        """
        built = step_forward(building.start)
        imports = dataflow.description.imports
        if dataflow.frontier > built:
            inputs = await input_deltas(self._collections, imports, built, dataflow.frontier)
            due = dataflow.is_due(building.engine, dataflow.frontier)
            if due or count_updates(inputs):
                await self._timed_tick(dataflow, building.engine, inputs, built, dataflow.frontier)
            if dataflow.building is not building:
                return  # it was dropped meanwhile, or the engine was lost
        elif dataflow.frontier < built:
            self._computed(dataflow, output, built)
        old = dataflow.engine
        dataflow.building = None
        dataflow.place(Placement(building.engine, building.start, building.hold))
        if old is not None:
            await old.drop(dataflow.description.global_id)

    async def _start(self, dataflow: RunningDataflow) -> Timestamp:
        """Where to hydrate: where it stood, or its as_of, or where its shard is.

        An index starts a little in the past, so that peeks under way may ask it, but well above
        its inputs' since, which may move before it is hydrated.
        """
        if dataflow.frontier > 0:
            return step_back(dataflow.frontier)
        imports = dataflow.description.imports
        if dataflow.sink is None:
            since = await input_since(self._collections, imports)
            upper = await input_upper(self._collections, imports)
            if upper == EMPTY_FRONTIER:
                return since
            return max(since, Timestamp(upper - 1 - dataflow.history_ms))
        if dataflow.sink.upper == EMPTY_FRONTIER:
            return max(dataflow.description.as_of, await input_since(self._collections, imports))
        return max(dataflow.description.as_of, step_back(dataflow.sink.upper))

    async def _tick(
        self, dataflow: RunningDataflow, changed: Sequence[Import], upper: Timestamp, look: Look
    ) -> None:
        """Carry the changes of these inputs over; the others certainly have none."""
        engine, lower = dataflow.engine, dataflow.frontier
        assert engine is not None
        deltas = await input_deltas(self._collections, changed, lower, upper, look)
        inputs = {g: postponed(u, dataflow.description.refresh) for g, u in deltas.items()}
        output: Sequence[Update] = ()
        changes = await too_many_changes(self._collections, dataflow, inputs, upper)
        if changes is not None:
            before = await output_before(self._collections, dataflow)
            if before is not None:
                await self._recompute(dataflow, before, changes, upper)
                return
        if dataflow.stopped is not None or dataflow.engine is not engine:
            return  # it was dropped while this was read, or the engine was lost
        if count_updates(inputs) or dataflow.is_due(engine, upper):
            output = await self._timed_tick(dataflow, engine, inputs, lower, upper)
        self._computed(dataflow, output, upper)

    async def _recompute(
        self,
        dataflow: RunningDataflow,
        before: Sequence[Update],
        changes: Changes,
        upper: Timestamp,
    ) -> None:
        """Build the state anew where this tick would end, in the background as ever.

        The dataflow has no state until then. If that fails, it is hydrated where it stands.
        """
        engine = dataflow.engine
        imports = dataflow.description.imports
        hold = await self._collections.hold(imports, step_back(dataflow.frontier))
        if dataflow.stopped is not None or engine is None or dataflow.engine is not engine:
            hold.release()  # it was dropped meanwhile, or the engine was lost
            return
        dataflow.place(None)
        task = asyncio.create_task(self._recomputed(dataflow, engine, before, changes, upper))
        task.add_done_callback(lambda _: self._wake.set())
        dataflow.building = Building(engine, step_back(upper), task, hold)

    async def _recomputed(
        self,
        dataflow: RunningDataflow,
        engine: Engine,
        before: Sequence[Update],
        changes: Changes,
        upper: Timestamp,
    ) -> Sequence[Update]:
        started = time.perf_counter()
        *early, last = changes.times

        async def contents(ts: Timestamp) -> Sequence[Update]:
            if ts < last:
                return await output_at(self._collections, dataflow, engine, ts)
            return (await self._built(dataflow, engine, step_back(upper)))[2]

        output = await differences(dataflow.plan.types, before, [*early, last], contents)
        self._record(dataflow, RECOMPUTE, started, changes.count, output, upper)
        return output

    async def _timed_tick(
        self,
        dataflow: RunningDataflow,
        engine: Engine,
        inputs: Mapping[GlobalId, Sequence[Update]],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        started = time.perf_counter()
        output = await engine.tick(dataflow.description.global_id, inputs, lower, upper)
        self._record(
            dataflow, executor_of(dataflow, engine), started, count_updates(inputs), output, upper
        )
        return output

    def _record(
        self,
        dataflow: RunningDataflow,
        executor: str,
        started: float,
        rows_in: int,
        output: Sequence[Update],
        upper: Timestamp,
    ) -> None:
        described = dataflow.description
        record = tick_record(described, executor, started, rows_in, output, upper)
        self.tick_records.append(record)

    def _computed(
        self,
        dataflow: RunningDataflow,
        output: Sequence[Update],
        upper: Timestamp,
        *,
        still: bool = False,
    ) -> None:
        """Below `upper` the output is known; `still`: because no input changed."""
        if dataflow.sink is not None:
            output = postponed(output, dataflow.description.refresh)
            lower = None if dataflow.frontier == MIN_TS else dataflow.frontier
            dataflow.sink.stage(output, upper, lower=lower, still=still)
        dataflow.advance(upper)


async def _forget(engine: Engine, dataflow: RunningDataflow) -> None:
    """Drop what an engine keeps of a dataflow, built or half built."""
    with suppress(EngineLost):  # its state went with it
        await engine.drop(dataflow.description.global_id)
