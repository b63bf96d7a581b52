"""One store call for many callers, where the store is a network away.

An answer may be shared only by those who asked before the call started. A reading that was already
under way may have looked before another process's write finished, which the later caller must see;
and a timestamp that was already being handed out may lie below one that another process got
meanwhile. So a caller never joins the call that runs; all who come meanwhile share the next.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from evertide.oracle.protocol import BlockOracle
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

T = TypeVar("T")


class BatchingOracle:
    """Readings and applied writes are shared; of write timestamps each caller gets its own."""

    def __init__(self, inner: BlockOracle) -> None:
        self._inner = inner
        self._reads = {timeline: _Rounds(self._reader(timeline)) for timeline in Timeline}
        self._writes = {timeline: _Rounds(self._allocator(timeline)) for timeline in Timeline}
        self._applies = {timeline: _Rounds(self._applier(timeline)) for timeline in Timeline}
        self._to_apply: dict[Timeline, Timestamp] = {}

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        read_ts, _ = await self._reads[timeline].join()
        return read_ts

    async def write_ts(self, timeline: Timeline) -> Timestamp:
        first, place = await self._writes[timeline].join()
        return Timestamp(first + place)

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:
        self._to_apply[timeline] = max(self._to_apply.get(timeline, MIN_TS), write_ts)
        await self._applies[timeline].join()

    def _reader(self, timeline: Timeline) -> Callable[[int], Awaitable[Timestamp]]:
        return lambda _: self._inner.read_ts(timeline)

    def _allocator(self, timeline: Timeline) -> Callable[[int], Awaitable[Timestamp]]:
        return lambda callers: self._inner.write_ts_block(timeline, callers)

    def _applier(self, timeline: Timeline) -> Callable[[int], Awaitable[None]]:
        # The largest wish of all who joined; a smaller one is covered by it.
        return lambda _: self._inner.apply_write(timeline, self._to_apply[timeline])


class _Rounds(Generic[T]):
    """Calls one after the other; each serves all who asked before it started."""

    def __init__(self, call: Callable[[int], Awaitable[T]]) -> None:
        self._call = call
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        # Those who wait for the next. Each has a future of its own: whoever gives up must not end
        # the call for the others.
        self._waiting: list[asyncio.Future[T]] = []

    async def join(self) -> tuple[T, int]:
        """The answer, and this caller's place among those who share it."""
        if self._next is None:
            self._next = asyncio.create_task(self._round(self._running))
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        place = len(self._waiting)
        self._waiting.append(answer)
        return await answer, place

    async def _round(self, before: "asyncio.Task[None] | None") -> None:
        waiting = self._waiting  # who comes while it waits is in there, too
        try:
            if before is not None and not before.done():
                await asyncio.wait([before])
            self._start_anew()
            told = await self._call(len(waiting))
        except asyncio.CancelledError:
            if self._waiting is waiting:
                self._start_anew()
            for answer in waiting:
                answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - not this task's to handle: the askers are told
            for answer in waiting:
                if not answer.done():
                    answer.set_exception(error)
        else:
            for answer in waiting:
                if not answer.done():
                    answer.set_result(told)

    def _start_anew(self) -> None:
        """Whoever comes from now on shares the next call."""
        self._waiting = []
        self._running, self._next = self._next, None
