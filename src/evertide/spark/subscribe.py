"""Dataflows that run for a subscription: their output is told, not kept.

One look at all their inputs serves them all, so an idle one costs a comparison. Each runs in its
own task: it ticks when its inputs changed, sends what came of that, and goes on once the adapter
has acknowledged it. What its inputs change meanwhile waits in their shards, held readable.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final, Protocol, TypeAlias

import structlog

from evertide.dataflow.channel import Channel
from evertide.dataflow.delta import delta_plan
from evertide.dataflow.description import DataflowDescription, Import, SubscribeExport
from evertide.dataflow.protocol import BatchResponse, Command, SubscribeCommand
from evertide.expr.codec import decode_relation
from evertide.expr.functions.table import by_signature
from evertide.persist.coding.inline import encode_inline
from evertide.persist.leases import ReadHold
from evertide.persist.push.watch import Signal
from evertide.persist.trouble import PASSING, until_done
from evertide.spark.engine import Engine, EngineLost
from evertide.spark.running import RunningDataflow
from evertide.spark.source import (
    Collections,
    Look,
    count_updates,
    input_deltas,
    snapshot_inputs,
)
from evertide.spark.subscribe_setbacks import SubscribeSetbacks
from evertide.spark.tables import desc_of
from evertide.spark.worker import FAILING, Worker
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_back, step_forward
from evertide.vocab.update import Update

# How often the inputs are looked at without having been told that they moved.
_POLL_S: Final = 1.0
# How often an idle subscription that did not ask for progress is told of it, and moves its hold.
_PROGRESS_S: Final = 5.0
# More updates than this are encoded on a thread.
_THREAD_UPDATES: Final = 2_000
# A tick takes in about so many changes of each input: views of the same task wait for their turn.
TICK_ROWS: Final = 50_000

# Whose subscription it is: request ids count on one connection.
Asker: TypeAlias = tuple[Channel[Command], int]
# The collections of these ids as they are known now; None if one of them is gone.
Find: TypeAlias = Callable[[Sequence[GlobalId]], tuple[Import, ...] | None]

log = structlog.get_logger()


class Watching(Protocol):
    """Signals of change; controller/storage.py offers it."""

    def watching(self, *collections: Import) -> AbstractContextManager[Signal]: ...


class Flow:
    """One subscription's dataflow: everything below `frontier` was computed and told."""

    def __init__(
        self, dataflow: RunningDataflow, command: SubscribeCommand, hold: ReadHold
    ) -> None:
        self.dataflow = dataflow
        self.engine: Engine | None = None
        self.frontier = Timestamp(command.as_of)
        self.due: asyncio.Future[Look] | None = None
        self.acknowledged = asyncio.Event()
        self._command = command
        self._hold = hold
        self._progress_due = 0.0

    @property
    def imports(self) -> tuple[Import, ...]:
        return self.dataflow.description.imports

    @property
    def hydrated_from(self) -> Timestamp:
        """Where state is built: where it stands, or where it begins."""
        return max(Timestamp(self._command.as_of), step_back(self.frontier))

    def upper(self, look: Look) -> Timestamp:
        """How far it can be computed; no further than anybody wants it."""
        upper = min(map(look.upper, self.imports), default=EMPTY_FRONTIER)
        up_to = self._command.up_to
        return upper if up_to is None else min(upper, Timestamp(up_to))

    def unchanged(self, look: Look) -> bool:
        """Whether its output certainly stays the same as far as it can be computed."""
        still = all(look.unchanged(i, self.frontier) for i in self.imports)
        return still and not self.is_due(self.upper(look))

    def is_due(self, upper: Timestamp) -> bool:
        """Whether time alone may change its output below `upper`."""
        assert self.engine is not None, "its state tells when something is due"
        return self.dataflow.is_due(self.engine, upper)

    @property
    def ended(self) -> bool:
        """Whether all that was asked for is told."""
        up_to = self._command.up_to
        return self.frontier == EMPTY_FRONTIER or (up_to is not None and self.frontier >= up_to)

    def wanted(self, updates: Sequence[Update]) -> list[Update]:
        return [u for u in updates if u.ts >= self._command.from_ts]

    def passes(self, upper: Timestamp) -> bool:
        """Time went on without changes; True if nobody need be told of it now."""
        now = time.monotonic()
        last = upper in (self._command.up_to, EMPTY_FRONTIER)
        if last or self._command.progress or now >= self._progress_due:
            self._progress_due = now + _PROGRESS_S
            return False
        self.frontier = upper
        return True

    def move_hold(self) -> None:
        """What lies before is needed no more: it goes on, and is built again, from here."""
        if self.frontier != EMPTY_FRONTIER:
            self._hold.move(step_back(self.frontier))

    def close(self) -> None:
        self._hold.release()


