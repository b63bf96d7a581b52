"""Carries takeovers through their phases, one worker round at a time.

Each move looks at durable state first, so that any replica of the new version can go on where
another one stopped.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

import structlog

from evertide.dataflow.description import Import, ShardExport, Takeover
from evertide.oracle.protocol import TimestampOracle
from evertide.persist.append import Append, Appended
from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.persist.leases import ReadHold
from evertide.persist.machine import Refused
from evertide.persist.state import ShardChange
from evertide.spark.running import RunningDataflow
from evertide.spark.source import Collections, Look
from evertide.spark.takeover.choice import Asked, FirstChanges, questions, stands_until, unsettled
from evertide.spark.takeover.difference import Difference, compare
from evertide.spark.takeover.phases import (
    Frozen,
    Staged,
    Waiting,
    choose,
    freeze,
    keep_waiting,
    seal,
)
from evertide.spark.takeover.sink import Comparison, TakeoverSink
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timeline, Timestamp, step_back

# More updates than this are added up in a thread.
_THREAD_ROWS: Final = 5_000

log = structlog.get_logger()


class Freezes(Protocol):
    """What is asked of persist."""

    async def append_all(
        self, appends: Sequence[Append], *, also: Sequence[ShardChange] = ()
    ) -> Appended | Refused: ...


def looked_at(dataflow: RunningDataflow) -> tuple[Import, ...]:
    """What a round must look at for this dataflow: its inputs, and the view it is to take over."""
    export = dataflow.description.export
    takeover = export.takeover if isinstance(export, ShardExport) else None
    imports = dataflow.description.imports
    return imports if takeover is None else (*imports, takeover.old)


class Takeovers:
    """Of one worker's dataflows."""

    def __init__(
        self,
        freezes: Freezes,
        collections: Collections,
        oracle: TimestampOracle | None,
        wake: Callable[[], None],
    ) -> None:
        """`wake` starts another round; without an oracle nothing is taken over."""
        self._freezes = freezes
        self._collections = collections
        self._oracle = oracle
        self._wake = wake

    async def step(self, dataflow: RunningDataflow, look: Look, sink: TakeoverSink) -> None:
        """Go as far as can be gone now; the sink of one that is done is replaced."""
        export = dataflow.description.export
        assert isinstance(export, ShardExport)
        if export.takeover is None:
            # The catalog says that it is over, so another replica has brought the contents over.
            own = Import(dataflow.description.global_id, export.shard_id, export.desc, False)
            state = (await self._collections.look([own])).state(own)
        else:
            state = look.state(export.takeover.old)
        sink.upper = state.upper
        if state.writer == sink.writer and state.pending is None:
            dataflow.sink = sink.ordinary(state.upper)
            return
        if export.takeover is None:
            return
        await self._compare(dataflow, sink, export.takeover.old, export.desc)
        if export.takeover.may_write and self._oracle is not None:
            await self._move(dataflow, sink, export.takeover, look, self._oracle)
            await self._compare(dataflow, sink, export.takeover.old, export.desc)

    async def _move(
        self,
        dataflow: RunningDataflow,
        sink: TakeoverSink,
        takeover: Takeover,
        look: Look,
        oracle: TimestampOracle,
    ) -> None:
        if isinstance(sink.phase, Staged):
            covers = await oracle.read_ts(Timeline.EPOCH_MS)
            sink.phase = Waiting(covers, takeover.forward_time)
        if isinstance(sink.phase, Waiting):
            await self._freeze(dataflow, sink, sink.phase, takeover, look)
        if isinstance(sink.phase, Frozen):
            await self._choose(dataflow, sink, sink.phase, takeover)

    async def _freeze(
        self,
        dataflow: RunningDataflow,
        sink: TakeoverSink,
        waiting: Waiting,
        takeover: Takeover,
        look: Look,
    ) -> None:
        """Bar the old version, if it and the new one have got far enough."""
        old, state = takeover.old, look.state(takeover.old)
        assert old.derived is not None, "a view follows from others"
        if state.writer != sink.writer:
            old_known, as_of = look.upper(old), dataflow.description.as_of
            if state.writer != old.derived.writer or state.pending is not None:
                return
            if old_known == EMPTY_FRONTIER:
                log.warning("view is complete and keeps what it holds", object_id=sink.writer)
                change = seal(old.shard_id, old.derived.writer, sink.writer)
                await self._freezes.append_all([], also=[change])
                self._wake()
                return
            if unsettled(old, look) is not None:
                return  # nothing could be chosen, and readers would wait until it can
            if sink.comparison is None:
                return
            frontier, now_s = dataflow.frontier, time.monotonic()
            longer = keep_waiting(
                waiting, old_known=old_known, own_frontier=frontier, as_of=as_of, now_s=now_s
            )
            if longer is not None:
                sink.phase = longer
                return
            known = min(old_known, frontier)
            change = freeze(old.shard_id, old.derived.writer, sink.writer, known)
            await self._freezes.append_all([], also=[change])
            state = (await self._collections.look([old])).state(old)
        if state.writer == sink.writer and state.pending is not None:
            sink.upper = state.upper
            sink.phase = Frozen(state.pending, waiting.covers, waiting.forward_time)

    async def _choose(
        self, dataflow: RunningDataflow, sink: TakeoverSink, frozen: Frozen, takeover: Takeover
    ) -> None:
        """From what is known after the shard was frozen: whoever concluded more did so before."""
        look = await self._collections.look([takeover.old])
        if unsettled(takeover.old, look) is not None:
            return
        asked = questions(takeover.old, look, frozen.at)
        changes: FirstChanges = {one.key: await self._first_change(one, look) for one in asked}
        until = stands_until(takeover.old, look, frozen.at, changes)
        sink.phase = choose(frozen, stands_until=until, as_of=dataflow.description.as_of)
        log.info(
            "view changes hands",
            object_id=sink.writer,
            frozen_at=sink.phase.frozen_at,
            begins=sink.phase.begins,
        )

    async def _first_change(self, asked: Asked, look: Look) -> Timestamp | None:
        collection = asked.collection
        upper = look.upper(collection)
        if not collection.is_table:
            upper = look.state(collection).upper
        if upper <= asked.from_ts:
            return None
        found = await self._collections.columns.updates(collection, asked.from_ts, upper)
        return found.span[0] if len(found) else None

    async def _compare(
        self, dataflow: RunningDataflow, sink: TakeoverSink, old: Import, desc: RelationDesc
    ) -> None:
        """Bring the difference to where both sides are known."""
        goal = sink.goal(dataflow.frontier)
        if goal is None:
            return
        padded = replace(old, desc=desc)
        if sink.comparison is None:
            await self._compare_first(dataflow, sink, padded, goal)
            goal = sink.goal(dataflow.frontier)
        if sink.comparison is None or goal is None:
            return
        compared, (old_below, new_below) = sink.comparison, goal
        changed: UpdateBatch | None = None
        if old_below > compared.old_below:
            changed = await self._collections.columns.updates(padded, compared.old_below, old_below)
        if new_below > compared.new_below:
            for batch in sink.output.between(compared.new_below, new_below):
                await _add(compared.difference, batch, 1)
            compared.new_below = new_below
            sink.taken_up()
        if changed is not None:
            await _add(compared.difference, changed, -1)
            compared.old_below = old_below
            compared.hold.move(step_back(old_below))

    async def _compare_first(
        self,
        dataflow: RunningDataflow,
        sink: TakeoverSink,
        old: Import,
        goal: tuple[Timestamp, Timestamp],
    ) -> None:
        """All contents of both sides, in the background: other dataflows go on meanwhile."""
        if sink.comparing is None:
            assert old.derived is not None, "a view follows from others"
            first = max(step_back(goal[0]), old.derived.as_of)
            hold = await self._collections.hold([old], first)
            if dataflow.stopped is not None:
                hold.release()
                return
            new = sink.output.between(MIN_TS, goal[1])
            sink.comparing = asyncio.create_task(self._compared(old, goal, new, hold))
            sink.comparing.add_done_callback(lambda _: self._wake())
        if sink.comparing.done():
            task, sink.comparing = sink.comparing, None
            sink.comparison = task.result()
            sink.taken_up()

    async def _compared(
        self,
        old: Import,
        goal: tuple[Timestamp, Timestamp],
        new: list[UpdateBatch],
        hold: ReadHold,
    ) -> Comparison:
        assert old.derived is not None, "a view follows from others"
        try:
            if goal[0] > old.derived.as_of:
                held = await self._collections.columns.snapshot(old, step_back(goal[0]))
            else:
                held = to_batch(old.desc, ())  # it has never been computed
            found = await asyncio.to_thread(compare, old.desc, new, held)
        except BaseException:
            hold.release()
            raise
        return Comparison(found, *goal, hold)


async def _add(difference: Difference, batch: UpdateBatch, sign: int) -> None:
    if len(batch) > _THREAD_ROWS:
        await asyncio.to_thread(difference.add, batch, sign)
    else:
        difference.add(batch, sign)
