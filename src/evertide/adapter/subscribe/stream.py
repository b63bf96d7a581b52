"""A running subscription, as the rows that its client takes."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

from evertide.adapter.subscribe.feed import Batch
from evertide.adapter.subscribe.rows import ChangeRows
from evertide.persist.faults import PersistFault
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


class OneRead:
    """A source whose reads are finished once they have begun. Implements Source.

    Who waits for a batch may be cancelled again and again, by a timeout shorter than a batch takes:
    whoever asks next waits for the same one.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._reading: asyncio.Task[Batch] | None = None

    async def next_batch(self) -> Batch:
        if self._reading is None:
            self._reading = asyncio.create_task(self._source.next_batch())
            self._reading.add_done_callback(_note_failure)
        reading = self._reading
        # A wait for what is there would still let others run, such as a timeout of no time.
        if not reading.done():
            await asyncio.wait([reading])
        if self._reading is None:
            return Batch((), EMPTY_FRONTIER)  # closed in the meantime
        self._reading = None
        return reading.result()

    def fail(self, failure: SqlError) -> None:
        self._source.fail(failure)

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        self._source.close()


def _note_failure(reading: "asyncio.Task[Batch]") -> None:
    """A read that nobody waits for any more may fail: that is no oversight to be warned of."""
    if not reading.cancelled():
        reading.exception()


class Subscription:
    """Implements adapter/client.py's RowStream over a source of changes."""

    def __init__(
        self, source: Source, told: ChangeRows, *, as_of: Timestamp, up_to: Timestamp | None
    ) -> None:
        self._source: Source = OneRead(source)
        self._told = told
        self._up_to = up_to
        # Rows at hand, then those still to be made of the batch that came last.
        self._piece: Sequence[Row] = ()
        self._rows: Iterator[Row] = told.progress(as_of)
        self._failure: SqlError | PersistFault | None = None
        self._ended = up_to is not None and as_of >= up_to
        self.on_close: Callable[[], None] | None = None

    @property
    def ready(self) -> bool:
        self._fill()
        return bool(self._piece)

    async def take(self, most: int | None) -> Sequence[Row] | None:
        while True:
            self._fill()
            if self._ended or self._failure is not None:
                self._release()  # the rows at hand need nothing of it
            if self._piece:
                end = len(self._piece) if most is None else most
                taken, self._piece = self._piece[:end], self._piece[end:]
                return taken
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return None
            await self._read()

    async def _read(self) -> None:
        try:
            batch = await self._source.next_batch()
        except (SqlError, PersistFault) as failure:
            self._failure = failure
            return
        if not self._ended:
            self._open(batch)

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
        self._release()

    def _release(self) -> None:
        """It reads no more. May be repeated."""
        self._source.close()
        if self.on_close is not None:
            self.on_close()
            self.on_close = None
