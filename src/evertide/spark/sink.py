"""Output diffs to a shard."""

from collections.abc import Sequence

from evertide.dataflow.description import ShardExport
from evertide.persist.handle import Append, Appended, AppendOutcome
from evertide.persist.state import UpperMismatch
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update


class ShardSink:
    """What a materialized view has computed and its shard does not have yet.

    Replicas of one cluster compute the same definite collection, so whoever appends first is right:
    after losing, a sink drops what lies below the shard's upper and goes on from there.
    """

    def __init__(self, writer: GlobalId, export: ShardExport, upper: Timestamp) -> None:
        self._writer = writer
        self._export = export
        self._upper = upper
        self._staged: list[Update] = []
        self._staged_upper = upper
        self.stopped: str | None = None

    @property
    def upper(self) -> Timestamp:
        """The shard's upper as far as this sink knows."""
        return self._upper

    def stage(self, updates: Sequence[Update], upper: Timestamp) -> None:
        """Everything below `upper` is computed now; what the shard has already is dropped."""
        self._staged.extend(u for u in updates if u.ts >= self._upper)
        self._staged_upper = max(self._staged_upper, upper)

    def due(self) -> Append | None:
        """The append that brings the shard up to date; None if it is."""
        if self.stopped is not None or self._staged_upper <= self._upper:
            return None
        return Append(
            self._export.shard_id,
            self._export.desc,
            tuple(self._staged),
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
        self._staged = [u for u in self._staged if u.ts >= upper]
