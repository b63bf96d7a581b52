"""The way between processes and their stores: slow, lossy, and cut at the worst moments."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from evertide.persist.news import News, OnNews, decode_message, encode_message
from evertide.persist.push.notify import OnChange
from evertide.vocab.ids import ShardId
from tests.sim.loop import Process, SimLoop, running_process

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Faults:
    """How often things go wrong, each as a chance per message."""

    # Nothing is sent, and the sender knows.
    refused: float = 0.0
    # The connection ends while an answer is awaited; the request may arrive nevertheless, even
    # after the sender has begun to ask what became of it.
    cut: float = 0.0
    # It takes very long.
    slow: float = 0.0
    # A notification never comes.
    lost_hint: float = 0.0
    # There is no room for what is to be written.
    full: float = 0.0
    # What ended in an error cannot even be looked for; of stores that tell.
    failing: float = 0.0


NO_FAULTS = Faults()
_DELAY_PER_S = 700.0
_SLOW_S = 3.0
_LARGEST_MESSAGE = 64 * 1024


class Network:
    """Carries requests. `faults` may be changed at any time; a process may be cut off."""

    def __init__(self, loop: SimLoop, rng: random.Random, faults: Faults) -> None:
        self.loop = loop
        self.faults = faults
        self.cut_off: set[Process] = set()
        self._rng = rng
        # What happens at the far end happens even if the sender is dead.
        self._far_end = copy_context()

    async def call(
        self,
        what: str,
        action: Callable[[], T],
        *,
        refused: Callable[[], Exception],
        unknown: Callable[[], Exception],
        full: Callable[[], T] | None = None,
    ) -> T:
        """Have it done at the far end, and bring back what it returns or raises.

        `full` is what happens there instead, now and then.
        """
        answer: asyncio.Future[T] = self.loop.create_future()
        if running_process() in self.cut_off or self._rng.random() < self.faults.refused:
            self._later(self.delay(), lambda: _fail(answer, refused()))
        elif full is not None and self._rng.random() < self.faults.full:
            self._later(self.delay(), partial(self._arrive, full, answer))
        elif self._rng.random() < self.faults.cut:
            if self._rng.random() < 0.6:
                self._later(self.delay() * self._rng.choice((1, 4, 20)), lambda: self._lost(action))
            self.loop.note(f"cut: {what}")
            self._later(self.delay(), lambda: _fail(answer, unknown()))
        else:
            self._later(self.delay(), lambda: self._arrive(action, answer))
        return await answer

    def hint(self, receiver: Process, tell: Callable[[], None]) -> None:
        """Let a process know something, unless that is lost on the way."""
        if receiver not in self.cut_off and self._rng.random() >= self.faults.lost_hint:
            self.loop.call_later(self.delay(), tell, context=receiver.context)

    def _arrive(self, action: Callable[[], T], answer: "asyncio.Future[T]") -> None:
        try:
            result = action()
        except Exception as error:  # noqa: BLE001 - the answer, whatever it is
            failure = error
            self._later(self.delay(), lambda: _fail(answer, failure))
        else:
            self._later(self.delay(), lambda: _answer(answer, result))

    def _lost(self, action: Callable[[], T]) -> None:
        """Arrived, and nobody waits for what comes of it."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - refused, and nobody hears it
            self.loop.note(f"unheard: {type(error).__name__}")

    def happens(self, chance: float) -> bool:
        """Whether something does that has this chance."""
        return chance > 0.0 and self._rng.random() < chance

    def delay(self) -> float:
        """How long the next step takes."""
        delay_s = self._rng.expovariate(_DELAY_PER_S)
        if self.faults.slow and self._rng.random() < self.faults.slow:
            delay_s += self._rng.random() * _SLOW_S
        return delay_s

    def _later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.loop.call_later(delay_s, callback, context=self._far_end)


class Hub:
    """Carries changes of shards to the watchers of all processes."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._watching: list[tuple[Process, OnChange]] = []
        self._readers: dict[Process, list[OnNews]] = defaultdict(list)

    def publish(self, sender: Process, shard_ids: list[ShardId], news: Sequence[News] = ()) -> None:
        """Tell every other process, sooner or later or never."""
        self._watching = [(process, tell) for process, tell in self._watching if process.alive]
        message = encode_message(shard_ids, news, _LARGEST_MESSAGE)
        for process, tell in self._watching:
            if process is not sender:
                self._network.hint(process, partial(self._hear, process, tell, message))

    def _hear(self, process: Process, tell: OnChange, message: bytes) -> None:
        shard_ids, news = decode_message(message)
        for on_news in self._readers[process]:
            on_news(news)
        tell(shard_ids)

    def subscribe_news(self, process: Process, on_news: OnNews) -> None:
        """The same for what is told of the shards."""
        self._readers[process].append(on_news)

    def subscribe(self, process: Process, on_change: OnChange) -> None:
        """From now on; a process that dies is forgotten."""
        self._watching.append((process, on_change))


class ProcessNotifier:
    """The hub as one process sees it."""

    def __init__(self, hub: Hub, process: Process) -> None:
        self._hub = hub
        self._process = process

    def publish(self, shard_ids: Collection[ShardId]) -> None:
        self._hub.publish(self._process, list(shard_ids))

    def subscribe(self, on_change: OnChange) -> Callable[[], None]:
        self._hub.subscribe(self._process, on_change)
        return lambda: None

    def subscribe_news(self, on_news: OnNews) -> Callable[[], None]:
        self._hub.subscribe_news(self._process, on_news)
        return lambda: None


def _answer(answer: "asyncio.Future[T]", result: T) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: "asyncio.Future[T]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # looked at, in case whoever waits for it is dead
