"""Reading shards: contents at a timestamp, and updates of a stretch of time.

Nothing here waits: callers have made sure that the times they ask for are complete. Batches once
decoded and contents once added up are kept, bounded by size. Contents move forward cheaply, because
a strict serializable read after each write asks for ever later times.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from evertide.persist.cache import SizedCache
from evertide.persist.contents import Accumulation, Contents
from evertide.persist.faults import BelowSince, BlobMissing, ShardMissing
from evertide.persist.machine import Machine
from evertide.persist.prepare import load_part
from evertide.persist.state import Batch, ShardState
from evertide.persist.store.protocol import Blob
from evertide.persist.threads import give_way
from evertide.persist.updates import UpdateColumns, concat_columns, to_columns
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward
from evertide.vocab.update import Update

# A decoded update's memory beside its encoded bytes: its row, small objects, places in lists.
_UPDATE_BYTES: Final = 150
# More updates than this are added up in a thread.
_THREAD_UPDATES: Final = 10_000

_BatchKey: TypeAlias = tuple[ShardId, Timestamp, Timestamp, Timestamp]


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
        self._batches: SizedCache[_BatchKey, UpdateColumns] = SizedCache(cache_bytes // 2)
        self._kept: SizedCache[ShardId, _Kept] = SizedCache(cache_bytes // 2)

    async def contents(self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp) -> Contents:
        """What the shard holds at as_of; raises BelowSince."""
        while True:
            state = await self.readable(shard_id, as_of)
            kept = self._kept.get(shard_id)
            if kept is None or kept.desc != desc or as_of < kept.as_of:
                kept = _Kept(desc, as_of, Accumulation(desc.types))
                wanted: Sequence[Batch] | None = state.batches
                after: Timestamp | None = None
            else:
                after = kept.as_of
                wanted = batches_beyond(state, after)
            if wanted is None:
                self._kept.drop(shard_id)
                continue
            updates = await self._load(shard_id, desc, wanted, state)
            if updates is None:
                continue  # garbage collection was faster; look at what replaced the batches
            if after is not None and kept.as_of != after:
                continue  # another read moved it forward meanwhile
            return await self._move(shard_id, kept, after, as_of, updates)

    async def updates(
        self, shard_id: ShardId, desc: RelationDesc, lower: Timestamp, upper: Timestamp
    ) -> list[Update]:
        """Updates with lower <= ts < upper, ordered by time.

        At since itself all earlier history may have been merged, so `lower` must be beyond it.
        """
        while True:
            state = await self.readable(shard_id, Timestamp(max(lower - 1, MIN_TS)))
            wanted = [b for b in state.batches if b.upper > lower and b.lower < upper]
            found = await self._load(shard_id, desc, wanted, state)
            if found is not None:
                within = chain.from_iterable(c.between(lower, upper).updates() for c in found)
                return sorted(within, key=lambda update: update.ts)

    async def readable(self, shard_id: ShardId, as_of: Timestamp) -> ShardState:
        """The newest state; raises ShardMissing, BelowSince."""
        state = (await self._machine.read(shard_id)).state
        if state is None:
            raise ShardMissing(shard_id)
        if as_of < state.since:
            raise BelowSince(shard_id, as_of, state.since)
        return state

    def keep_appended(self, shard_id: ShardId, batch: Batch, updates: Sequence[Update]) -> None:
        """Spare the decoding of what this process has just written."""
        self._batches.put(_batch_key(shard_id, batch), to_columns(updates), _memory_bytes(batch))

    async def _move(
        self,
        shard_id: ShardId,
        kept: _Kept,
        after: Timestamp | None,
        as_of: Timestamp,
        batches: Sequence[UpdateColumns],
    ) -> Contents:
        """Bring contents to as_of. While a thread does that, they belong to this call alone."""
        lower = MIN_TS if after is None else step_forward(after)
        due = [columns.between(lower, step_forward(as_of)) for columns in batches]
        kept.as_of = as_of  # now, so that whoever else holds it looks again
        if sum(map(len, due)) > _THREAD_UPDATES:
            self._kept.drop(shard_id)
            await asyncio.to_thread(_add_many, kept.accumulation, due)
        else:
            for columns in due:
                kept.accumulation.add(columns)
        newest = self._kept.get(shard_id)
        if newest is None or newest.as_of <= as_of:
            self._kept.put(shard_id, kept, len(kept.accumulation) * _UPDATE_BYTES)
        return kept.accumulation.contents(as_of)

    async def _load(
        self, shard_id: ShardId, desc: RelationDesc, batches: Iterable[Batch], state: ShardState
    ) -> list[UpdateColumns] | None:
        """The updates of each batch; None if they were collected because `state` is outdated."""
        found: list[UpdateColumns] = []
        for batch in batches:
            updates = self._batches.get(_batch_key(shard_id, batch))
            if updates is None:
                try:
                    loaded = [await load_part(self._blob, desc, part) for part in batch.parts]
                except BlobMissing:
                    if (await self._machine.read(shard_id)).state == state:
                        raise
                    return None
                updates = concat_columns(loaded)
                self._batches.put(_batch_key(shard_id, batch), updates, _memory_bytes(batch))
            found.append(updates)
        return found


def batches_beyond(state: ShardState, after: Timestamp) -> list[Batch] | None:
    """Batches that may hold updates beyond `after`; None where that can no longer be told.

    Once since has passed `after`, a merge may have moved updates from before it to behind it, and
    even cancelled them against later ones without leaving a batch that tells.
    """
    if state.since > after:
        return None
    return [batch for batch in state.batches if batch.upper > after + 1]


def _add_many(accumulation: Accumulation, batches: Sequence[UpdateColumns]) -> None:
    for columns in batches:
        accumulation.add(columns)
        give_way()


def _batch_key(shard_id: ShardId, batch: Batch) -> _BatchKey:
    """Batches of one shard with the same bounds hold the same updates, however often rewritten."""
    return (shard_id, batch.lower, batch.upper, batch.since)


def _memory_bytes(batch: Batch) -> int:
    return 4 * batch.size_bytes + _UPDATE_BYTES * batch.rows
