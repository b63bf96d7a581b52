"""Goal: copies in local files spare requests; whatever befalls them, answers are the store's.

Method: a store that counts what it is asked, and harm done to the copies.
"""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from evertide.persist.faults import BlobMissing, StoreFailing, StoreUnreachable
from evertide.persist.store import local_cache
from evertide.persist.store.local_cache import CachedBlob
from evertide.persist.store.memory import MemoryBlob
from tests.support.fault_injection import full, mounting, small_disk

LIMIT = 1_000


class CountingBlob(MemoryBlob):
    """Counts gets by key; a get waits until `open`."""

    def __init__(self) -> None:
        super().__init__()
        self.gets: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.reachable = True

    async def get(self, key: str) -> bytes:
        self.gets.append(key)
        await self.open.wait()
        if not self.reachable:
            raise StoreUnreachable("as the test wished")
        return await super().get(key)


@pytest.fixture
def inner() -> CountingBlob:
    return CountingBlob()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cached(inner: CountingBlob, directory: Path) -> Iterator[CachedBlob]:
    with contextlib.closing(CachedBlob(inner, directory, LIMIT)) as blob:
        yield blob


def value_of(key: str) -> bytes:
    return key.encode() * (100 // len(key))


async def fill(inner: CountingBlob, count: int) -> list[str]:
    """Values of a tenth of the limit each, put by somebody else."""
    keys = [f"s/{number:02}" for number in range(count)]
    for key in keys:
        await inner.put(key, value_of(key))
    return keys


async def others_have_ended() -> None:
    """Writing that was under way when its reader gave up goes on to its end."""
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0.001)


def used_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


async def test_what_was_got_or_put_is_not_asked_for_again(
    inner: CountingBlob, cached: CachedBlob
) -> None:
    (key,) = await fill(inner, 1)
    assert cached.local_path(key) is None
    assert await cached.get(key) == await cached.get(key) == value_of(key)
    await cached.put("s/own", b"own")
    assert await cached.get("s/own") == b"own"
    assert inner.gets == [key]
    assert await inner.get("s/own") == b"own"


async def test_the_disk_is_bounded_and_what_was_used_longest_ago_goes(
    inner: CountingBlob, cached: CachedBlob, directory: Path
) -> None:
    keys = await fill(inner, 12)
    for key in keys[:9]:
        await cached.get(key)
    await cached.get(keys[0])
    for key in keys[9:]:
        await cached.get(key)
        assert used_bytes(directory) <= LIMIT
    kept = [key for key in keys if cached.local_path(key) is not None]
    assert kept == [keys[0], *keys[3:]]


async def test_a_value_that_would_push_out_most_others_is_not_kept(
    inner: CountingBlob, cached: CachedBlob, directory: Path
) -> None:
    (key,) = await fill(inner, 1)
    await cached.get(key)
    await cached.put("s/large", bytes(LIMIT))
    assert cached.local_path("s/large") is None
    assert cached.local_path(key) is not None


async def test_files_stay_while_somebody_reads_them(
    inner: CountingBlob, cached: CachedBlob, directory: Path
) -> None:
    """More than the limit, and others are got meanwhile."""
    keys = await fill(inner, 40)
    async with cached.localize(keys[:20]) as files:
        async with cached.localize(keys[:5]):
            pass
        for key in keys[20:]:
            await cached.get(key)
        assert {key: path.read_bytes() for key, path in files.items()} == {
            key: value_of(key) for key in keys[:20]
        }
        assert cached.local_path(keys[39]) is None
    assert used_bytes(directory) <= LIMIT
    assert sum(path.exists() for path in files.values()) == 10


async def test_a_deleted_value_stays_for_its_readers_and_for_nobody_else(
    inner: CountingBlob, cached: CachedBlob, directory: Path
) -> None:
    (key,) = await fill(inner, 1)
    async with cached.localize([key]) as files:
        await cached.delete(key)
        assert files[key].read_bytes() == value_of(key)
        with pytest.raises(BlobMissing):
            await cached.get(key)
        with pytest.raises(BlobMissing):
            async with cached.localize([key]):
                pass
    assert used_bytes(directory) == 0


async def test_readers_of_one_value_share_one_request(
    inner: CountingBlob, cached: CachedBlob
) -> None:
    keys = await fill(inner, 3)

    async def read() -> list[bytes]:
        async with cached.localize(keys) as files:
            return [files[key].read_bytes() for key in keys]

    found = await asyncio.gather(*(read() for _ in range(5)))
    assert found == [[value_of(key) for key in keys]] * 5
    assert sorted(inner.gets) == keys


async def test_a_missing_value_is_the_fault_and_nothing_stays_pinned(
    inner: CountingBlob, cached: CachedBlob, directory: Path
) -> None:
    keys = await fill(inner, 20)
    with pytest.raises(BlobMissing) as missing:
        async with cached.localize([*keys, "s/none"]):
            pass
    assert missing.value.key == "s/none"
    await others_have_ended()
    assert used_bytes(directory) <= LIMIT


async def test_a_fault_of_a_reader_is_its_own(inner: CountingBlob, cached: CachedBlob) -> None:
    keys = await fill(inner, 1)
    group = ExceptionGroup("the reader's", [ValueError("1"), ValueError("2")])
    with pytest.raises(ExceptionGroup) as raised:
        async with cached.localize(keys):
            raise group
    assert raised.value is group


