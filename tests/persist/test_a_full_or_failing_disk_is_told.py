"""Goal: local stores tell a full disk from a failing one, undo what they began, and go on later.

Method: a small file system that is filled; system calls of the blob store that fail; a log file
that is cut while it is read.
"""

import asyncio
import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from evertide.persist.faults import BlobMissing, PersistFault, StoreFailing, StoreFull
from evertide.persist.store.file import FileBlob
from evertide.persist.store.protocol import AllSet, CompareAndSet, Consensus, Head, Unchanged
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from tests.support.fault_injection import full, mounting, small_disk

SHARD, OTHER = ShardId("a"), ShardId("b")


@pytest.fixture
def disks() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("call", "number", "fault"),
    [
        ("write", errno.ENOSPC, StoreFull),
        ("write", errno.EDQUOT, StoreFull),
        ("write", errno.EIO, StoreFailing),
        ("fsync", errno.ENOSPC, StoreFull),
        ("fsync", errno.EIO, StoreFailing),
        ("open", errno.EROFS, StoreFailing),
    ],
)
async def test_a_put_that_fails_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    number: int,
    fault: type[PersistFault],
) -> None:
    blob = FileBlob(tmp_path)
    await blob.put("shard/before", b"1")

    def failing(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, failing)
        with pytest.raises(fault, match=os.strerror(number)):
            await blob.put("shard/key", b"2")
    assert _files(tmp_path) == ["before"]
    with pytest.raises(BlobMissing):
        await blob.get("shard/key")
    await blob.put("shard/later", b"3")
    assert await blob.get("shard/later") == b"3"


def _directories_fail(monkeypatch: pytest.MonkeyPatch, synced: list[Path]) -> None:
    """From now on an fsync of a directory fails; every one of them is noted."""
    real: Callable[[int], None] = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            synced.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


async def test_a_name_that_may_not_last_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = FileBlob(tmp_path)
    await blob.put("shard/before", b"1")
    with monkeypatch.context() as broken:
        _directories_fail(broken, [])
        with pytest.raises(StoreFailing):
            await blob.put("shard/key", b"2")
    assert _files(tmp_path) == ["before"]


