"""What a session has of its own beside its variables: temporary objects, and its place in time."""

from dataclasses import dataclass, field

from evertide.adapter.savepoint import Savepoint
from evertide.adapter.temporary.objects import Temporary
from evertide.vocab.timestamp import MIN_TS, Timestamp


@dataclass(slots=True)
class Own:
    """Belongs to one session."""

    temporary: Temporary = field(default_factory=Temporary)
    # Its reads were not after this, but for those of writes of which it only knows that there were.
    _seen: Timestamp = MIN_TS
    _has_written: bool = False
    # Of the transaction that goes on, in the order they were set.
    savepoints: list[Savepoint] = field(default_factory=list)

    def note_read(self, as_of: Timestamp) -> None:
        """It has seen what there was at this time."""
        self._seen = max(self._seen, as_of)

    def note_write(self) -> None:
        """It has written something, before now."""
        self._has_written = True

    def seen_at(self, read_ts: Timestamp) -> Timestamp:
        """Before which a read would show it less than it knows of; `read_ts` is the oracle's."""
        if self._has_written:
            self._seen, self._has_written = max(self._seen, read_ts), False
        return self._seen
