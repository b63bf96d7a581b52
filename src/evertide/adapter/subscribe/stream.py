"""A running subscription, as the rows that its client takes."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

from evertide.adapter.subscribe.feed import Batch
from evertide.adapter.subscribe.rows import ChangeRows
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

# Rows are made in pieces of this size, so that a large batch is never there twice.
_PIECE_ROWS: Final = 1_000


class Source(Protocol):
    """Where a subscription's changes come from."""

    async def next_batch(self) -> Batch:
        """The next changes; the last batch ends at the empty frontier. Cancelling loses nothing."""
        ...

    def fail(self, failure: SqlError) -> None:
        """Let whoever waits for the next batch get this instead."""
        ...

    def close(self) -> None:
        """Let go of what keeps its history readable. May be repeated."""
        ...


class Subscription:
    """Implements adapter/client.py's RowStream over a source of changes."""

    def __init__(
        self, source: Source, told: ChangeRows, *, as_of: Timestamp, up_to: Timestamp | None
    ) -> None:
        self._source = source
        self._told = told
        self._up_to = up_to
        # Rows at hand, then those still to be made of the batch that came last.
        self._piece: Sequence[Row] = ()
        self._rows: Iterator[Row] = told.progress(as_of)
        self._failure: SqlError | None = None
        self._ended = up_to is not None and as_of >= up_to
        self.on_close: Callable[[], None] | None = None

    @property
    def ready(self) -> bool:
        self._fill()
        return bool(self._piece)

    async def take(self, most: int | None) -> Sequence[Row] | None:
        while True:
            self._fill()
            if self._piece:
                end = len(self._piece) if most is None else most
                taken, self._piece = self._piece[:end], self._piece[end:]
                return taken
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return None
            self._open(await self._source.next_batch())

    def _fill(self) -> None:
        """Rows before an error are told before it."""
        if self._piece or self._failure is not None:
            return
        piece: list[Row] = []
        try:
            for row in islice(self._rows, _PIECE_ROWS):
                piece.append(row)
        except SqlError as error:
            self._failure = error
        self._piece = piece

    def _open(self, batch: Batch) -> None:
        upper, updates = batch.upper, batch.updates
        if self._up_to is not None and upper >= self._up_to:
            upper, updates = self._up_to, [u for u in updates if u.ts < self._up_to]
            self._ended = True
        self._ended = self._ended or upper == EMPTY_FRONTIER
        self._rows = self._told.rows(Batch(updates, upper))

    def fail(self, failure: SqlError) -> None:
        """End it with this error, now if it waits."""
        self._source.fail(failure)

    def close(self) -> None:
        self._ended = True
        self._piece, self._rows = (), iter(())
        self._source.close()
        if self.on_close is not None:
            self.on_close()
            self.on_close = None