async def test_whose_a_directory_is_can_be_read_even_if_its_name_may_not_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it nobody could open the environment any more."""
    blob = FileBlob(tmp_path)
    await blob.write_owner(b"before")
    with monkeypatch.context() as broken:
        _directories_fail(broken, [])
        with pytest.raises(StoreFailing):
            await blob.write_owner(b"after")
    assert await blob.read_owner() == b"after"
    assert not list(tmp_path.rglob(".writing-*"))


async def test_a_directory_that_may_not_last_is_synced_by_the_next_who_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = FileBlob(tmp_path)
    synced: list[Path] = []
    _directories_fail(monkeypatch, synced)
    for user in (blob, blob, FileBlob(tmp_path)):
        with pytest.raises(StoreFailing):
            await user.put("new/key", b"1")
    assert synced == [tmp_path] * 3, "a directory that is there may not be there for good"


@mounting
def test_without_room_parts_are_refused_and_leave_nothing(tmp_path: Path, disks: ExitStack) -> None:
    disk = disks.enter_context(small_disk(tmp_path / "disk", 8))
    blob = FileBlob(disk / "blob")

    async def run() -> None:
        await blob.put("shard/before", b"1" * 100_000)
        with full(disk):
            for _ in range(3):
                with pytest.raises(StoreFull):
                    await blob.put("shard/key", b"2" * 100_000)
            assert await blob.get("shard/before") == b"1" * 100_000
        assert _files(disk) == ["before"]
        await blob.put("shard/key", b"2" * 100_000)

    asyncio.run(run())


@mounting
def test_without_room_changes_are_refused_at_once_and_reads_go_on(
    tmp_path: Path, disks: ExitStack
) -> None:
    disk = disks.enter_context(small_disk(tmp_path / "disk", 32))

    async def run() -> None:
        # Whoever waited for the lock's timeout would wait longer than a test may.
        store = SqliteStore(disk / "consensus.db", lock_timeout_s=3_600)
        epoch = await store.raise_epoch()
        consensus = store.consensus(epoch)
        await consensus.compare_and_set_all([CompareAndSet(SHARD, None, b"1")])
        with full(disk):
            # The last one is larger than SQLite's cache: it fails before the commit.
            for size in (1, 100_000, 1, 6_000_000, 1):
                sets = [CompareAndSet(SHARD, 1, b"2" * size)]
                refused = await asyncio.gather(
                    *(consensus.compare_and_set_all(sets) for _ in range(20)),
                    return_exceptions=True,
                )
                assert all(isinstance(outcome, StoreFull) for outcome in refused), refused
            assert await consensus.head(SHARD) == Head(1, b"1")
            joined = SqliteStore(disk / "consensus.db")
            assert await joined.current_epoch() == epoch
            assert await joined.consensus(epoch).head(SHARD) == Head(1, b"1")
            await joined.close()
        sets = [CompareAndSet(SHARD, 1, b"2" * 6_000_000)]
        assert await consensus.compare_and_set_all(sets) == AllSet()
        await store.close()
        again = SqliteStore(disk / "consensus.db")
        assert await again.consensus(epoch).head(SHARD) == Head(2, b"2" * 6_000_000)
        await again.close()

    asyncio.run(run())


async def test_what_cannot_be_read_is_a_failing_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "consensus.db")
    consensus = store.consensus(await store.raise_epoch())
    value = b"1" * 50_000
    await consensus.compare_and_set_all([CompareAndSet(s, None, value) for s in (SHARD, OTHER)])

    def heads() -> dict[ShardId, Head | Unchanged | None]:
        return asyncio.run(consensus.heads({SHARD: None, OTHER: None}))

    log = tmp_path / "consensus.db-wal"
    whole = log.read_bytes()
    # A thread of its own, whose connection has seen where the shards are, and not their values.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: asyncio.run(consensus.shard_ids())).result() == [SHARD, OTHER]
        os.truncate(log, 1_000)
        for _ in range(2):
            with pytest.raises(StoreFailing, match="SQLITE_IOERR"):
                thread.submit(heads).result()
        log.write_bytes(whole)
        assert thread.submit(heads).result() == {SHARD: Head(1, value), OTHER: Head(1, value)}
    await store.close()


LONG_LOG = """
import asyncio, os, sys
from pathlib import Path
from evertide.persist.store.protocol import CompareAndSet
from evertide.persist.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    consensus = store.consensus(await store.raise_epoch())
    for seqno in (None, 1, 2, 3, 4, 5):
        value = bytes([seqno or 0]) * 6_000_000
        sets = [CompareAndSet(name, seqno, value) for name in "ab"]
        await consensus.compare_and_set_all(sets)
    await consensus.compare_and_set_all([CompareAndSet("c", None, b"")])
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@mounting
def test_a_commit_that_only_the_index_of_the_log_has_no_room_for(
    tmp_path: Path, disks: ExitStack
) -> None:
    """It lies in the log whole, so it is not "full, and nothing was done": a crash brings it back.

    The log is long already, as a process that was killed left it; its index begins anew, and finds
    no room for its second page on a disk that is full.
    """
    disk = disks.enter_context(small_disk(tmp_path / "disk", 96))
    path = disk / "consensus.db"
    killed = subprocess.run([sys.executable, "-c", LONG_LOG, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    # While anybody has the file open, nobody makes the log shorter.
    opened = disks.enter_context(closing(sqlite3.connect(path)))
    opened.execute("SELECT epoch FROM epoch").fetchall()

    async def run() -> None:
        store = SqliteStore(path, lock_timeout_s=3_600)
        epoch = await store.raise_epoch()
        consensus = store.consensus(epoch)
        with full(disk):
            done = await set_until_refused(consensus)
            assert await consensus.head(SHARD) == done, "it is not visible"
            crashed = tmp_path / "crashed"
            crashed.mkdir()
            for name in ("consensus.db", "consensus.db-wal"):
                shutil.copy(disk / name, crashed)
            after = SqliteStore(crashed / "consensus.db")
            found = await after.consensus(epoch).head(SHARD)
            assert isinstance(found, Head)
            assert found.seqno == done.seqno + 1, "and yet it is there after a crash"
            await after.close()
        assert (
            await consensus.compare_and_set_all([CompareAndSet(SHARD, done.seqno, b"later")])
            == AllSet()
        )
        await store.close()

    asyncio.run(run())


async def set_until_refused(consensus: Consensus) -> Head:
    """Set a value of some hundred pages until that fails, as it must; the last that was set."""
    done = await consensus.head(SHARD)
    assert isinstance(done, Head)
    for number in range(60):
        value = bytes([number]) * 1_600_000
        change = consensus.compare_and_set_all([CompareAndSet(SHARD, done.seqno, value)])
        (outcome,) = await asyncio.gather(change, return_exceptions=True)
        if outcome != AllSet():
            assert isinstance(outcome, StoreFailing), repr(outcome)
            assert "SQLITE_IOERR_SHMSIZE" in str(outcome)
            return done
        done = Head(done.seqno + 1, value)
    raise AssertionError("every commit found room")
