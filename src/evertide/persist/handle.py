"""What a process may ask of its shards."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.persist.contents import Contents
from evertide.persist.faults import ShardMissing
from evertide.persist.machine import Applied, ApplyOutcome, Machine, Refused
from evertide.persist.maintenance import GARBAGE_GRACE_S, Maintenance
from evertide.persist.notify import LocalNotifier, Notifier
from evertide.persist.prepare import discard, store_updates
from evertide.persist.read import ShardReader
from evertide.persist.state import (
    DEFAULT_SINCE_LAG,
    AlreadyExists,
    Changed,
    Forgotten,
    Missing,
    Part,
    PendingWrite,
    Refusal,
    ShardChange,
    ShardState,
    UpperMismatch,
    WriterMismatch,
    append,
    create,
    existing,
    initial_state,
)
from evertide.persist.store.protocol import (
    AppliedWrite,
    Blob,
    ClaimedWrite,
    ClaimLost,
    Consensus,
)
from evertide.persist.watch import Watch
from evertide.vocab.clock import Clock, SystemClock
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp
from evertide.vocab.update import Update

__all__ = [
    "Append", "AppendOutcome", "Appended", "Contents", "PersistClient", "Refused",
]  # fmt: skip

# How often a watcher looks without having been told.
_POLL_S: Final = 1.0
_CACHE_BYTES: Final = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class Append:
    """Updates with lower <= ts < upper for one shard; none: only advance the upper."""

    shard_id: ShardId
    desc: RelationDesc
    updates: Sequence[Update]
    # None: wherever the upper is; for shards that another shard of the transaction protects.
    lower: Timestamp | None
    upper: Timestamp
    writer: GlobalId | None = None
    # The append that a new writer owes after set_writer(..., pending=True).
    completes_pending: bool = False


@dataclass(frozen=True, slots=True)
class Appended:
    """Durable; the shard's upper now, the greatest one for a group."""

    upper: Timestamp


AppendOutcome: TypeAlias = (
    Appended | UpperMismatch | WriterMismatch | PendingWrite | Forgotten | Missing
)


class PersistClient:
    """One per process, for one event loop. `async with` ends its background work.

    Attributes are the parts it is made of, for what its methods do not cover: `machine` for other
    changes of states, `reader` for reads that need no waiting, `watch` for signals of change.
    """

    def __init__(
        self,
        consensus: Consensus,
        blob: Blob,
        *,
        clock: Clock | None = None,
        notifier: Notifier | None = None,
        cache_bytes: int = _CACHE_BYTES,
        grace_s: float = GARBAGE_GRACE_S,
    ) -> None:
        self.blob = blob
        self.watch = Watch()
        self._notifier = notifier or LocalNotifier()
        self._unsubscribe = self._notifier.subscribe(self.watch.wake)
        self.machine = Machine(consensus, self._announce)
        self.reader = ShardReader(self.machine, blob, cache_bytes=cache_bytes)
        self.maintenance = Maintenance(self.machine, blob, clock or SystemClock(), grace_s=grace_s)

    async def __aenter__(self) -> "PersistClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unsubscribe()
        await self.maintenance.close()

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
        with self.watch.on((shard_id,)) as signal:
            while True:
                signal.clear()
                upper = (await self.state(shard_id)).upper
                if upper > beyond:
                    return upper
                await signal.wait(_POLL_S)

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
        outcomes = await self.append_each([Append(shard_id, desc, updates, lower, upper, writer)])
        return outcomes[0]

    async def append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]:
        """Each for itself, in one store transaction; outcomes in the order of appends."""
        prepared = await self._prepare(appends)
        changes = [_change(one, parts) for one, parts in zip(appends, prepared, strict=True)]
        results = await self.machine.apply_each(changes)
        for one, parts, result in zip(appends, prepared, results, strict=True):
            await self._finish(one, parts, result if isinstance(result, ShardState) else None)
        return [_outcome(result) for result in results]

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
        outcome = await self._append_all(
            appends, lambda changes: self.machine.apply_all([*also, *changes], applied=applied)
        )
        assert not isinstance(outcome, ClaimLost), "nothing was claimed"
        return outcome

    async def append_claiming(
        self, appends: Sequence[Append], claimed: ClaimedWrite, *, also: Sequence[ShardChange] = ()
    ) -> Appended | Refused | ClaimLost:
        """As append_all, with a write timestamp that the same transaction takes and applies."""
        return await self._append_all(
            appends, lambda changes: self.machine.apply_claiming([*also, *changes], claimed)
        )

    async def _append_all(
        self,
        appends: Sequence[Append],
        apply: Callable[[list[ShardChange]], Awaitable[ApplyOutcome | ClaimLost]],
    ) -> Appended | Refused | ClaimLost:
        prepared = await self._prepare(appends)
        changes = [_change(one, parts) for one, parts in zip(appends, prepared, strict=True)]
        outcome = await apply(changes)
        states = outcome.states if isinstance(outcome, Applied) else {}
        for one, parts in zip(appends, prepared, strict=True):
            await self._finish(one, parts, states.get(one.shard_id))
        if not isinstance(outcome, Applied):
            return outcome
        return Appended(max((one.upper for one in appends), default=MIN_TS))

    async def _prepare(self, appends: Sequence[Append]) -> list[tuple[Part, ...]]:
        for one in appends:
            lower = MIN_TS if one.lower is None else one.lower
            assert all(lower <= u.ts < one.upper for u in one.updates), "updates lie in the append"
        return [
            await store_updates(self.blob, one.shard_id, one.desc, one.updates) for one in appends
        ]

    async def _finish(self, one: Append, parts: tuple[Part, ...], state: ShardState | None) -> None:
        """Keep what was appended for readers of this process; what was refused is garbage."""
        if state is None:
            await discard(self.blob, parts)
        elif parts:
            newest = state.batches[-1]
            if newest.parts == parts:
                self.reader.keep_appended(one.shard_id, newest, one.updates)
            self.maintenance.after_append(one.shard_id, one.desc, state)

    def _announce(self, shard_ids: Collection[ShardId]) -> None:
        self.watch.wake(shard_ids)
        self._notifier.publish(shard_ids)


def _change(one: Append, parts: tuple[Part, ...]) -> ShardChange:
    def transition(state: ShardState) -> Changed:
        lower = state.upper if one.lower is None else one.lower
        if lower >= one.upper:
            return UpperMismatch(state.upper)
        return append(
            state,
            lower=lower,
            upper=one.upper,
            writer=one.writer,
            parts=parts,
            completes_pending=one.completes_pending,
        )

    return ShardChange(one.shard_id, existing(transition))


def _outcome(result: ShardState | Refusal) -> AppendOutcome:
    match result:
        case ShardState():
            return Appended(result.upper)
        case UpperMismatch() | WriterMismatch() | PendingWrite() | Forgotten() | Missing():
            return result
        case _:
            raise AssertionError(f"an append is not refused by {result}")
