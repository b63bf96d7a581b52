"""The rows of a query over much data, which lie at the replica that computed them.

They come in batches, each as soon as the one before was taken into hand. So this process holds the
rows that a client is being sent, the batch that they are made from, and the one that comes next,
however many there are and however slowly the client reads. A result is told to its end or ends in
an error: who is told less than all must not believe that it was all.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from evertide.adapter.client import RowStream
from evertide.adapter.reading.result_rows import Batch, Finisher, RowsAtHand
from evertide.vocab.datum import Row
from evertide.vocab.errors import ObjectNotInPrerequisiteState, SqlError

# More bytes than this are decoded on a thread.
_THREAD_BYTES: Final = 100_000


class Batches(Protocol):
    """A result where it lies: controller/compute.py's RunningSelect."""

    async def next_batch(self) -> bytes | None:
        """The next one, encoded; None: there are no more.

        Raises what keeps it from coming, however often it is asked. Cancelling loses none.
        """
        ...

    def close(self) -> None:
        """Nobody wants the rest. May be repeated."""
        ...


class ResultStream:
    """Implements adapter/client.py's RowStream."""

    def __init__(self, batches: Batches, finisher: Finisher, weight: int = 0) -> None:
        """`weight`: about how many bytes its rows take together."""
        self.weight = weight
        self._batches = batches
        self._finisher = finisher
        self._at_hand: RowsAtHand | None = None
        self._decoding: asyncio.Task[Batch] | None = None
        # There is nothing more to come: all has, or this keeps the rest from coming.
        self._ended = False
        self._failure: SqlError | None = None
        if finisher.is_over:
            self._end()

    async def take(self, most: int | None) -> Sequence[Row] | None:
        while (at_hand := self._at_hand) is None or not at_hand:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return None
            await self._open_next()
        return at_hand.take(most)

    @property
    def ready(self) -> bool:
        return bool(self._at_hand)

    async def _open_next(self) -> None:
        """Takes the next batch into hand, if there is one."""
        try:
            batch = await self._next_batch()
        except SqlError as failure:
            self._fail(failure)
            return
        if batch is None:
            self._end()
            return
        self._at_hand = self._finisher.open(batch)
        if self._finisher.is_over:
            self._end()

    async def _next_batch(self) -> Batch | None:
        if self._decoding is None:
            payload = await self._batches.next_batch()
            if payload is None:
                return None
            if len(payload) <= _THREAD_BYTES:
                return self._finisher.decode(payload)
            work = asyncio.to_thread(self._finisher.decode, payload)
            self._decoding = asyncio.create_task(work)
            self._decoding.add_done_callback(_note_failure)
        # Whoever waits may be cancelled; the next one waits for the same.
        decoding = self._decoding
        await asyncio.wait([decoding])
        self._decoding = None
        return decoding.result()

    def _end(self) -> None:
        self._ended = True
        self._batches.close()

    def _fail(self, failure: SqlError) -> None:
        self._failure = failure
        self._batches.close()

    def close(self) -> None:
        if self._failure is None and (self._at_hand or not self._ended):
            self._fail(
                ObjectNotInPrerequisiteState(
                    "the rest of the query's rows was given up", hint="Run the query again."
                )
            )
        self._at_hand = None
        if self._decoding is not None:
            self._decoding.cancel()
            self._decoding = None


def _note_failure(decoding: "asyncio.Task[Batch]") -> None:
    """Nobody may wait for it any more: that is no oversight to be warned of."""
    if not decoding.cancelled():
        decoding.exception()


async def drain(rows: RowStream) -> list[Row]:
    """All rows of a stream, for who cannot do with some at a time."""
    found: list[Row] = []
    try:
        while (some := await rows.take(None)) is not None:
            found += some
            await asyncio.sleep(0)  # rows at hand are taken without a wait
    finally:
        rows.close()
    return found
