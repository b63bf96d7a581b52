"""A blob store that is read, under what is written in memory: a copy that costs nothing to make."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from evertide.persist.faults import BlobMissing
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.protocol import BlobStore


class OverlayBlob:
    """Never writes to the store below, nor deletes from it."""

    def __init__(self, below: BlobStore) -> None:
        self._below = below
        self._own = MemoryBlob()
        self._deleted: set[str] = set()

    async def put(self, key: str, value: bytes) -> None:
        self._deleted.discard(key)
        await self._own.put(key, value)

    async def get(self, key: str) -> bytes:
        if key in self._deleted:
            raise BlobMissing(key)
        try:
            return await self._own.get(key)
        except BlobMissing:
            return await self._below.get(key)

    async def delete(self, key: str) -> None:
        self._deleted.add(key)
        await self._own.delete(key)

    async def keys(self, prefix: str = "") -> list[str]:
        found = {*await self._own.keys(prefix), *await self._below.keys(prefix)}
        return sorted(found - self._deleted)

    async def remove_unfinished(self, before_ms: int) -> int:  # noqa: ARG002 - not ours to remove
        return 0

    async def read_owner(self) -> bytes | None:
        own = await self._own.read_owner()
        return await self._below.read_owner() if own is None else own

    async def write_owner(self, value: bytes) -> None:
        await self._own.write_owner(value)

    def local_path(self, key: str) -> Path | None:  # noqa: ARG002 - what is in memory has no file
        return None

    @asynccontextmanager
    async def localize(
        self,
        keys: Sequence[str],  # noqa: ARG002 - what is in memory has no file
    ) -> AsyncIterator[Mapping[str, Path]]:
        yield {}
