"""Compaction and garbage collection in the background of one process."""

import asyncio
from typing import Final

import structlog

from evertide.persist.compaction import compact_shard
from evertide.persist.machine import Machine
from evertide.persist.prepare import discard, made_at_ms
from evertide.persist.state import BlobPart, Part, ShardState, decode_state
from evertide.persist.store.protocol import Blob, Consensus, Head
from evertide.vocab.clock import Clock
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc

# Readers that hold an older state may still read replaced parts; Spark jobs take minutes.
GARBAGE_GRACE_S: Final = 600.0
_ORPHAN_AGE_MS: Final = 3_600_000
# Appends between two looks at a shard's batches, and the size that earns a look by itself.
_LOOK_EVERY: Final = 8
_LOOK_BYTES: Final = 8 * 1024

_log = structlog.get_logger()


class Maintenance:
    """Works through the shards that this process wrote to, one at a time.

    Whoever appends looks after a shard, so that the work is spread as the writes are. Two processes
    compacting one shard cost work, nothing else: one of them finds its batches gone.
    """

    def __init__(
        self, machine: Machine, blob: Blob, clock: Clock, *, grace_s: float = GARBAGE_GRACE_S
    ) -> None:
        self._machine = machine
        self._blob = blob
        self._clock = clock
        self._grace_s = grace_s
        self._due: dict[ShardId, RelationDesc] = {}
        self._task: asyncio.Task[None] | None = None
        self._collections: set[asyncio.Task[None]] = set()

    def after_append(self, shard_id: ShardId, desc: RelationDesc, state: ShardState) -> None:
        """Look at the shard soon, if this append may have made a merge due."""
        batches = state.batches
        if batches and (len(batches) % _LOOK_EVERY == 0 or batches[-1].size_bytes > _LOOK_BYTES):
            self.request(shard_id, desc)

    def request(self, shard_id: ShardId, desc: RelationDesc) -> None:
        """Look at the shard soon."""
        self._due[shard_id] = desc
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def idle(self) -> None:
        """Until nothing is due."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop. Garbage that still waits is left to sweep_orphans."""
        tasks = [*self._collections, *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        while self._due:
            shard_id = next(iter(self._due))
            desc = self._due.pop(shard_id)
            try:
                await self._compact(shard_id, desc)
            except Exception as error:  # noqa: BLE001 - the loop that owns this work
                _log.warning("compaction failed", shard_id=shard_id, error=repr(error))

    async def _compact(self, shard_id: ShardId, desc: RelationDesc) -> None:
        while True:
            now_ms = self._clock.now_ms()
            done = await compact_shard(self._machine, self._blob, shard_id, desc, now_ms)
            if done is None:
                return
            if any(isinstance(part, BlobPart) for part in done.garbage):
                collection = asyncio.create_task(self._collect(done.garbage))
                self._collections.add(collection)
                collection.add_done_callback(self._collections.discard)

    async def _collect(self, garbage: tuple[Part, ...]) -> None:
        await asyncio.sleep(self._grace_s)
        await discard(self._blob, garbage)


async def sweep_orphans(
    consensus: Consensus, blob: Blob, now_ms: int, *, min_age_ms: int = _ORPHAN_AGE_MS
) -> list[str]:
    """Delete parts no shard refers to: left by processes that died between part and state.

    The keys are listed before the states are read, so a part that a state came to refer to
    meanwhile is seen there; one that is still about to be referred to is younger than the limit.
    """
    keys = [key for key in await blob.keys() if made_at_ms(key) + min_age_ms < now_ms]
    used: set[str] = set()
    for shard_id in await consensus.shard_ids():
        head = await consensus.head(shard_id)
        if isinstance(head, Head):
            batches = decode_state(head.value).batches
            parts = (part for batch in batches for part in batch.parts)
            used.update(part.key for part in parts if isinstance(part, BlobPart))
    orphans = [key for key in keys if key not in used]
    for key in orphans:
        await blob.delete(key)
    return orphans
