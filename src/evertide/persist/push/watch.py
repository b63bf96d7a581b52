"""Waiting until a shard may have changed."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from evertide.persist.push.notify import Choice, ChoosyNotifier, Notifier
from evertide.vocab.ids import ShardId

T = TypeVar("T")

# How often a watcher looks without having been told.
_POLL_S: Final = 1.0


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

    def __init__(self, notifier: Notifier) -> None:
        # In the order in which they came, so that they are woken in an order that repeats.
        self._signals: defaultdict[ShardId, dict[Signal, None]] = defaultdict(dict)
        self._notifier = notifier
        # Others are told which shards are watched here, if that spares somebody something.
        self._choice: Choice | None = None
        if isinstance(notifier, ChoosyNotifier):
            self._choice = notifier.subscribe_chosen(self.wake)
            self._unsubscribe = self._choice.end
        else:
            self._unsubscribe = notifier.subscribe(self.wake)

    def close(self) -> None:
        """Hear of other processes' changes no longer."""
        self._unsubscribe()

    def announce(self, shard_ids: Collection[ShardId]) -> None:
        """This process changed these shards: tell everyone who watches, here and elsewhere."""
        self.wake(shard_ids)
        self._notifier.publish(shard_ids)

    def wake(self, shard_ids: Collection[ShardId] | None) -> None:
        """These shards may have changed; None: any of them."""
        if not self._signals:
            return
        for shard_id in list(self._signals) if shard_ids is None else shard_ids:
            for signal in self._signals.get(shard_id, ()):
                signal.set()

    @contextmanager
    def on(self, shard_ids: Sequence[ShardId]) -> Iterator[Signal]:
        """A signal for any of these shards."""
        signal = Signal()
        for shard_id in shard_ids:
            self._signals[shard_id][signal] = None
            if self._choice is not None:
                self._choice.want(shard_id)
        try:
            yield signal
        finally:
            for shard_id in shard_ids:
                self._signals[shard_id].pop(signal, None)
                if not self._signals[shard_id]:
                    del self._signals[shard_id]
                    if self._choice is not None:
                        self._choice.unwant(shard_id)

    async def until(
        self,
        shard_ids: Sequence[ShardId],
        look: Callable[[], Awaitable[T]],
        enough: Callable[[T], bool],
    ) -> T:
        """What a look finds, once it is enough; looks again whenever one of the shards moves."""
        with self.on(shard_ids) as signal:
            while True:
                signal.clear()
                found = await look()
                if enough(found):
                    return found
                await signal.wait(_POLL_S)
