"""Large values as files of one directory, durable before a put returns."""

import asyncio
import os
import re
from itertools import count
from pathlib import Path
from typing import Final

from evertide.persist.faults import BlobMissing

_KEY: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
_TEMPORARY: Final = ".writing-"


class FileBlob:
    """One file per key. Work on files happens in threads, because fsync blocks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = count()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def put(self, key: str, value: bytes) -> None:
        await asyncio.to_thread(self._put, self._path(key), value)

    async def get(self, key: str) -> bytes:
        try:
            return await asyncio.to_thread(self._path(key).read_bytes)
        except FileNotFoundError:
            raise BlobMissing(key) from None

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._path(key).unlink, missing_ok=True)

    async def keys(self, prefix: str = "") -> list[str]:
        return await asyncio.to_thread(self._keys, prefix)

    def local_path(self, key: str) -> Path | None:
        return self._path(key)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a blob key: {key!r}")
        return self._root / key

    def _put(self, path: Path, value: bytes) -> None:
        self._make_directory(path.parent)
        temporary = path.with_name(f"{_TEMPORARY}{os.getpid()}-{next(self._numbers)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(value)
            file.flush()
            os.fsync(descriptor)
        temporary.rename(path)
        _sync_directory(path.parent)

    def _make_directory(self, directory: Path) -> None:
        """Make it and those above it; a new name lasts once the directory holding it is synced."""
        if directory.is_dir():
            return
        self._make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        _sync_directory(directory.parent)

    def _keys(self, prefix: str) -> list[str]:
        files = (path for path in self._root.rglob("*") if path.is_file())
        keys = (str(path.relative_to(self._root)) for path in files)
        return sorted(key for key in keys if key.startswith(prefix) and _KEY.fullmatch(key))


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
