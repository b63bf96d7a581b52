"""Output diffs to a shard."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evertide.dataflow.description import ShardExport
from evertide.persist.coding.batch import UpdateBatch, concat_batches, to_batch
from evertide.persist.handle import Append, Appended, AppendOutcome
from evertide.persist.state import UpperMismatch
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update

# Readers ask for what was computed a moment ago; more than that is in the shard.
_RECENT: Final = 8
_RECENT_ROWS: Final = 20_000
_RECENT_BYTES: Final = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class _Computed:
    """A tick's output: all changes at lower <= ts < upper."""

    lower: Timestamp
    upper: Timestamp
    updates: UpdateBatch


class _Recent:
    """The newest output, without a gap, for readers who cannot wait for the shard.

    None from below where the sink began: another version of the view may have written that.
    """

    def __init__(self, began: Timestamp) -> None:
        self._began = began
        self._kept: deque[_Computed] = deque(maxlen=_RECENT)

    def between(self, lower: Timestamp, upper: Timestamp) -> list[UpdateBatch] | None:
        """All at lower <= ts < upper; None if they are not at hand."""
        kept = self._kept
        if not kept or kept[0].lower > lower or kept[-1].upper < upper:
            return None
        return [
            one.updates.between(lower, upper)
            for one in kept
            if one.upper > lower and one.lower < upper
        ]

    def note(self, batch: UpdateBatch, lower: Timestamp | None, upper: Timestamp) -> None:
        """A tick's output, or, without `lower`, a hydration's, which is not kept."""
        kept = self._kept
        if kept and kept[-1].upper != lower:
            kept.clear()
        small = len(batch) <= _RECENT_ROWS and (
            not len(batch) or len(batch.payload) < _RECENT_BYTES
        )
        if lower is None or lower < self._began or not small:
            kept.clear()
        elif kept and not len(batch):
            last = kept.pop()
            kept.append(_Computed(last.lower, upper, last.updates))
        else:
            kept.append(_Computed(lower, upper, batch))
            while sum(len(one.updates.payload) for one in kept if len(one.updates)) > (
                _RECENT_BYTES
            ):
                kept.popleft()


class ShardSink:
    """What a materialized view has computed and its shard does not have yet.

    Replicas of one cluster compute the same definite collection, so whoever appends first is right:
    after losing, a sink drops what lies below the shard's upper and goes on from there.
    """

    def __init__(self, writer: GlobalId, export: ShardExport, upper: Timestamp) -> None:
        self._writer = writer
        self._export = export
        self._upper = upper
        self._staged: list[UpdateBatch] = []
        self._staged_upper = upper
        # Whether readers may be waiting for what is staged: some input changed.
        self._awaited = False
        self._recent = _Recent(upper)
        self.stopped: str | None = None

    @property
    def upper(self) -> Timestamp:
        """The shard's upper as far as this sink knows."""
        return self._upper

    @property
    def awaited(self) -> bool:
        """Whether readers may wait for what the shard lacks: some input changed."""
        return self.stopped is None and self._awaited and self._staged_upper > self._upper

    def stage(
        self,
        updates: Sequence[Update],
        upper: Timestamp,
        *,
        lower: Timestamp | None = None,
        still: bool = False,
    ) -> None:
        """Everything below `upper` is computed now; what the shard has already is dropped.

        `lower`: these are all changes from there on, as of a tick; those of a hydration are not.
        `still`: no input changed, so nobody waits for it.
        """
        self._awaited = self._awaited or not still or upper == EMPTY_FRONTIER
        batch = to_batch(self._export.desc, updates)
        self._recent.note(batch, lower, upper)
        self._stage_from(self._upper, [batch])
        self._staged_upper = max(self._staged_upper, upper)

    def changes(self, lower: Timestamp, upper: Timestamp) -> UpdateBatch | None:
        """Those at lower <= ts < upper, which are computed; None if they are not at hand.

        They are right whether or not the shard has them yet: whoever appends, appends the same.
        """
        found = None if self.stopped is not None else self._recent.between(lower, upper)
        return None if found is None else concat_batches(self._export.desc, found)

    def due(self, *, still_too: bool = True) -> Append | None:
        """The append that brings the shard up to date; None if it is, or nobody waits for it."""
        if self.stopped is not None or self._staged_upper <= self._upper:
            return None
        if not (self._awaited or still_too):
            return None
        return Append(
            self._export.shard_id,
            self._export.desc,
            concat_batches(self._export.desc, self._staged),
            self._upper,
            self._staged_upper,
            self._writer,
        )

    def settle(self, append: Append, outcome: AppendOutcome) -> None:
        """Take note of what became of the append that was due."""
        match outcome:
            case Appended():
                self._advance(append.upper)
            case UpperMismatch(actual=actual):
                self._advance(actual)
            case _:
                # Another version owns the shard, or it is gone: nothing of ours may be written.
                self.stopped = type(outcome).__name__

    def _advance(self, upper: Timestamp) -> None:
        self._upper = upper
        staged, self._staged = self._staged, []
        self._stage_from(upper, staged)
        self._awaited = bool(self._staged)

    def _stage_from(self, lower: Timestamp, batches: Sequence[UpdateBatch]) -> None:
        """Keep what lies at `lower` and beyond."""
        left = [batch.between(lower, EMPTY_FRONTIER) for batch in batches]
        self._staged += [batch for batch in left if len(batch)]
