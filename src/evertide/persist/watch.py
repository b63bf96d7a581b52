"""Waiting until a shard may have changed."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from evertide.vocab.ids import ShardId


class Signal:
    """Set when one of the watched shards may have changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake whoever waits."""
        self._event.set()

    def clear(self) -> None:
        """To be called before looking: what changes after the look sets it again."""
        self._event.clear()

    async def wait(self, at_most_s: float) -> None:
        """Until set, or until it is time to look without being told."""
        timer = asyncio.get_running_loop().call_later(at_most_s, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()


class Watch:
    """The signals of one process by the shards they watch."""

    def __init__(self) -> None:
        self._signals: defaultdict[ShardId, set[Signal]] = defaultdict(set)

    def wake(self, shard_ids: Collection[ShardId] | None) -> None:
        """These shards may have changed; None: any of them."""
        for shard_id in list(self._signals) if shard_ids is None else shard_ids:
            for signal in self._signals.get(shard_id, ()):
                signal.set()

    @contextmanager
    def on(self, shard_ids: Sequence[ShardId]) -> Iterator[Signal]:
        """A signal for any of these shards."""
        signal = Signal()
        for shard_id in shard_ids:
            self._signals[shard_id].add(signal)
        try:
            yield signal
        finally:
            for shard_id in shard_ids:
                self._signals[shard_id].discard(signal)
                if not self._signals[shard_id]:
                    del self._signals[shard_id]