class Subscribes:
    """All subscriptions' dataflows of one replica."""

    def __init__(self, worker: Worker, collections: Collections, watching: Watching) -> None:
        self._worker = worker
        self._collections = collections
        self._watching = watching
        self._flows: dict[Asker, Flow] = {}
        self._numbers = itertools.count(1)
        # Set when a flow came or waits for news.
        self._wake = asyncio.Event()
        self._signal: Signal | None = None
        self._setbacks = SubscribeSetbacks()

    def __len__(self) -> int:
        return len(self._flows)

    def acknowledge(self, asker: Asker) -> None:
        """The adapter took the last batch."""
        flow = self._flows.get(asker)
        if flow is not None:
            flow.acknowledged.set()

    def look_again(self, find: Find) -> None:
        """What the collections that are read follow from may be another now, while they stay the
        same. Those that are gone stay as they were known."""
        for flow in self._flows.values():
            found = find([one.global_id for one in flow.imports])
            if found is not None:
                flow.dataflow.description = replace(flow.dataflow.description, imports=found)
        if self._signal is not None:
            self._signal.set()

    async def serve(
        self, command: SubscribeCommand, imports: tuple[Import, ...], channel: Channel[Command]
    ) -> None:
        """Run the dataflow and send its changes until cancelled, or until all are told."""
        asker = (channel, command.request_id)
        as_of = Timestamp(command.as_of)
        hold = await until_done(
            "holding inputs of a subscription", lambda: self._collections.hold(imports, as_of)
        )
        try:
            flow = Flow(self._dataflow(command, imports), command, hold)
        except BaseException:
            hold.release()
            raise
        self._flows[asker] = flow
        try:
            while not flow.ended:
                updates = await self._next(flow)
                if updates is None:
                    continue
                encoded = await _encoded(flow.wanted(updates))
                flow.acknowledged.clear()
                await channel.send(BatchResponse(command.request_id, encoded, flow.frontier))
                await flow.acknowledged.wait()
        finally:
            del self._flows[asker]
            flow.close()
            self._setbacks.over(flow.dataflow.description.global_id)
            if flow.engine is None:
                # It was to be built again. What could not be dropped then may still be there.
                flow.engine = self._worker.engine
            await _forget(flow)

    def _dataflow(self, command: SubscribeCommand, imports: tuple[Import, ...]) -> RunningDataflow:
        relation = decode_relation(command.relation, by_signature)
        plan = delta_plan(relation)
        description = DataflowDescription(
            GlobalId(f"t{next(self._numbers)}"),
            ClusterId(""),
            imports,
            relation,
            SubscribeExport(desc_of(plan.types)),
            Timestamp(command.as_of),
        )
        return RunningDataflow(description, plan, None)

    async def _next(self, flow: Flow) -> Sequence[Update] | None:
        """What is due next; None: it has to be looked for again."""
        look = await self._news(flow)
        engine = self._worker.engine
        if engine is None:
            return None  # it was lost since the look
        dataflow_id = flow.dataflow.description.global_id
        try:
            if flow.engine is not engine:
                updates = await self._build(flow, engine)
            else:
                updates = await self._tick(flow, engine, look)
        except EngineLost:
            flow.engine = None
            return None
        except (*PASSING, *FAILING) as fault:
            # What is left of its state there may be half of a tick's.
            await _forget(flow)
            await self._setbacks.outwait(dataflow_id, fault)
            return None
        if updates is not None:
            self._setbacks.over(dataflow_id)
        return updates

    async def _news(self, flow: Flow) -> Look:
        flow.due = asyncio.get_running_loop().create_future()
        self._wake.set()
        if self._signal is not None:
            self._signal.set()
        try:
            return await flow.due
        finally:
            flow.due = None

    async def _build(self, flow: Flow, engine: Engine) -> Sequence[Update] | None:
        """State on this engine, at the beginning or, if it ran elsewhere, where it stands."""
        start = flow.hydrated_from
        await _forget(flow)
        flow.engine = engine
        dataflow, hydrator = flow.dataflow, self._worker.hydrator
        output = None
        if hydrator is not None:
            output = await hydrator.hydrate(dataflow, engine, start)
        if output is None:
            dataflow_id = dataflow.description.global_id
            inputs = await snapshot_inputs(self._collections, flow.imports, start)
            await engine.create(dataflow_id, dataflow.plan, index_key=None, as_of=start)
            output = await engine.tick(dataflow_id, inputs, start, step_forward(start))
        if flow.frontier > start:
            return None  # it was told when it ran elsewhere
        flow.frontier = step_forward(start)
        return output

    async def _tick(self, flow: Flow, engine: Engine, look: Look) -> Sequence[Update] | None:
        lower, upper = flow.frontier, flow.upper(look)
        updates: Sequence[Update] = ()
        if not flow.unchanged(look):
            upper = _stretch(flow.imports, look, lower, upper)
            try:
                inputs = await input_deltas(self._collections, flow.imports, lower, upper)
            except PASSING as fault:
                # Nothing was ticked: its state is as good as before.
                await self._setbacks.outwait(flow.dataflow.description.global_id, fault)
                return None
            if count_updates(inputs) or flow.is_due(upper):
                dataflow_id = flow.dataflow.description.global_id
                updates = await engine.tick(dataflow_id, inputs, lower, upper)
        flow.frontier = upper
        flow.move_hold()
        return updates

    async def run(self) -> None:
        """Look at the inputs when they move, for ever, and tell whom it concerns."""
        while True:
            self._wake.clear()
            waiting = [f for f in self._flows.values() if f.due is not None]
            if not waiting:
                await self._wake.wait()
                continue
            imports = list(dict.fromkeys(i for f in waiting for i in f.imports))
            with self._watching.watching(*imports) as signal:
                self._signal = signal
                try:
                    await self._look_on(imports, signal)
                finally:
                    self._signal = None

    async def _look_on(self, imports: Sequence[Import], signal: Signal) -> None:
        """For as long as those who wait read no more than these."""
        known = set(imports)
        while True:
            signal.clear()
            waiting = [f for f in self._flows.values() if f.due is not None]
            if not waiting or any(i not in known for f in waiting for i in f.imports):
                return
            look = await until_done(
                "reading inputs of subscriptions", lambda: self._collections.look(imports)
            )
            for flow in waiting:
                self._show(flow, look)
            await signal.wait(_POLL_S)

    def _show(self, flow: Flow, look: Look) -> None:
        """Wake the flow if there is something for it to do."""
        if flow.due is None or flow.due.done():
            return
        engine, upper = self._worker.engine, flow.upper(look)
        if engine is None:
            return
        if engine is not flow.engine:
            idle = upper <= flow.hydrated_from
        else:
            idle = upper <= flow.frontier or (flow.unchanged(look) and flow.passes(upper))
        if not idle:
            flow.due.set_result(look)


def _stretch(
    imports: Sequence[Import], look: Look, lower: Timestamp, upper: Timestamp
) -> Timestamp:
    """How far one tick goes on its way to `upper`: as fine as the shards' batches are."""
    for one in imports:
        rows = 0
        for batch in look.state(one).batches:
            if lower < batch.upper < upper:
                rows += batch.rows
                if rows >= TICK_ROWS:
                    upper = batch.upper
    return upper


async def _encoded(updates: list[Update]) -> bytes:
    if len(updates) > _THREAD_UPDATES:
        return await asyncio.to_thread(encode_inline, updates)
    return encode_inline(updates)


async def _forget(flow: Flow) -> None:
    """Drop what an engine keeps of it."""
    engine, flow.engine = flow.engine, None
    if engine is None:
        return
    try:
        await engine.drop(flow.dataflow.description.global_id)
    except (EngineLost, *FAILING):
        pass  # its state went with it, or is replaced when it is built again
