"""Goal: files that Spark is told of hold what the state says, and stay; else there is a fault."""

import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest

from evertide.persist import spark_input
from evertide.persist.coding.file_checksum import file_checksum
from evertide.persist.faults import BelowSince, BlobMissing, Corrupt
from evertide.persist.handle import PersistClient
from evertide.persist.spark_input import PartFiles, part_files
from evertide.persist.store.file import FileBlob
from evertide.persist.store.local_cache import CachedBlob
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import BlobStore
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from tests.persist.racing import DESC, SHARD
from tests.support.owned import OURS, owned
from tests.support.parts import append_part, blob_parts, flip_a_byte, replace_parts
from tests.support.s3 import s3_blob

ROWS = 9_000
OTHER = ShardId("s2")


def rows(start: int) -> list[tuple[str, int]]:
    return [(f"row {number}", number) for number in range(start, start + ROWS)]


async def client_with_parts(blob: BlobStore, count: int = 2) -> PersistClient:
    """Two shards of so many parts each."""
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), blob, owner=OURS)
    for shard_id in (SHARD, OTHER):
        await client.create_shard(shard_id)
        for number in range(count):
            await append_part(client, shard_id, DESC, rows(number * ROWS))
    await client.maintenance.idle()
    return client


async def last_ts(client: PersistClient) -> Timestamp:
    return Timestamp((await client.state(SHARD)).upper - 1)


def numbers(files: PartFiles) -> list[int]:
    """The second column of everything."""
    stored = [n for path in files.paths for n in pq.read_table(path)["c1"].to_pylist()]
    return sorted([*stored, *(cast(int, update.row[1]) for update in files.inline)])


async def test_files_hold_the_shard(tmp_path: Path, s3_endpoint: str) -> None:
    cached = CachedBlob(s3_blob(s3_endpoint), tmp_path / "cache", 10**9)
    blobs: list[tuple[BlobStore, bool]] = [
        (MemoryBlob(), False),
        (s3_blob(s3_endpoint), False),
        (FileBlob(tmp_path / "blob"), True),
        (cached, True),
    ]
    for blob, in_files in blobs:
        client = await client_with_parts(blob)
        async with part_files(client, SHARD, DESC, await last_ts(client)) as files:
            assert numbers(files) == list(range(2 * ROWS))
            assert bool(files.paths) == in_files
            assert bool(files.inline) != in_files
            assert files.vanished() is None
    cached.close()


async def test_parts_of_later_times_are_not_even_fetched(tmp_path: Path) -> None:
    client = await client_with_parts(FileBlob(tmp_path))
    first, second = await blob_parts(client, SHARD)
    flip_a_byte(tmp_path / second.key)
    async with part_files(client, SHARD, DESC, Timestamp(0)) as files:
        assert files.paths == (tmp_path / first.key,)
        assert numbers(files) == list(range(ROWS))


async def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    client = await client_with_parts(FileBlob(tmp_path))
    damaged = (await blob_parts(client, SHARD))[1]
    flip_a_byte(tmp_path / damaged.key)
    with pytest.raises(Corrupt) as fault:
        async with part_files(client, SHARD, DESC, await last_ts(client)):
            raise AssertionError("Spark is told of a damaged part")
    assert (fault.value.shard_id, fault.value.key) == (SHARD, damaged.key)
    assert f"shard {SHARD}, part {damaged.key}" in str(fault.value)
    async with part_files(client, OTHER, DESC, await last_ts(client)) as files:
        assert numbers(files) == list(range(2 * ROWS))


async def test_a_part_damaged_in_the_object_store_is_named(
    tmp_path: Path, s3_endpoint: str
) -> None:
    inner = s3_blob(s3_endpoint)
    writer = await client_with_parts(inner)
    damaged = (await blob_parts(writer, SHARD))[0]
    value = await inner.get(damaged.key)
    await inner.put(damaged.key, value[:-1] + bytes([value[-1] ^ 1]))
    cached = CachedBlob(inner, tmp_path / "cache", 10**9)
    writer.blob = owned(cached)
    with pytest.raises(Corrupt, match=damaged.key):
        async with part_files(writer, SHARD, DESC, await last_ts(writer)):
            pass
    cached.close()


