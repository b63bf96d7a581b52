"""One store call for many callers, where the store is a network away.

A reading may be shared only by those who asked before it started: one that was already under way
may have looked before another process's write finished, which the later caller must see. So a
caller never joins the call that runs; all who come meanwhile share the next.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from evertide.oracle.protocol import TimestampOracle
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

T = TypeVar("T")


class BatchingOracle:
    """Shares readings and applied writes; each write_ts is its caller's own and passes through."""

    def __init__(self, inner: TimestampOracle) -> None:
        self._inner = inner
        self._reads = {timeline: _Rounds(self._reader(timeline)) for timeline in Timeline}
        self._applies = {timeline: _Rounds(self._applier(timeline)) for timeline in Timeline}
        self._to_apply: dict[Timeline, Timestamp] = {}

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        return await self._reads[timeline].join()

    async def write_ts(self, timeline: Timeline) -> Timestamp:
        return await self._inner.write_ts(timeline)

    async def apply_write(self, timeline: Timeline, write_ts: Timestamp) -> None:
        self._to_apply[timeline] = max(self._to_apply.get(timeline, MIN_TS), write_ts)
        await self._applies[timeline].join()

    def _reader(self, timeline: Timeline) -> Callable[[], Awaitable[Timestamp]]:
        return lambda: self._inner.read_ts(timeline)

    def _applier(self, timeline: Timeline) -> Callable[[], Awaitable[None]]:
        # The largest wish of all who joined; a smaller one is covered by it.
        return lambda: self._inner.apply_write(timeline, self._to_apply[timeline])


class _Rounds(Generic[T]):
    """Calls one after the other; each serves all who asked before it started."""

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def join(self) -> T:
        if self._next is None:
            self._next = asyncio.create_task(self._round(self._running))
        # A caller that gives up must not end the call for the others.
        return await asyncio.shield(self._next)

    async def _round(self, before: "asyncio.Task[T] | None") -> T:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._running, self._next = self._next, None
        return await self._call()
