"""Changes of one shard within one process go one after the other, in the order they came.

Between processes the store decides who was first. Within one, two that keep trying at the same time
may lose to each other in the same way each time: a merge would never get through beside a writer
that does not pause.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from evertide.vocab.ids import ShardId

_Waiting: TypeAlias = "deque[asyncio.Future[None]]"


class Turns:
    """For one event loop. Nobody may wait for a turn while having one."""

    def __init__(self) -> None:
        # By the shards that somebody has a turn with: those who wait for the next.
        self._taken: dict[ShardId, _Waiting] = {}

    def take(self, shard_ids: Iterable[ShardId]) -> "_Turn":
        """Wait for a turn with all of these shards; always in one order, so never in a circle."""
        return _Turn(self._taken, sorted(shard_ids))


class _Turn:
    """Lasts as long as its context does. Costs next to nothing where nobody else wants one."""

    __slots__ = ("_has", "_taken", "_wants")

    def __init__(self, taken: dict[ShardId, _Waiting], wants: list[ShardId]) -> None:
        self._taken = taken
        self._wants = wants
        self._has: list[ShardId] = []

    async def __aenter__(self) -> None:
        try:
            for shard_id in self._wants:
                waiting = self._taken.get(shard_id)
                if waiting is None:
                    self._taken[shard_id] = deque()
                else:
                    await self._queue_up(shard_id, waiting)
                self._has.append(shard_id)
        except BaseException:
            self._end()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._end()

    async def _queue_up(self, shard_id: ShardId, waiting: _Waiting) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._has.append(shard_id)  # it came in the same moment, and is to be passed on
            raise

    def _end(self) -> None:
        for shard_id in self._has:
            waiting = self._taken[shard_id]
            while waiting and waiting[0].done():
                waiting.popleft()  # gave up
            if waiting:
                waiting.popleft().set_result(None)
            else:
                del self._taken[shard_id]
