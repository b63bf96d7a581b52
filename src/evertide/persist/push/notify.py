"""Who must look again: changes of shards, pushed to watchers."""

from collections.abc import Callable, Collection
from typing import Final, Protocol, TypeAlias, runtime_checkable

from evertide.vocab.ids import ShardId

# More changed shards than this are not named one by one.
MOST_NAMED: Final = 4096

# Changed shards; None: everything may have changed (a connection was lost in between).
OnChange: TypeAlias = Callable[[Collection[ShardId] | None], None]


class Notifier(Protocol):
    """Hints, never truth: a lost one costs time, because watchers also poll slowly."""

    def publish(self, shard_ids: Collection[ShardId]) -> None:
        """Tell everyone that these changed. Never blocks."""
        ...

    def subscribe(self, on_change: OnChange) -> Callable[[], None]:
        """Call back on the event loop from now on; the result ends it."""
        ...


@runtime_checkable
class ChoosyNotifier(Protocol):
    """A notifier that tells of no more than is wanted, where that spares work."""

    def subscribe_chosen(self, on_change: OnChange) -> "Choice":
        """Call back for the shards that are wanted by then, and perhaps for others."""
        ...


class Choice(Protocol):
    """What one subscriber wants."""

    def want(self, shard_id: ShardId) -> None:
        """To be called before looking at the shard: from then on its changes are told."""
        ...

    def unwant(self, shard_id: ShardId) -> None:
        """Nobody waits for it any more."""
        ...

    def end(self) -> None:
        """Want nothing any more."""
        ...


class LocalNotifier:
    """Between the clients of one process, on one event loop."""

    def __init__(self) -> None:
        self._callbacks: dict[object, OnChange] = {}

    def publish(self, shard_ids: Collection[ShardId]) -> None:
        """Tell every subscriber now."""
        self.tell(shard_ids)

    def subscribe(self, on_change: OnChange) -> Callable[[], None]:
        """Call back until the result is called."""
        token = object()
        self._callbacks[token] = on_change
        return lambda: self._end(token)

    def tell(self, shard_ids: Collection[ShardId] | None) -> None:
        """As publish, and None says that everything may have changed."""
        for on_change in list(self._callbacks.values()):
            on_change(shard_ids)

    def _end(self, token: object) -> None:
        self._callbacks.pop(token, None)


class Pending:
    """What is still to be told: a set of shards, or everything once they are too many."""

    def __init__(self) -> None:
        self._shard_ids: set[ShardId] | None = set()

    def __bool__(self) -> bool:
        return self._shard_ids is None or bool(self._shard_ids)

    def add(self, shard_ids: Collection[ShardId] | None) -> None:
        """These too; None: everything."""
        if shard_ids is None or self._shard_ids is None:
            self._shard_ids = None
            return
        self._shard_ids.update(shard_ids)
        if len(self._shard_ids) > MOST_NAMED:
            self._shard_ids = None

    def take(self) -> Collection[ShardId] | None:
        """All of it; from then on nothing is pending."""
        taken, self._shard_ids = self._shard_ids, set()
        return taken
