"""A consensus that takes its time, so that other work comes in between."""

import asyncio
import random
from collections.abc import Mapping, Sequence

from evertide.persist.store.protocol import (
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    CompareAndSet,
    Consensus,
    Head,
    SetOutcome,
    StashAppend,
    Unchanged,
)
from evertide.vocab.ids import ShardId


class JitteryConsensus:
    """A consensus whose calls start and answer some random steps of the event loop later."""

    def __init__(self, inner: Consensus, rng: random.Random) -> None:
        self._inner = inner
        self._rng = rng

    async def _wait(self) -> None:
        for _ in range(self._rng.randrange(4)):
            await asyncio.sleep(0)

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        await self._wait()
        found = await self._inner.head(shard_id, known_seqno)
        await self._wait()
        return found

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        await self._wait()
        found = await self._inner.heads(known_seqnos)
        await self._wait()
        return found

    async def shard_ids(self) -> list[ShardId]:
        return await self._inner.shard_ids()

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        await self._wait()
        outcome = await self._inner.compare_and_set_all(
            sets, applied=applied, claimed=claimed, stash=stash, raises_epoch=raises_epoch
        )
        await self._wait()
        return outcome

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        await self._wait()
        outcome = await self._inner.compare_and_set_each(sets)
        await self._wait()
        return outcome
