"""Compaction and garbage collection in the background of one process."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from evertide.persist.faults import PersistFault
from evertide.persist.machine import Machine
from evertide.persist.owned_blob import OwnedBlob
from evertide.persist.prepare import discard
from evertide.persist.state import BlobPart, Part, ShardState
from evertide.persist.upkeep.compaction import Compaction
from evertide.persist.upkeep.merge_choice import SIZES, DueMerge, MergeSizes, due_merge, is_overfull
from evertide.vocab.clock import Clock
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc

# Readers that hold an older state may still read replaced parts; Spark jobs take minutes.
GARBAGE_GRACE_S: Final = 600.0
# Appends between two looks at a shard's batches, and the size that earns a look by itself.
_LOOK_EVERY: Final = 8
_LOOK_BYTES: Final = 8 * 1024
_LONGEST_WAIT_S: Final = 1.0
# How long a shard is left alone after work on it failed.
_AFTER_FAILURE_S: Final = 60.0

_log = structlog.get_logger()


class Maintenance:
    """Works through the shards that this process wrote to.

    Whoever appends looks after a shard, so that the work is spread as the writes are. Two processes
    compacting one shard cost work, nothing else: one of them finds its batches gone. Large merges,
    which take minutes, have a lane of their own, so that no shard's small batches pile up behind
    another's large ones.
    """

    def __init__(
        self,
        machine: Machine,
        blob: OwnedBlob,
        clock: Clock,
        *,
        grace_s: float = GARBAGE_GRACE_S,
        sizes: MergeSizes = SIZES,
    ) -> None:
        self._machine = machine
        self._blob = blob
        self._clock = clock
        self._sizes = sizes
        self._small = _Lane(self._merge_small)
        self._large = _Lane(self._merge_large)
        self._collector = _Collector(blob, grace_s)

    def after_append(self, shard_id: ShardId, desc: RelationDesc, state: ShardState) -> None:
        """Look at the shard soon, if this append may have made a merge due."""
        batches = state.batches
        if batches and (len(batches) % _LOOK_EVERY == 0 or batches[-1].size_bytes > _LOOK_BYTES):
            self.request(shard_id, desc)

    def behind(self, state: ShardState) -> bool:
        """Whether batches come faster than they are merged: then whoever appends is to wait.

        Every append writes the state anew, so a state that grew would slow down the merges' own
        changes, and grow further.
        """
        return self._small.busy and is_overfull(state, self._sizes)

    async def keep_up(self) -> None:
        """Wait a little, for what is being merged."""
        await self._small.idle(_LONGEST_WAIT_S)

    def request(self, shard_id: ShardId, desc: RelationDesc) -> None:
        """Look at the shard soon."""
        self._small.add(shard_id, desc)

    def is_due(self, state: ShardState) -> bool:
        """Whether a look would find something to do."""
        return due_merge(state, self._clock.now_ms(), self._sizes) is not None

    async def idle(self) -> None:
        """Until nothing is due."""
        while self._small.busy or self._large.busy:
            await self._small.idle()
            await self._large.idle()

    async def close(self) -> None:
        """Stop. Garbage that still waits is left to the sweeper."""
        await self._small.close()
        await self._large.close()
        await self._collector.close()

    async def _merge_small(self, shard_id: ShardId, desc: RelationDesc) -> None:
        while (found := await self._due(shard_id)) is not None:
            state, due = found
            if due.large:
                self._large.add(shard_id, desc)
                return
            if not await self._merge(shard_id, desc, state, due):
                return

    async def _merge_large(self, shard_id: ShardId, desc: RelationDesc) -> None:
        while (found := await self._due(shard_id)) is not None:
            state, due = found
            if not due.large:
                self._small.add(shard_id, desc)
                return
            if not await self._merge(shard_id, desc, state, due):
                return

    async def _due(self, shard_id: ShardId) -> tuple[ShardState, DueMerge] | None:
        state = (await self._machine.read(shard_id)).state
        due = None if state is None else due_merge(state, self._clock.now_ms(), self._sizes)
        return None if state is None or due is None else (state, due)

    async def _merge(
        self, shard_id: ShardId, desc: RelationDesc, state: ShardState, due: DueMerge
    ) -> bool:
        work = Compaction(self._machine, self._blob, shard_id, self._clock.now_ms, self._sizes)
        done = await work.merge(state, desc, due)
        if done is not None:
            self._collector.add(done.garbage)
        return done is not None


class _Lane:
    """Works through shards, one at a time."""

    def __init__(self, work: Callable[[ShardId, RelationDesc], Awaitable[None]]) -> None:
        self._work = work
        self._due: dict[ShardId, RelationDesc] = {}
        self._not_before_s: dict[ShardId, float] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def add(self, shard_id: ShardId, desc: RelationDesc) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s < self._not_before_s.get(shard_id, now_s):
            return
        self._due[shard_id] = desc
        if not self.busy:
            self._task = asyncio.create_task(self._run())

    async def idle(self, timeout_s: float | None = None) -> None:
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=timeout_s)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._due:
            shard_id = next(iter(self._due))
            desc = self._due.pop(shard_id)
            try:
                await self._work(shard_id, desc)
            except Exception as error:  # noqa: BLE001 - the loop that owns this work
                _log.warning("compaction failed", shard_id=shard_id, error=repr(error))
                now_s = asyncio.get_running_loop().time()
                self._not_before_s[shard_id] = now_s + _AFTER_FAILURE_S
            else:
                self._not_before_s.pop(shard_id, None)


class _Collector:
    """Deletes parts once nobody can be reading them any more."""

    def __init__(self, blob: OwnedBlob, grace_s: float) -> None:
        self._blob = blob
        self._grace_s = grace_s
        self._waiting: deque[tuple[float, Sequence[Part]]] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, parts: Sequence[Part]) -> None:
        garbage = [part for part in parts if isinstance(part, BlobPart)]
        if not garbage:
            return
        due_s = asyncio.get_running_loop().time() + self._grace_s
        self._waiting.append((due_s, garbage))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._waiting:
            due_s, garbage = self._waiting.popleft()
            await asyncio.sleep(due_s - asyncio.get_running_loop().time())
            try:
                await discard(self._blob, garbage)
            except PersistFault as fault:
                _log.warning("garbage is left to the sweeper", reason=str(fault))
