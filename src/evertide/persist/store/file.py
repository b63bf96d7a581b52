"""Large values as files of one directory, durable before a put returns.

A put that fails leaves nothing under its key, and takes back the room that it took. One whose
process was killed leaves a file that no key names, until remove_unfinished finds it old.
"""

import asyncio
import errno
import os
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

from evertide.persist.faults import BlobMissing, Corrupt, StoreFailing, StoreFull
from evertide.persist.store.blob_key import check_key, is_key
from evertide.persist.store.protocol import OWNER_BYTES, OWNER_KEY

_TEMPORARY: Final = ".writing-"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)

T = TypeVar("T")


class FileBlob:
    """One file per key. Work on files happens in threads, because fsync blocks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # Directories whose names are known to outlast a crash. One that was found may be another
        # process's, made and not synced yet, or one whose sync failed.
        self._lasting = {root}
        _answered(lambda: _make_root(root))

    async def put(self, key: str, value: bytes) -> None:
        path = self._path(key)
        await asyncio.to_thread(_answered, lambda: self._put(path, value))

    async def get(self, key: str) -> bytes:
        path = self._path(key)
        return await asyncio.to_thread(_answered, lambda: _read(path, key))

    async def delete(self, key: str) -> None:
        path = self._path(key)
        await asyncio.to_thread(_answered, lambda: path.unlink(missing_ok=True))

    async def keys(self, prefix: str = "") -> list[str]:
        return await asyncio.to_thread(_answered, lambda: self._keys(prefix))

    async def remove_unfinished(self, before_ms: int) -> int:
        return await asyncio.to_thread(_answered, lambda: self._remove_unfinished(before_ms))

    async def read_owner(self) -> bytes | None:
        return await asyncio.to_thread(_answered, lambda: _read_owner(self._path(OWNER_KEY)))

    async def write_owner(self, value: bytes) -> None:
        await asyncio.to_thread(_answered, lambda: self._write_owner(value))

    def local_path(self, key: str) -> Path | None:
        return self._path(key)

    @asynccontextmanager
    async def localize(self, keys: Sequence[str]) -> AsyncIterator[Mapping[str, Path]]:
        yield {key: self._path(key) for key in keys}

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    def _put(self, path: Path, value: bytes) -> None:
        self._make_directory(path.parent)
        _replace(path, value)
        try:
            _sync_directory(path.parent)
        except BaseException:
            # A crash might undo the rename: nobody may come to rely on this name.
            _remove(path)
            raise

    def _write_owner(self, value: bytes) -> None:
        """Unlike a value it stays if the sync fails: what a crash brings back was true once."""
        _replace(self._path(OWNER_KEY), value)
        _sync_directory(self._root)

    def _make_directory(self, directory: Path) -> None:
        """Make it and those above it; a new name lasts once the directory holding it is synced."""
        if directory in self._lasting:
            return
        self._make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        _sync_directory(directory.parent)
        self._lasting.add(directory)

    def _keys(self, prefix: str) -> list[str]:
        directory = self._root / prefix.rpartition("/")[0]
        files = (path for path in directory.rglob("*") if path.is_file())
        keys = (str(path.relative_to(self._root)) for path in files)
        return sorted(key for key in keys if key.startswith(prefix) and is_key(key))

    def _remove_unfinished(self, before_ms: int) -> int:
        removed = 0
        for path in self._root.rglob(f"{_TEMPORARY}*"):
            try:
                if path.stat().st_mtime_ns // 1_000_000 < before_ms:
                    path.unlink()
                    removed += 1
            except FileNotFoundError:
                pass  # its put has ended just now
        return removed


def _answered(call: Callable[[], T]) -> T:
    """What the file system answers, its refusals as faults."""
    try:
        return call()
    except OSError as error:
        reason = f"blob: {error.strerror}"
        raise (StoreFull if error.errno in _NO_ROOM else StoreFailing)(reason) from error


def _make_root(root: Path) -> None:
    if not root.is_dir():
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sync_directory(root.parent)


def _read(path: Path, key: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BlobMissing(key) from None


def _read_owner(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            value = file.read(OWNER_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(value) > OWNER_BYTES:
        raise Corrupt("it is too long", key=OWNER_KEY)
    return value


def _replace(path: Path, value: bytes) -> None:
    """Nobody else may come by the same temporary name: not another process, nor one of another
    machine or container, which may well have the same number."""
    temporary = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")
    try:
        _write_durably(temporary, value)
        temporary.rename(path)
    except BaseException:
        _remove(temporary)
        raise


def _write_durably(path: Path, value: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # Without a buffer of its own, whose rest would be written, and fail, once more by a close.
        rest = memoryview(value)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass  # garbage, which costs room and harms nobody
