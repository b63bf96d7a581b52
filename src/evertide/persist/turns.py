"""Changes of one shard within one process go one after the other, in the order they came.

Between processes the store decides who was first. Within one, two that keep trying at the same time
may lose to each other in the same way each time: a merge would never get through beside a writer
that does not pause.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from evertide.vocab.ids import ShardId


class Turns:
    """For one event loop. Nobody may wait for a turn while having one."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[ShardId, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def take(self, shard_ids: Iterable[ShardId]) -> AsyncIterator[None]:
        """Wait for a turn with all of these shards; always in one order, so never in a circle."""
        taken: list[asyncio.Lock] = []
        try:
            for shard_id in sorted(shard_ids):
                lock = self._locks.setdefault(shard_id, asyncio.Lock())
                await lock.acquire()
                taken.append(lock)
            yield
        finally:
            for lock in taken:
                lock.release()
