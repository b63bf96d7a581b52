"""What a process may ask of its shards."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from evertide.persist.append import Append, Appended, Appender, AppendOutcome
from evertide.persist.contents import Contents
from evertide.persist.faults import ShardMissing
from evertide.persist.leases import Leases
from evertide.persist.machine import Applied, Machine, Refused
from evertide.persist.news import NewsBringer
from evertide.persist.owned_blob import OwnedBlob, Owner
from evertide.persist.push.notify import LocalNotifier, Notifier
from evertide.persist.push.watch import Watch
from evertide.persist.read import ShardReader
from evertide.persist.state import (
    DEFAULT_SINCE_LAG,
    AlreadyExists,
    ShardChange,
    ShardState,
    create,
    initial_state,
)
from evertide.persist.store.protocol import (
    AppliedWrite,
    BlobStore,
    Consensus,
    StashMismatch,
    TellingConsensus,
)
from evertide.persist.upkeep.maintenance import GARBAGE_GRACE_S, Maintenance
from evertide.vocab.clock import Clock, SystemClock
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp
from evertide.vocab.update import Update

__all__ = [
    "Append", "AppendOutcome", "Appended", "Contents", "PersistClient", "Refused",
]  # fmt: skip

_CACHE_BYTES: Final = 256 * 1024**2


class PersistClient:
    """One per process, for one event loop. `async with` ends its background work.

    Attributes are the parts it is made of, for what its methods do not cover: `machine` for other
    changes of states, `reader` for reads that need no waiting, `watch` for signals of change,
    `leases` to keep history readable, `appender` for appends that claim their timestamp or go along
    with the stash.
    """

    def __init__(
        self,
        consensus: Consensus,
        blob: BlobStore,
        *,
        clock: Clock | None = None,
        notifier: Notifier | None = None,
        cache_bytes: int = _CACHE_BYTES,
        grace_s: float = GARBAGE_GRACE_S,
        owner: Owner | None = None,
    ) -> None:
        """`owner` says whether parts may be deleted; without one, none is."""
        self.blob = OwnedBlob(blob, owner)
        self.watch = Watch(notifier or LocalNotifier())
        rings = isinstance(consensus, TellingConsensus) and consensus.rings
        # Where the store that made a change has told other processes already, only this one is.
        told = self.watch.wake if rings else self.watch.announce
        self.machine = Machine(consensus, told)
        self._end_news: Callable[[], None] | None = None
        if isinstance(notifier, NewsBringer):
            self._end_news = notifier.subscribe_news(self.machine.hear)
        self.reader = ShardReader(self.machine, blob, cache_bytes=cache_bytes)
        clock = clock or SystemClock()
        self.maintenance = Maintenance(self.machine, self.blob, clock, grace_s=grace_s)
        self.leases = Leases(self.machine, clock)
        self.appender = Appender(self.machine, self.blob, self.reader, self.maintenance)

    async def __aenter__(self) -> "PersistClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._end_news is not None:
            self._end_news()
        self.watch.close()
        await self.maintenance.close()
        await self.leases.close()

    async def state(self, shard_id: ShardId) -> ShardState:
        """The newest state; raises ShardMissing."""
        found = (await self.machine.read(shard_id)).state
        if found is None:
            raise ShardMissing(shard_id)
        return found

    async def create_shard(
        self,
        shard_id: ShardId,
        *,
        since: Timestamp = MIN_TS,
        writer: GlobalId | None = None,
        since_lag: int = DEFAULT_SINCE_LAG,
    ) -> ShardState | AlreadyExists:
        """An empty shard with since = upper = `since`."""
        initial = initial_state(since=since, writer=writer, since_lag=since_lag)
        outcome = await self.machine.apply_all([create(shard_id, initial)])
        return initial if isinstance(outcome, Applied) else AlreadyExists()

    async def contents(self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp) -> Contents:
        """What the shard holds at as_of, shared with other readers: the cheapest form of a read.

        Waits until upper > as_of; raises BelowSince.
        """
        await self.wait_for_upper(shard_id, as_of)
        return await self.reader.contents(shard_id, desc, as_of)

    async def snapshot(
        self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
    ) -> list[Update]:
        """The same as updates, consolidated, every ts = as_of."""
        return (await self.contents(shard_id, desc, as_of)).updates()

    async def read_updates(
        self, shard_id: ShardId, desc: RelationDesc, lower: Timestamp, upper: Timestamp
    ) -> list[Update]:
        """Updates with lower <= ts < upper, ordered by time.

        Waits until the shard's upper >= `upper`; raises BelowSince unless lower > since: at since
        itself earlier history may have been merged (a shard with since 0 has none).
        """
        await self.wait_for_upper(shard_id, Timestamp(upper - 1))
        return await self.reader.updates(shard_id, desc, lower, upper)

    async def listen(
        self, shard_id: ShardId, desc: RelationDesc, from_ts: Timestamp
    ) -> AsyncIterator[tuple[list[Update], Timestamp]]:
        """(updates, new upper) each time the upper moves, from updates at from_ts on.

        Ends when the shard is sealed. Raises BelowSince as read_updates does.
        """
        lower = from_ts
        while lower != EMPTY_FRONTIER:
            upper = await self.wait_for_upper(shard_id, lower)
            yield await self.reader.updates(shard_id, desc, lower, upper), upper
            lower = upper

    async def wait_for_upper(self, shard_id: ShardId, beyond: Timestamp) -> Timestamp:
        """The upper, once upper > beyond."""
        upper = (await self.state(shard_id)).upper
        if upper > beyond:
            return upper
        return await self.watch.until(
            (shard_id,), lambda: self._upper(shard_id), lambda upper: upper > beyond
        )

    async def _upper(self, shard_id: ShardId) -> Timestamp:
        return (await self.state(shard_id)).upper

    async def compare_and_append(
        self,
        shard_id: ShardId,
        desc: RelationDesc,
        updates: Sequence[Update],
        lower: Timestamp,
        upper: Timestamp,
        writer: GlobalId | None = None,
    ) -> AppendOutcome:
        """Append if the shard's upper is `lower` and its writer is `writer`."""
        one = Append(shard_id, desc, updates, lower, upper, writer)
        return await self.appender.append_one(one)

    async def append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]:
        """Each for itself, in one store transaction; outcomes in the order of appends."""
        return await self.appender.append_each(appends)

    async def append_all(
        self,
        appends: Sequence[Append],
        *,
        also: Sequence[ShardChange] = (),
        applied: Sequence[AppliedWrite] = (),
    ) -> Appended | Refused:
        """Appends, other changes of shards and oracle writes in one store transaction, or nothing.

        `also` comes first, so that a shard may be created and appended to at once.
        """
        outcome = await self.appender.append_all(appends, also=also, applied=applied)
        assert not isinstance(outcome, StashMismatch), "nothing went to the stash"
        return outcome
