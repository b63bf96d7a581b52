"""What every blob store promises to readers of files."""

from contextlib import suppress

import pytest

from evertide.persist.faults import BlobMissing
from evertide.persist.store.protocol import BlobStore


async def test_files_hold_their_values(blob: BlobStore) -> None:
    values = {f"shard/{number}.parquet": b"%d" % number for number in range(20)}
    for key, value in values.items():
        await blob.put(key, value)
    async with blob.localize([*values, *values]) as files:
        assert {key: path.read_bytes() for key, path in files.items()}.items() <= values.items()
        assert files.keys() == values.keys() or not files


async def test_no_file_stands_for_a_value_that_is_gone(blob: BlobStore) -> None:
    await blob.put("shard/gone", b"1")
    async with blob.localize(["shard/gone"]):
        pass
    await blob.delete("shard/gone")
    with suppress(BlobMissing):
        async with blob.localize(["shard/gone"]) as files:
            assert not any(path.exists() for path in files.values())
    with pytest.raises(BlobMissing):
        await blob.get("shard/gone")


async def test_many_keys_are_all_listed_and_in_order(blob: BlobStore) -> None:
    names = [f"shard{number % 3}/{number:04}" for number in range(30)]
    for name in names:
        await blob.put(name, b"")
    assert await blob.keys() == sorted(names)
    assert await blob.keys("shard1/") == sorted(n for n in names if n.startswith("shard1/"))
    assert await blob.keys("shard1/000") == ["shard1/0001", "shard1/0004", "shard1/0007"]
    assert await blob.keys("nothing/") == []