async def test_a_part_damaged_in_the_cache_is_fetched_again(
    tmp_path: Path, s3_endpoint: str
) -> None:
    cached = CachedBlob(s3_blob(s3_endpoint), tmp_path / "cache", 10**9)
    client = await client_with_parts(cached)
    for path in (tmp_path / "cache").glob("*.parquet"):
        flip_a_byte(path)
    async with part_files(client, SHARD, DESC, await last_ts(client)) as files:
        assert numbers(files) == list(range(2 * ROWS))
    cached.close()


async def test_a_lost_part_is_named(tmp_path: Path) -> None:
    client = await client_with_parts(FileBlob(tmp_path))
    lost = (await blob_parts(client, SHARD))[0]
    (tmp_path / lost.key).unlink()
    with pytest.raises(BlobMissing) as fault:
        async with part_files(client, SHARD, DESC, await last_ts(client)):
            pass
    assert (fault.value.shard_id, fault.value.key) == (SHARD, lost.key)


async def test_a_lost_part_is_told_although_the_shard_goes_on(tmp_path: Path) -> None:
    """Others append all the time, so that the state is never the same twice."""

    class BusyBlob(FileBlob):
        @asynccontextmanager
        async def localize(self, keys: Sequence[str]) -> AsyncIterator[Mapping[str, Path]]:
            await append_part(client, SHARD, DESC, rows(0))
            async with super().localize(keys) as files:
                yield files

    client = await client_with_parts(BusyBlob(tmp_path))
    lost = (await blob_parts(client, SHARD))[0]
    (tmp_path / lost.key).unlink()
    with pytest.raises(BlobMissing, match=lost.key):
        async with part_files(client, SHARD, DESC, await last_ts(client)):
            pass


async def test_parts_replaced_while_files_are_gathered_are_found(tmp_path: Path) -> None:
    class CollectedBlob(FileBlob):
        left = 3

        @asynccontextmanager
        async def localize(self, keys: Sequence[str]) -> AsyncIterator[Mapping[str, Path]]:
            if self.left:
                self.left -= 1
                await replace_parts(client, SHARD)
            async with super().localize(keys) as files:
                yield files

    blob = CollectedBlob(tmp_path)
    client = await client_with_parts(blob)
    async with part_files(client, SHARD, DESC, await last_ts(client)) as files:
        assert numbers(files) == list(range(2 * ROWS))
    assert blob.left == 0


async def test_files_that_vanish_later_are_noticed(tmp_path: Path) -> None:
    client = await client_with_parts(FileBlob(tmp_path))
    replaced = await blob_parts(client, SHARD)
    async with part_files(client, SHARD, DESC, await last_ts(client)) as files:
        await replace_parts(client, SHARD)
        missing = files.vanished()
        assert missing is not None
        assert (missing.shard_id, missing.key) == (SHARD, replaced[0].key)


async def test_files_of_an_object_store_do_not_vanish(tmp_path: Path, s3_endpoint: str) -> None:
    """Though their parts are collected, and the cache is small."""
    cached = CachedBlob(s3_blob(s3_endpoint), tmp_path / "cache", 1)
    client = await client_with_parts(cached)
    async with part_files(client, SHARD, DESC, await last_ts(client)) as files:
        await replace_parts(client, SHARD)
        async with part_files(client, OTHER, DESC, await last_ts(client)):
            pass
        assert files.vanished() is None
        assert numbers(files) == list(range(2 * ROWS))
    assert list((tmp_path / "cache").glob("*.parquet")) == []
    cached.close()


async def test_files_are_checked_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def checksum(path: Path) -> int:
        threads.append(threading.get_ident())
        return file_checksum(path)

    monkeypatch.setattr(spark_input, "file_checksum", checksum)
    client = await client_with_parts(FileBlob(tmp_path))
    async with part_files(client, SHARD, DESC, await last_ts(client)):
        pass
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_history_that_was_merged_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), FileBlob(tmp_path))
    await client.create_shard(SHARD, since=Timestamp(5))
    with pytest.raises(BelowSince):
        async with part_files(client, SHARD, DESC, Timestamp(4)):
            pass
