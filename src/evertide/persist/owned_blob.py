"""The blob store as this process may use it: nothing is deleted before somebody has looked whose
it is. Every deletion in the program comes through here."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from evertide.persist.store.protocol import BlobStore


class Owner(Protocol):
    """Who knows whose the blob store is (owner.py)."""

    async def may_delete(self) -> bool:
        """Whether it is ours at this moment. The answer holds for one batch, and no longer."""
        ...


class OwnedBlob:
    """A blob store, and whoever knows whose it is; nobody: it is not ours."""

    def __init__(self, store: BlobStore, owner: Owner | None) -> None:
        self._store = store
        self._owner = owner

    async def delete(self, *keys: str) -> bool:
        """Delete them all, or none and return False: the store is not ours.

        Looked at in each call, so after the caller has decided what to delete. Nothing happens for
        a key that is not there.
        """
        if keys and not await self._is_ours():
            return False
        for key in keys:
            await self._store.delete(key)
        return True

    async def remove_unfinished(self, before_ms: int) -> int:
        """As the store does, if it is ours; how many were removed."""
        return await self._store.remove_unfinished(before_ms) if await self._is_ours() else 0

    async def _is_ours(self) -> bool:
        return self._owner is not None and await self._owner.may_delete()

    async def put(self, key: str, value: bytes) -> None:
        await self._store.put(key, value)

    async def get(self, key: str) -> bytes:
        return await self._store.get(key)

    async def keys(self, prefix: str = "") -> list[str]:
        return await self._store.keys(prefix)

    def local_path(self, key: str) -> Path | None:
        return self._store.local_path(key)

    def localize(self, keys: Sequence[str]) -> AbstractAsyncContextManager[Mapping[str, Path]]:
        return self._store.localize(keys)
