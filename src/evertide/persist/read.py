"""Reading shards: contents at a timestamp, and updates of a stretch of time.

Nothing here waits: callers have made sure that the times they ask for are complete. Batches once
decoded and contents once added up are kept, bounded by size. Contents move forward cheaply, because
a strict serializable read after each write asks for ever later times.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, TypeAlias

from evertide.persist.cache import SizedCache
from evertide.persist.coding.batch import UpdateBatch, concat_batches, to_batch
from evertide.persist.coding.parts import Times
from evertide.persist.contents import Accumulation, Contents
from evertide.persist.faults import BelowSince, BlobMissing, ShardMissing
from evertide.persist.machine import Machine
from evertide.persist.prepare import load_part, make_rows
from evertide.persist.state import Batch, InlinePart, ShardState, refers_to
from evertide.persist.store.protocol import Blob
from evertide.persist.threads import give_way
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward
from evertide.vocab.update import Update

# A decoded update's memory beside its encoded bytes: its row, small objects, places in lists.
_UPDATE_BYTES: Final = 150
# More updates than this are added up in a thread.
_THREAD_UPDATES: Final = 10_000
# A larger batch is read only as far as asked for, and then not kept.
_WHOLE_UPDATES: Final = 10_000

# Of one shard, and of one version of its columns: a later one has more.
_ContentsKey: TypeAlias = tuple[ShardId, int]
_BatchKey: TypeAlias = tuple[ShardId, int, Timestamp, Timestamp, Timestamp]


@dataclass(slots=True)
class _Kept:
    """Contents that may move forward."""

    desc: RelationDesc
    as_of: Timestamp
    accumulation: Accumulation


class ShardReader:
    """Reads of one process."""

    def __init__(self, machine: Machine, blob: Blob, *, cache_bytes: int) -> None:
        self._machine = machine
        self._blob = blob
        self._batches: SizedCache[_BatchKey, UpdateBatch] = SizedCache(cache_bytes // 2)
        self._kept: SizedCache[_ContentsKey, _Kept] = SizedCache(cache_bytes // 2)

    async def contents(self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp) -> Contents:
        """What the shard holds at as_of; raises BelowSince."""
        key = (shard_id, desc.arity)
        while True:
            state = await self.readable(shard_id, as_of)
            kept = self._kept.get(key)
            if kept is None or kept.desc != desc or as_of < kept.as_of:
                kept = _Kept(desc, as_of, Accumulation(desc.types))
                wanted: Sequence[Batch] | None = state.batches
                after: Timestamp | None = None
            else:
                after = kept.as_of
                wanted = batches_beyond(state, after)
            if wanted is None:
                self._kept.drop(key)
                continue
            times = (MIN_TS if after is None else step_forward(after), step_forward(as_of))
            found = await self._load(shard_id, desc, wanted, times)
            if found is None:
                continue  # garbage collection was faster; look at what replaced the batches
            await make_rows(found)
            if after is not None and kept.as_of != after:
                continue  # another read moved it forward meanwhile
            return await self._move(key, kept, as_of, found)

    async def updates(
        self, shard_id: ShardId, desc: RelationDesc, lower: Timestamp, upper: Timestamp
    ) -> list[Update]:
        """Updates with lower <= ts < upper, ordered by time.

        At since itself all earlier history may have been merged, so `lower` must be beyond it.
        """
        batch = await self.update_columns(shard_id, desc, lower, upper)
        await make_rows([batch])
        return sorted(batch.updates(), key=attrgetter("ts"))

    async def update_columns(
        self, shard_id: ShardId, desc: RelationDesc, lower: Timestamp, upper: Timestamp
    ) -> UpdateBatch:
        """The same in whatever form it was stored in, and in no order."""
        while True:
            state = await self.readable(shard_id, Timestamp(max(lower - 1, MIN_TS)))
            found = await self._load(shard_id, desc, state.batches, (lower, upper))
            if found is not None:
                return concat_batches(desc, found)

    async def updates_in(
        self,
        shard_id: ShardId,
        desc: RelationDesc,
        state: ShardState,
        lower: Timestamp,
        upper: Timestamp,
    ) -> UpdateBatch:
        """The same for whoever has looked at the shard and found it complete up to `upper`: the
        state that was seen then is not looked up again, and what lies in it is not looked at, if
        all of a batch is wanted. Who passes that on leaves it to the receiver to read it."""
        if state.since < max(lower, Timestamp(1)):
            wanted = state.batches
            found = await self._load(shard_id, desc, wanted, (lower, upper), unread=True)
            if found is not None:
                return concat_batches(desc, found)
        return await self.update_columns(shard_id, desc, lower, upper)

    async def updates_of(
        self, shard_id: ShardId, desc: RelationDesc, batches: Sequence[Batch], upper: Timestamp
    ) -> UpdateBatch | None:
        """What these batches hold below `upper`; None if the state that names them is outdated."""
        found = await self._load(shard_id, desc, batches, (MIN_TS, upper))
        return None if found is None else concat_batches(desc, found)

    async def readable(self, shard_id: ShardId, as_of: Timestamp) -> ShardState:
        """The newest state; raises ShardMissing, BelowSince."""
        state = (await self._machine.read(shard_id)).state
        if state is None:
            raise ShardMissing(shard_id)
        if as_of < state.since:
            raise BelowSince(shard_id, as_of, state.since)
        return state

    def keep_appended(
        self, shard_id: ShardId, desc: RelationDesc, batch: Batch, updates: Sequence[Update]
    ) -> None:
        """Spare the decoding of what this process has just written."""
        key = _batch_key(shard_id, desc, batch)
        self._batches.put(key, to_batch(desc, updates), _memory_bytes(batch))

    async def _move(
        self, key: _ContentsKey, kept: _Kept, as_of: Timestamp, due: Sequence[UpdateBatch]
    ) -> Contents:
        """Bring contents forward. While a thread does that, they belong to this call alone."""
        kept.as_of = as_of  # now, so that whoever else holds it looks again
        if sum(map(len, due)) > _THREAD_UPDATES:
            self._kept.drop(key)
            await asyncio.to_thread(_add_many, kept.accumulation, due)
        else:
            for batch in due:
                kept.accumulation.add(batch)
        newest = self._kept.get(key)
        if newest is None or newest.as_of <= as_of:
            self._kept.put(key, kept, len(kept.accumulation) * _UPDATE_BYTES)
        return kept.accumulation.contents(as_of)

    async def _load(
        self,
        shard_id: ShardId,
        desc: RelationDesc,
        batches: Iterable[Batch],
        times: Times,
        *,
        unread: bool = False,
    ) -> list[UpdateBatch] | None:
        """The updates within the times of each batch that may have some.

        None if some were collected meanwhile: the state that names them is outdated.
        """
        lower, upper = times
        try:
            return [
                await self._load_batch(shard_id, desc, batch, times, unread=unread)
                for batch in batches
                if batch.upper > lower and batch.lower < upper
            ]
        except BlobMissing as missing:
            if refers_to((await self._machine.read(shard_id)).state, missing.key):
                raise
            return None

    async def _load_batch(
        self, shard_id: ShardId, desc: RelationDesc, batch: Batch, times: Times, *, unread: bool
    ) -> UpdateBatch:
        key = _batch_key(shard_id, desc, batch)
        updates = self._batches.get(key)
        within = _within(batch, times)
        if updates is None:
            only = batch.parts[0] if len(batch.parts) == 1 else None
            if unread and within and isinstance(only, InlinePart):
                # Not kept: others who find it damaged are to say where.
                return UpdateBatch(desc, payload=only.payload, count=only.rows)
            whole = within or batch.rows <= _WHOLE_UPDATES
            updates = await self._load_parts(shard_id, desc, batch, None if whole else times)
            if whole:
                self._batches.put(key, updates, _memory_bytes(batch))
        return updates if within else updates.between(*times)

    async def _load_parts(
        self, shard_id: ShardId, desc: RelationDesc, batch: Batch, times: Times | None
    ) -> UpdateBatch:
        return concat_batches(
            desc,
            [
                await load_part(self._blob, desc, part, shard_id=shard_id, times=times)
                for part in batch.parts
            ],
        )


def batches_beyond(state: ShardState, after: Timestamp) -> list[Batch] | None:
    """Batches that may hold updates beyond `after`; None where that can no longer be told.

    Once since has passed `after`, a merge may have moved updates from before it to behind it, and
    even cancelled them against later ones without leaving a batch that tells.
    """
    if state.since > after:
        return None
    return [batch for batch in state.batches if batch.upper > after + 1]


def _add_many(accumulation: Accumulation, batches: Sequence[UpdateBatch]) -> None:
    for batch in batches:
        accumulation.add(batch, give_way)


def _within(batch: Batch, times: Times) -> bool:
    """Whether all its updates are, going by its bounds: times below its since were raised to it."""
    lower, upper = times
    return lower <= max(batch.lower, batch.since) and max(batch.upper, batch.since + 1) <= upper


def _batch_key(shard_id: ShardId, desc: RelationDesc, batch: Batch) -> _BatchKey:
    """Batches of one shard with the same bounds hold the same updates, however often rewritten."""
    return (shard_id, desc.arity, batch.lower, batch.upper, batch.since)


def _memory_bytes(batch: Batch) -> int:
    return 4 * batch.size_bytes + _UPDATE_BYTES * batch.rows
