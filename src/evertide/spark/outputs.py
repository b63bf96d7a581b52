"""Outputs on their way from dataflows to shards: all that are due in one commit.

Output that the store could not take stays staged and is tried again after a while.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from evertide.dataflow.description import DataflowDescription, ShardExport
from evertide.persist.faults import StoreFailing, StoreFull
from evertide.persist.handle import Append, Appended, AppendOutcome, Refused
from evertide.persist.state import ShardChange, ShardState
from evertide.persist.trouble import until_done
from evertide.spark.running import RunningDataflow
from evertide.spark.setbacks import Setbacks
from evertide.spark.sink import ShardSink
from evertide.spark.source import Look
from evertide.spark.takeover.moves import Takeovers
from evertide.spark.takeover.phases import Done
from evertide.spark.takeover.sink import TakeoverSink
from evertide.vocab.ids import ShardId

# How long the upper of a view whose inputs stand still may trail.
STILL_SECONDS: Final = 0.9


class Shards(Protocol):
    """What is asked of persist."""

    async def state(self, shard_id: ShardId) -> ShardState: ...

    async def append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]: ...

    async def append_all(
        self, appends: Sequence[Append], *, also: Sequence[ShardChange] = ()
    ) -> Appended | Refused: ...


@dataclass(frozen=True, slots=True)
class Due:
    """Output that a dataflow owes to its shard."""

    dataflow: RunningDataflow
    append: Append


class Outputs:
    """Of one worker's dataflows."""

    def __init__(self, shards: Shards, setbacks: Setbacks, takeovers: Takeovers) -> None:
        self._shards = shards
        self._setbacks = setbacks
        self._takeovers = takeovers
        # When uppers that moved without any change are appended next.
        self._still_due = 0.0

    async def sink(self, description: DataflowDescription) -> ShardSink | TakeoverSink | None:
        """Where a new dataflow's output goes, from where its shard is; None for an index.

        One that takes the shard over may have done so before, in an earlier life.
        """
        export = description.export
        if not isinstance(export, ShardExport):
            return None
        state = await until_done("creating a dataflow", lambda: self._shards.state(export.shard_id))
        own = state.writer == description.global_id and state.pending is None
        if export.takeover is not None and not own:
            return TakeoverSink(description.global_id, export, state.upper)
        return ShardSink(description.global_id, export, state.upper)

    async def take_over(self, dataflow: RunningDataflow, look: Look) -> None:
        """Bring a dataflow that is to take a shard over nearer to that."""
        assert isinstance(dataflow.sink, TakeoverSink)
        await self._takeovers.step(dataflow, look, dataflow.sink)

    async def append_due(self, dataflows: Collection[RunningDataflow]) -> set[ShardId]:
        """Append; what lost the race is dropped and tried again from there. Gives what moved.

        Uppers of views whose inputs stand still wait for the next such commit a while: readers
        know that these views stand still, too.
        """
        still_too = time.monotonic() >= self._still_due
        if still_too:
            self._still_due = time.monotonic() + STILL_SECONDS
        moved: set[ShardId] = set()
        for _ in range(100):
            due = self._due(dataflows, still_too=still_too)
            if not due:
                break
            moved |= await self._append(due) or await self._append_apart(due)
        return moved

    def _due(self, dataflows: Collection[RunningDataflow], *, still_too: bool) -> list[Due]:
        """What is owed to each shard. Two versions of a view may run here: that which has just
        taken the shard comes first, and the other learns afterwards that it is barred."""
        due: dict[ShardId, Due] = {}
        for dataflow in dataflows:
            if dataflow.sink is None or self._setbacks.waits(dataflow):
                continue
            append = dataflow.sink.due(still_too=still_too)
            if append is None:
                continue
            if append.shard_id not in due or append.completes_pending:
                due[append.shard_id] = Due(dataflow, append)
        return list(due.values())

    async def _append(self, due: Sequence[Due]) -> set[ShardId]:
        """One commit; nothing moved: the store could not take it, and all of them wait."""
        try:
            outcomes = await self._shards.append_each([one.append for one in due])
        except (StoreFull, StoreFailing) as fault:
            for one in due:
                self._setbacks.met(one.dataflow, fault)
            return set()
        for one, outcome in zip(due, outcomes, strict=True):
            self._settle(one.dataflow, one.append, outcome)
        return {one.append.shard_id for one in due}

    async def _append_apart(self, due: Sequence[Due]) -> set[ShardId]:
        """One output that does not fit must not keep the others back: find out which it is.

        Those that only move an upper go first. If even they fail, no other will do better.
        """
        if len(due) == 1:
            return set()
        moves = [one for one in due if not one.append.updates]
        moved = await self._append(moves) if moves else set()
        if moves and not moved:
            return set()
        for one in due:
            if one.append.updates:
                moved |= await self._append([one])
        return moved

    def _settle(self, dataflow: RunningDataflow, append: Append, outcome: AppendOutcome) -> None:
        assert dataflow.sink is not None
        dataflow.sink.settle(append, outcome)
        self._setbacks.over(dataflow)
        if isinstance(dataflow.sink, TakeoverSink) and isinstance(dataflow.sink.phase, Done):
            dataflow.sink = dataflow.sink.ordinary(dataflow.sink.phase.upper)
        if dataflow.sink.stopped is not None:
            dataflow.stop(dataflow.sink.stopped)
