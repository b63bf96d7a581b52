"""Looking after shards that nobody looks after, and after parts that no shard refers to.

Processes tidy up behind themselves, until they die. One process of an environment, its supervisor,
goes over all shards again and again, and needs no memory of what went wrong: it compares what is
stored with what is referred to.

Why a part that is about to be referred to is never taken away. Whoever stored it has MAX_AGE_MS to
refer to it; that is looked at before each try (part_age.py). The sweeper takes what it has seen
unreferenced for longer, by its own clock, so no new try will name it. A try that was decided before
and is still on its way rests on a state that it has read; so the sweeper first sets the state once
more, as it is. From then on such a try is refused as any that lost a race, and decided again.

Why a part that is still being read is not taken away: it was unreferenced for the whole grace
period that readers have.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Final

import structlog

from evertide.persist.coding.schemas import relation_of
from evertide.persist.faults import Fenced, StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.machine import Applied
from evertide.persist.prepare import made_at_ms
from evertide.persist.purge import DROP_GRACE_MS, is_purged, note_forgotten, purge
from evertide.persist.state import (
    BlobPart,
    Changed,
    ShardChange,
    ShardState,
    decode_state,
    drop_expired,
    existing,
)
from evertide.persist.store.protocol import CompareAndSet, Consensus, Head, SetMismatch
from evertide.persist.trouble import PASSING
from evertide.persist.upkeep.maintenance import GARBAGE_GRACE_S
from evertide.persist.upkeep.part_age import group_of
from evertide.vocab.clock import Clock
from evertide.vocab.ids import ShardId

# What is not named like a part is none of ours.
_PART: Final = re.compile(r"[^/]+/\d+-[^/]+\.parquet")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SweepTimes:
    """How long things are left alone."""

    # Between two sweeps.
    pause_s: float = GARBAGE_GRACE_S
    # A part goes when it was unreferenced for `unreferenced_ms`, and is `old_ms` old by its name.
    unreferenced_ms: int = int(GARBAGE_GRACE_S * 1_000)
    old_ms: int = 3_600_000
    # A dropped shard's contents go this long after it was found dropped.
    dropped_ms: int = DROP_GRACE_MS


SWEEP_TIMES: Final = SweepTimes()


@dataclass(slots=True)
class Swept:
    """What one sweep did."""

    deleted: list[str] = field(default_factory=list)
    purged: list[ShardId] = field(default_factory=list)
    leases_ended: int = 0
    merges_requested: int = 0
    # Puts that never ended, whose leftovers were removed.
    unfinished: int = 0


async def again_and_again(
    sweep_once: Callable[[], Awaitable[object]], pause_s: float, failed: str
) -> None:
    """For ever. Raises Fenced and StoreUnreachable, which concern the whole process."""
    while True:
        try:
            await sweep_once()
        except (Fenced, StoreUnreachable):
            raise
        except Exception as error:  # noqa: BLE001 - what is left behind is found the next time
            _log.warning(failed, error=repr(error))
        await asyncio.sleep(pause_s)


class Sweeper:
    """One per environment is enough; several do no harm."""

    def __init__(
        self,
        client: PersistClient,
        consensus: Consensus,
        clock: Clock,
        times: SweepTimes = SWEEP_TIMES,
    ) -> None:
        self._client = client
        self._consensus = consensus
        self._clock = clock
        self._times = times
        # Since when each part has been seen unreferenced.
        self._unreferenced: dict[ShardId, dict[str, int]] = {}
        # Purged shards that have no parts left, which never changes any more.
        self._done: set[ShardId] = set()

    async def run(self) -> None:
        """Sweep for ever. Raises Fenced and StoreUnreachable, which concern the whole process."""
        await again_and_again(self.sweep_once, self._times.pause_s, "sweep failed")

    async def sweep_once(self) -> Swept:
        """Go over all shards, with no more in memory than concerns one of them."""
        swept = Swept()
        shard_ids = await self._consensus.shard_ids()
        for shard_id in shard_ids:
            if shard_id in self._done:
                continue
            try:
                await self._sweep(shard_id, swept)
            except PASSING as error:
                # Others after it have their turn nevertheless.
                _log.error("shard cannot be swept", shard_id=shard_id, error=str(error))
        await self._remove_unfinished(swept)
        if swept.deleted or swept.purged or swept.unfinished:
            _log.info(
                "swept",
                parts=len(swept.deleted),
                shards=len(swept.purged),
                unfinished=swept.unfinished,
            )
        return swept

    async def _remove_unfinished(self, swept: Swept) -> None:
        before_ms = self._clock.now_ms() - self._times.old_ms
        try:
            swept.unfinished = await self._client.blob.remove_unfinished(before_ms)
        except PASSING as error:
            _log.error("unfinished puts cannot be removed", error=str(error))

    async def _sweep(self, shard_id: ShardId, swept: Swept) -> None:
        # Before the state: a part that is stored and referred to in between is seen there.
        listed = await self._client.blob.keys(f"{shard_id}/")
        keys = {key for key in listed if _PART.fullmatch(key)}
        head = await self._consensus.head(shard_id)
        assert isinstance(head, Head), "shards stay, and no seqno was named"
        state = decode_state(head.value, shard_id)
        garbage = self._garbage(shard_id, keys - _referred(state))
        if garbage:
            swept.deleted += await self._delete(shard_id, head, garbage)
        if is_purged(state) and not keys:
            self._done.add(shard_id)
            return
        await self._tidy(shard_id, state, swept)

    def _garbage(self, shard_id: ShardId, unreferenced: set[str]) -> list[str]:
        """Those that have been unreferenced for long enough, and all that belong with them."""
        now_ms = self._clock.now_ms()
        known = self._unreferenced.pop(shard_id, {})
        since_ms = {key: known.get(key, now_ms) for key in unreferenced}
        if since_ms:
            self._unreferenced[shard_id] = since_ms
        groups = groupby(sorted(since_ms, key=group_of), key=group_of)
        return [key for _, group in groups for key in self._old(list(group), since_ms, now_ms)]

    def _old(self, group: list[str], since_ms: Mapping[str, int], now_ms: int) -> list[str]:
        """The group, if even the last that came to it has been there long enough."""
        unreferenced_ms = now_ms - max(since_ms[key] for key in group)
        age_ms = now_ms - max(map(made_at_ms, group))
        old = unreferenced_ms >= self._times.unreferenced_ms and age_ms >= self._times.old_ms
        return group if old else []

    async def _delete(self, shard_id: ShardId, head: Head, garbage: Sequence[str]) -> list[str]:
        """Delete what no try that is under way can still bring into the state."""
        again = CompareAndSet(shard_id, head.seqno, head.value)
        if isinstance(await self._consensus.compare_and_set_all([again]), SetMismatch):
            # Somebody else has set it, which does as well. It may have been such a try.
            newest = await self._consensus.head(shard_id)
            assert isinstance(newest, Head), "shards stay, and no seqno was named"
            referred = _referred(decode_state(newest.value, shard_id))
            garbage = [key for key in garbage if key not in referred]
        return list(garbage) if await self._client.blob.delete(*garbage) else []

    async def _tidy(self, shard_id: ShardId, state: ShardState, swept: Swept) -> None:
        """Leases end, dropped shards are purged, and merges are asked for where one is due."""
        now_ms = self._clock.now_ms()
        ended = len(state.holds) - len(drop_expired(state, now_ms).holds)
        if ended and await self._change(shard_id, partial(drop_expired, now_ms=now_ms)):
            swept.leases_ended += ended
        if state.forgotten and not is_purged(state):
            await self._drop(shard_id, state, swept)
        elif state.schemas and self._client.maintenance.is_due(state):
            self._client.maintenance.request(shard_id, relation_of(state.schemas[-1]))
            swept.merges_requested += 1

    async def _drop(self, shard_id: ShardId, state: ShardState, swept: Swept) -> None:
        now_ms, grace_ms = self._clock.now_ms(), self._times.dropped_ms
        if state.forgotten_at_ms is None:
            await self._change(shard_id, partial(note_forgotten, now_ms=now_ms))
        elif await self._change(shard_id, partial(purge, now_ms=now_ms, grace_ms=grace_ms)):
            swept.purged.append(shard_id)

    async def _change(self, shard_id: ShardId, transition: Callable[[ShardState], Changed]) -> bool:
        change = ShardChange(shard_id, existing(transition))
        return isinstance(await self._client.machine.apply_all([change]), Applied)


def _referred(state: ShardState) -> set[str]:
    parts = (part for batch in state.batches for part in batch.parts)
    return {part.key for part in parts if isinstance(part, BlobPart)}
