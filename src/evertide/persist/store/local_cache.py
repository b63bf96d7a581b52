"""Copies of an object store's values in local files, for readers that read files themselves.

Spark reads files of this machine for itself and needs nothing else for it. So the values that a
Spark job reads are fetched beforehand, and stay until it has ended. A copy is never needed: what
cannot be kept here, because the disk is full or the copy is damaged, is got from the store again.
"""

import asyncio
import fcntl
import os
import shutil
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import structlog
import xxhash

from evertide.persist.coding.file_checksum import file_checksum
from evertide.persist.faults import StoreFailing
from evertide.persist.store.protocol import BlobStore

_LOCK: Final = "lock"
# Each holds one value in memory.
_FETCHES_AT_ONCE: Final = 8

_log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class _Copy:
    """A file that holds a value. It goes when nobody has it pinned and nobody may ask for it."""

    path: Path
    size_bytes: int
    checksum: int
    pins: int = 1
    dropped: bool = False


class CachedBlob:
    """A blob store with files for its values. One process and one event loop own the directory.

    Copies take `limit_bytes` at most, those used longest ago go first; only those that somebody
    has pinned may be more.
    """

    def __init__(self, inner: BlobStore, directory: Path, limit_bytes: int) -> None:
        self._inner = inner
        self._directory = directory
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        # By key, the one used longest ago first.
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._lock = _own(directory)
        # Whether the log knows that values cannot be kept.
        self._failing = False

    def close(self) -> None:
        """Remove all copies and let go of the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)
        os.close(self._lock)

    async def put(self, key: str, value: bytes) -> None:
        await self._inner.put(key, value)
        await self._release(await self._keep(key, value, needed=False))

    async def get(self, key: str) -> bytes:
        value = await self._get_copy(key)
        if value is None:
            value = await self._inner.get(key)
            await self._release(await self._keep(key, value, needed=False))
        return value

    async def delete(self, key: str) -> None:
        await self._inner.delete(key)
        await _remove(self._drop(key))

    async def keys(self, prefix: str = "") -> list[str]:
        return await self._inner.keys(prefix)

    async def remove_unfinished(self, before_ms: int) -> int:
        return await self._inner.remove_unfinished(before_ms)

    async def read_owner(self) -> bytes | None:
        return await self._inner.read_owner()

    async def write_owner(self, value: bytes) -> None:
        await self._inner.write_owner(value)

    def local_path(self, key: str) -> Path | None:
        copy = self._copies.get(key)
        return None if copy is None else copy.path

    @asynccontextmanager
    async def localize(self, keys: Sequence[str]) -> AsyncIterator[Mapping[str, Path]]:
        pinned: dict[str, _Copy] = {}
        try:
            await self._pin_all(keys, pinned)
            yield {key: copy.path for key, copy in pinned.items()}
        finally:
            await self._release(*pinned.values())

    async def _pin_all(self, keys: Sequence[str], pinned: dict[str, _Copy]) -> None:
        free = asyncio.Semaphore(_FETCHES_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                for key in dict.fromkeys(keys):
                    group.create_task(self._pin(key, free, pinned))
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from None

    async def _pin(self, key: str, free: asyncio.Semaphore, pinned: dict[str, _Copy]) -> None:
        """Pin the copy, after making it if need be; none if there is no room for it."""
        # One fetch at a time for a key: others find its copy.
        lock = self._fetching.setdefault(key, asyncio.Lock())
        async with free, lock:
            copy = self._copies.get(key)
            if copy is not None:
                copy.pins += 1
                pinned[key] = copy
                if await asyncio.to_thread(_is_sound, copy):
                    self._touch(key)
                    return
                del pinned[key]
                await _remove(self._drop(key, copy))
                await self._release(copy)
            copy = await self._keep(key, await self._inner.get(key), needed=True)
            if copy is not None:
                pinned[key] = copy

    async def _get_copy(self, key: str) -> bytes | None:
        """The value, if there is a sound copy."""
        copy = self._copies.get(key)
        if copy is None:
            return None
        copy.pins += 1
        try:
            value = await asyncio.to_thread(_read_sound, copy)
            if value is None:
                await _remove(self._drop(key, copy))
            else:
                self._touch(key)
            return value
        finally:
            await self._release(copy)

    async def _keep(self, key: str, value: bytes, *, needed: bool) -> _Copy | None:
        """Make a copy, pinned once; None if there is no room.

        A caller that is cancelled leaves the writing to itself: a thread cannot be stopped.
        """
        writing = asyncio.create_task(self._write(key, value, needed=needed))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(self._give_back)
            raise

    def _give_back(self, written: "asyncio.Task[_Copy | None]") -> None:
        """Nobody waits for this copy any more: it may stay, but not beyond the limit."""
        _unlink([*self._unpin(written.result()), *self._make_room(0)])

    async def _write(self, key: str, value: bytes, *, needed: bool) -> _Copy | None:
        if not needed and len(value) > self._limit_bytes // 2:
            return None  # it would push out too much of what somebody wanted
        outdated = self._make_room(len(value))
        if not needed and self._used_bytes + len(value) > self._limit_bytes:
            await _remove(outdated)
            return None
        path = self._directory / f"{uuid.uuid4().hex}.parquet"
        self._used_bytes += len(value)
        try:
            checksum = await asyncio.to_thread(_write_copy, path, value, outdated)
        except OSError as error:
            self._used_bytes -= len(value)
            if not self._failing:
                _log.warning("the local cache cannot keep values", reason=str(error))
            self._failing = True
            return None
        self._failing = False
        replaced = self._drop(key)
        copy = self._copies[key] = _Copy(path, len(value), checksum)
        await _remove(replaced)
        return copy

    def _touch(self, key: str) -> None:
        if key in self._copies:
            self._copies.move_to_end(key)

    def _make_room(self, size_bytes: int) -> list[Path]:
        """Give up copies until so much more fits, or only pinned ones are left; their files."""
        idle = [key for key, copy in self._copies.items() if not copy.pins]
        outdated: list[Path] = []
        for key in idle:
            if self._used_bytes + size_bytes <= self._limit_bytes:
                break
            outdated += self._drop(key)
        return outdated

    def _drop(self, key: str, copy: _Copy | None = None) -> list[Path]:
        """Nobody finds this copy from now on, or whichever there is; its file, if it may go."""
        found = self._copies.get(key)
        if found is None or (copy is not None and found is not copy):
            return []
        del self._copies[key]
        found.dropped = True
        return self._freed(found)

    def _unpin(self, copy: _Copy | None) -> list[Path]:
        """Its file, if it may go."""
        if copy is None:
            return []
        copy.pins -= 1
        return self._freed(copy)

    def _freed(self, copy: _Copy) -> list[Path]:
        if copy.pins or not copy.dropped:
            return []
        self._used_bytes -= copy.size_bytes
        return [copy.path]

    async def _release(self, *copies: _Copy | None) -> None:
        freed = [path for copy in copies for path in self._unpin(copy)]
        await _remove([*freed, *self._make_room(0)])


def _own(directory: Path) -> int:
    """Make the directory private and empty, and hold its lock, which the process's end frees.

    What a dead process left is worth nothing: nobody knows whether it was written to the end.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreFailing(f"cache directory {directory}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise StoreFailing(f"cache directory {directory} belongs to another process") from None
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)
    return lock


def _write_copy(path: Path, value: bytes, outdated: Iterable[Path]) -> int:
    """Put the value there, whole or not at all, in the room of what is outdated; its checksum."""
    _unlink(outdated)
    temporary = path.with_name(f".{path.name}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(value)
        temporary.rename(path)
    except OSError:
        _unlink([temporary])
        raise
    return xxhash.xxh3_64_intdigest(value)


def _is_sound(copy: _Copy) -> bool:
    try:
        return file_checksum(copy.path) == copy.checksum
    except OSError:
        return False


def _read_sound(copy: _Copy) -> bytes | None:
    try:
        value = copy.path.read_bytes()
    except OSError:
        return None
    return value if xxhash.xxh3_64_intdigest(value) == copy.checksum else None


async def _remove(paths: Sequence[Path]) -> None:
    if paths:
        await asyncio.to_thread(_unlink, paths)


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            pass  # the next start removes it
