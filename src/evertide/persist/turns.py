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

_Waiting: TypeAlias = deque[asyncio.Future[None]]


class Turns:
    """For one event loop. Nobody may wait for a turn while having one."""

    def __init__(self) -> None:
        # By the shards that somebody has a turn with: those who wait for the next, if any.
        self._taken: dict[ShardId, _Waiting | None] = {}

    def take(self, shard_ids: Iterable[ShardId]) -> "Turn":
        """A turn with all of these shards, for as long as its context lasts."""
        return Turn(self._taken, sorted(shard_ids))

    def take_free(self, shard_id: ShardId) -> bool:
        """A turn with one shard, if nobody has it; then to be passed on."""
        if shard_id in self._taken:
            return False
        self._taken[shard_id] = None
        return True

    def pass_on(self, shard_id: ShardId) -> None:
        """To whoever has waited longest."""
        _pass_on(self._taken, shard_id)


class Turn:
    """Costs next to nothing where nobody else wants one: then there is nothing to wait for."""

    __slots__ = ("_has", "_taken", "_wants")

    def __init__(self, taken: dict[ShardId, _Waiting | None], wants: list[ShardId]) -> None:
        self._taken = taken
        self._wants = wants
        self._has: list[ShardId] = []

    def __enter__(self) -> "Turn":
        self._take_free()
        return self

    def __exit__(self, *_: object) -> None:
        for shard_id in self._has:
            _pass_on(self._taken, shard_id)

    @property
    def come(self) -> bool:
        """Whether there is nothing to wait for."""
        return len(self._has) == len(self._wants)

    async def wait(self) -> None:
        """Until it has come; always in one order, so never in a circle."""
        while not self.come:
            await self._queue_up(self._wants[len(self._has)])
            self._take_free()

    def _take_free(self) -> None:
        """What is free now, up to the first shard that is not."""
        for shard_id in self._wants[len(self._has) :]:
            if shard_id in self._taken:
                return
            self._taken[shard_id] = None
            self._has.append(shard_id)

    async def _queue_up(self, shard_id: ShardId) -> None:
        waiting = self._taken[shard_id]
        if waiting is None:
            waiting = self._taken[shard_id] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._has.append(shard_id)  # it came in the same moment, and is to be passed on
            raise
        self._has.append(shard_id)


def _pass_on(taken: dict[ShardId, _Waiting | None], shard_id: ShardId) -> None:
    waiting = taken[shard_id]
    while waiting and waiting[0].done():
        waiting.popleft()  # gave up
    if waiting:
        waiting.popleft().set_result(None)
    else:
        del taken[shard_id]
