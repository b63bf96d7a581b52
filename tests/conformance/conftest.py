"""Every implementation of every storage protocol."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evertide.persist.store.file import FileBlob
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import Blob, Store
from evertide.persist.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    match request.param:
        case "memory":
            opened = MemoryStore()
        case "sqlite":
            opened = SqliteStore(tmp_path / "consensus.db")
    yield opened
    await opened.close()


@pytest.fixture(params=["memory", "file"])
def blob(request: pytest.FixtureRequest, tmp_path: Path) -> Blob:
    return MemoryBlob() if request.param == "memory" else FileBlob(tmp_path / "blob")