@pytest.mark.parametrize("steps", range(8))
async def test_a_reader_that_is_cancelled_leaves_nothing_pinned(
    inner: CountingBlob, cached: CachedBlob, directory: Path, steps: int
) -> None:
    """At whatever moment: before, while and after values are fetched and written."""
    keys = await fill(inner, 20)

    async def read() -> None:
        async with cached.localize(keys):
            await asyncio.Event().wait()

    reader = asyncio.create_task(read())
    for _ in range(steps * 5):
        await asyncio.sleep(0.001)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    while used_bytes(directory) > LIMIT:  # a thread may still be writing
        await asyncio.sleep(0.001)
        await cached.get(keys[0])
    async with cached.localize(keys) as files:
        assert [files[key].read_bytes() for key in keys] == [value_of(key) for key in keys]
    assert used_bytes(directory) <= LIMIT


async def test_a_reader_cancelled_while_a_file_is_written_does_not_hold_it(
    inner: CountingBlob, cached: CachedBlob, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = await fill(inner, 12)
    begun, allowed = threading.Event(), threading.Event()
    write = local_cache._write_copy

    def slow_write(path: Path, value: bytes, outdated: Iterable[Path]) -> int:
        begun.set()
        assert allowed.wait(timeout=60)
        return write(path, value, outdated)

    monkeypatch.setattr(local_cache, "_write_copy", slow_write)
    reader = asyncio.create_task(cached.localize([keys[0]]).__aenter__())
    await asyncio.to_thread(begun.wait, 60)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    allowed.set()
    while cached.local_path(keys[0]) is None:
        await asyncio.sleep(0.001)
    for key in keys[1:]:
        await cached.get(key)
    assert cached.local_path(keys[0]) is None


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "remove"])
async def test_a_damaged_copy_is_replaced(
    inner: CountingBlob, cached: CachedBlob, harm: str
) -> None:
    (key,) = await fill(inner, 1)

    def damage() -> None:
        path = cached.local_path(key)
        assert path is not None
        stored = path.read_bytes()
        match harm:
            case "flip":
                path.write_bytes(bytes([stored[0] ^ 1]) + stored[1:])
            case "cut":
                path.write_bytes(stored[:-1])
            case "empty":
                path.write_bytes(b"")
            case "remove":
                path.unlink()

    await cached.get(key)
    damage()
    assert await cached.get(key) == value_of(key)
    damage()
    async with cached.localize([key]) as files:
        assert files[key].read_bytes() == value_of(key)
    assert inner.gets == [key] * 3


@mounting
def test_a_full_disk_costs_requests_and_nothing_else(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        asyncio.run(fill_the_disk(disk))


async def fill_the_disk(disk: Path) -> None:
    inner = CountingBlob()
    keys = await fill(inner, 3)
    with contextlib.closing(CachedBlob(inner, disk / "cache", LIMIT)) as blob:
        await blob.get(keys[0])
        with full(disk):
            assert await blob.get(keys[1]) == value_of(keys[1])
            await blob.put("s/own", bytes(400))
            assert await blob.get("s/own") == bytes(400)
            async with blob.localize(keys) as files:
                assert files.keys() == {keys[0]}
                assert files[keys[0]].read_bytes() == value_of(keys[0])
            assert used_bytes(disk / "cache") == len(value_of(keys[0]))
        async with blob.localize(keys) as files:
            assert files.keys() == set(keys)


async def test_an_unreachable_store_is_told_but_copies_still_serve(
    inner: CountingBlob, cached: CachedBlob
) -> None:
    keys = await fill(inner, 2)
    await cached.get(keys[0])
    inner.reachable = False
    assert await cached.get(keys[0]) == value_of(keys[0])
    with pytest.raises(StoreUnreachable):
        await cached.get(keys[1])
    with pytest.raises(StoreUnreachable):
        async with cached.localize(keys):
            pass


def test_the_directory_is_private(inner: CountingBlob, directory: Path) -> None:
    directory.mkdir(mode=0o755)
    with contextlib.closing(CachedBlob(inner, directory, LIMIT)) as blob:
        asyncio.run(blob.put("s/a", b"1"))
        assert directory.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}


OWNER = """
import asyncio, sys
from pathlib import Path
from evertide.persist.store.local_cache import CachedBlob
from evertide.persist.store.memory import MemoryBlob

blob = CachedBlob(MemoryBlob(), Path(sys.argv[1]), 1_000)
asyncio.run(blob.put("s/a", b"left behind"))
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_dead_owner_leaves_nothing_and_a_living_one_keeps_it(
    inner: CountingBlob, directory: Path
) -> None:
    command = [sys.executable, "-c", OWNER, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        with pytest.raises(StoreFailing, match="belongs to another process"):
            CachedBlob(inner, directory, LIMIT)
        assert used_bytes(directory) == len(b"left behind")
        owner.kill()
        owner.wait(timeout=30)
    (directory / ".half-written").write_bytes(b"x")
    (directory / "below").mkdir()
    (directory / "below" / "x").write_bytes(b"x")
    with contextlib.closing(CachedBlob(inner, directory, LIMIT)) as blob:
        assert used_bytes(directory) == 0
        assert blob.local_path("s/a") is None
        assert [path.name for path in directory.iterdir()] == ["lock"]
    assert not directory.exists()
