"""Blob stores that are ours whatever they say: for tests of what is deleted, not of by whom."""

from typing import Final

from evertide.persist.owned_blob import OwnedBlob
from evertide.persist.store.protocol import BlobStore


class Ours:
    """An owner that need not look."""

    async def may_delete(self) -> bool:
        return True


OURS: Final = Ours()


def owned(blob: BlobStore) -> OwnedBlob:
    """The store as its owner may use it."""
    return OwnedBlob(blob, OURS)
