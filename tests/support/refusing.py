"""Stores that take no changes while a fault is set, and one that breaks; reads go on."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from evertide.persist.faults import PersistFault
from evertide.persist.store.protocol import (
    AppliedWrite,
    BlobStore,
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


class RefusingConsensus:
    """Raises `fault` instead of changing anything; counts what it was asked."""

    def __init__(self, inner: Consensus) -> None:
        self._inner = inner
        self.fault: PersistFault | None = None
        self.changes = 0

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        return await self._inner.head(shard_id, known_seqno)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return await self._inner.heads(known_seqnos)

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
        self._count()
        return await self._inner.compare_and_set_all(
            sets, applied=applied, claimed=claimed, stash=stash, raises_epoch=raises_epoch
        )

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        self._count()
        return await self._inner.compare_and_set_each(sets)

    def _count(self) -> None:
        self.changes += 1
        if self.fault is not None:
            raise self.fault


class BreakingConsensus(RefusingConsensus):
    """Raises what `breaks` gives for a change, before it is made or, if `late`, once it is made."""

    def __init__(self, inner: Consensus) -> None:
        super().__init__(inner)
        self.breaks: Callable[[set[ShardId]], Exception | None] = lambda _: None
        self.late = False

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        error = self.breaks({change.shard_id for change in sets})
        if error is not None and not self.late:
            raise error
        outcome = await super().compare_and_set_all(
            sets, applied=applied, claimed=claimed, stash=stash, raises_epoch=raises_epoch
        )
        if error is not None:
            raise error
        return outcome


class RefusingBlob:
    """Raises `fault` instead of storing anything; counts what it was asked."""

    def __init__(self, inner: BlobStore) -> None:
        self._inner = inner
        self.fault: PersistFault | None = None
        self.puts = 0

    async def put(self, key: str, value: bytes) -> None:
        self.puts += 1
        if self.fault is not None:
            raise self.fault
        await self._inner.put(key, value)

    async def get(self, key: str) -> bytes:
        return await self._inner.get(key)

    async def delete(self, key: str) -> None:
        await self._inner.delete(key)

    async def keys(self, prefix: str = "") -> list[str]:
        return await self._inner.keys(prefix)

    async def remove_unfinished(self, before_ms: int) -> int:
        return await self._inner.remove_unfinished(before_ms)

    async def read_owner(self) -> bytes | None:
        return await self._inner.read_owner()

    async def write_owner(self, value: bytes) -> None:
        await self._inner.write_owner(value)

    def local_path(self, key: str) -> Path | None:
        return self._inner.local_path(key)

    def localize(self, keys: Sequence[str]) -> AbstractAsyncContextManager[Mapping[str, Path]]:
        return self._inner.localize(keys)
