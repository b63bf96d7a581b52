"""Where the output of a staged definition goes: into a comparison, until the shard is its own."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evertide.dataflow.description import ShardExport
from evertide.persist.coding.batch import UpdateBatch, concat_batches, to_batch
from evertide.persist.handle import Append, Appended, AppendOutcome
from evertide.persist.leases import ReadHold
from evertide.persist.state import UpperMismatch
from evertide.spark.sink import ShardSink
from evertide.spark.takeover.difference import Difference
from evertide.spark.takeover.phases import Chosen, Done, Frozen, Phase, Staged, Waiting
from evertide.vocab.errors import DataError, encode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp, step_back, step_forward
from evertide.vocab.update import Update

# What a replacement may have computed beyond what the view has reached. Then it waits for the view.
MOST_AHEAD_ROWS: Final = 200_000

MASKED: Final = encode_error(
    DataError("55000", "masked interval: the view was replaced while it was behind")
)


class NewOutput:
    """What a staged definition has computed and is still needed."""

    def __init__(self) -> None:
        self._batches: list[UpdateBatch] = []
        # Where the output begins; None: it is not hydrated.
        self.start: Timestamp | None = None
        self.upper = MIN_TS
        self.ahead_rows = 0

    def add(self, batch: UpdateBatch, upper: Timestamp, *, first: bool) -> None:
        """A tick's output, or all contents at where the output begins."""
        if first and self.start is None:
            self.start = step_back(upper)
        elif not first:
            self.ahead_rows += len(batch)
        if len(batch):
            self._batches.append(batch)
        self.upper = max(self.upper, upper)

    def between(self, lower: Timestamp, upper: Timestamp) -> list[UpdateBatch]:
        """Updates at lower <= ts < upper."""
        return [part for batch in self._batches if len(part := batch.between(lower, upper))]

    def drop(self, below: Timestamp) -> None:
        """Those below a timestamp are needed no more."""
        left = [batch.between(below, EMPTY_FRONTIER) for batch in self._batches]
        self._batches = [batch for batch in left if len(batch)]
        self.ahead_rows = sum(map(len, self._batches))


@dataclass(slots=True)
class Comparison:
    """New output below `new_below` less the shard's updates below `old_below`."""

    difference: Difference
    old_below: Timestamp
    new_below: Timestamp
    # Keeps the shard's changes readable from `old_below` on.
    hold: ReadHold


class TakeoverSink:
    """Of one staged definition in one replica. Writes one append at most: that which brings the
    new contents over. From then on an ordinary sink takes its place."""

    def __init__(self, writer: GlobalId, export: ShardExport, upper: Timestamp) -> None:
        self.writer = writer
        self._export = export
        # The shard's, which its present owner moves.
        self.upper = upper
        self.output = NewOutput()
        self.comparison: Comparison | None = None
        # The first comparison, of all there is, is made in the background.
        self.comparing: asyncio.Task[Comparison] | None = None
        self.phase: Phase = Staged()
        self.stopped: str | None = None

    @property
    def awaited(self) -> bool:
        """Nobody waits for what is staged: the shard is another version's."""
        return False

    @property
    def ahead(self) -> bool:
        """Whether so much is computed beyond what the view has reached that it must wait.

        Not where the view is waited for no longer.
        """
        if self.output.ahead_rows <= MOST_AHEAD_ROWS:
            return False
        phase = self.phase
        return isinstance(phase, Staged) or (isinstance(phase, Waiting) and not phase.forward_time)

    def stage(
        self,
        updates: Sequence[Update],
        upper: Timestamp,
        *,
        lower: Timestamp | None = None,
        still: bool = False,  # noqa: ARG002 - as other sinks are told
    ) -> None:
        """Everything below `upper` is computed now."""
        batch = to_batch(self._export.desc, updates)
        self.output.add(batch, upper, first=lower is None)

    def changes(self, lower: Timestamp, upper: Timestamp) -> UpdateBatch | None:  # noqa: ARG002
        """Nothing that a reader of the view may be told."""
        return None

    def goal(self, frontier: Timestamp) -> tuple[Timestamp, Timestamp] | None:
        """How far the old side and the new one are to be compared; None: that is not known yet."""
        if self.output.start is None:
            return None
        if isinstance(self.phase, Chosen):
            begins = self.phase.begins
            return (self.phase.frozen_at, step_forward(begins)) if frontier > begins else None
        both = min(self.upper, frontier)
        if both > self.output.start:
            return both, both
        # The old version need not get to where the new one begins if time may jump over that.
        jumps = isinstance(self.phase, Waiting | Frozen) and self.phase.forward_time
        return (self.upper, step_forward(self.output.start)) if jumps else None

    def taken_up(self) -> None:
        """Drop output that the comparison has and that nobody will ask for again.

        What lies beyond the shard's upper may have to be written yet: another replica may be first
        to bring the contents over, and begin earlier than this one would.
        """
        assert self.comparison is not None
        self.output.drop(min(self.comparison.new_below, self.upper))

    def due(self, *, still_too: bool = True) -> Append | None:  # noqa: ARG002
        """The append that brings the new contents over, once they are known where they begin."""
        chosen, compared = self.phase, self.comparison
        if self.stopped is not None or not isinstance(chosen, Chosen):
            return None
        if chosen.begins == EMPTY_FRONTIER:
            return self._append(chosen.frozen_at, EMPTY_FRONTIER, [])
        upper = step_forward(chosen.begins)
        if compared is None:
            return None
        if (compared.old_below, compared.new_below) != (chosen.frozen_at, upper):
            return None
        updates = compared.difference.updates(chosen.begins)
        if chosen.masked_from < chosen.begins:
            updates.append(Update((), chosen.masked_from, 1, MASKED))
            updates.append(Update((), chosen.begins, -1, MASKED))
        return self._append(chosen.frozen_at, upper, updates)

    def _append(self, lower: Timestamp, upper: Timestamp, updates: Sequence[Update]) -> Append:
        export = self._export
        return Append(
            export.shard_id,
            export.desc,
            updates,
            lower,
            upper,
            self.writer,
            completes_pending=True,
        )

    def settle(self, append: Append, outcome: AppendOutcome) -> None:
        """Take note of what became of it: whoever was first, the contents are brought over."""
        match outcome:
            case Appended():
                self.phase = Done(append.upper)
            case UpperMismatch(actual=actual):
                self.phase = Done(actual)
            case _:
                self.stopped = type(outcome).__name__

    def ordinary(self, upper: Timestamp) -> ShardSink:
        """The sink that goes on from here, where the shard is: with all that is still to write.

        It tells readers nothing of what was computed before (and `ShardSink.changes` nothing from
        below where the sink began): they may know the shard only from before it changed hands
        (`noted_upper` in adapter/reading/ahead.py), and would add changes of the new definition to
        contents of the old one.
        """
        self.close()
        sink = ShardSink(self.writer, self._export, upper)
        if self.output.start is not None:
            left = self.output.between(upper, EMPTY_FRONTIER)
            sink.stage(concat_batches(self._export.desc, left), self.output.upper)
        return sink

    def close(self) -> None:
        """Let go of the shard's history."""
        if self.comparing is not None:
            self.comparing.cancel()
            self.comparing = None
        if self.comparison is not None:
            self.comparison.hold.release()
            self.comparison = None
