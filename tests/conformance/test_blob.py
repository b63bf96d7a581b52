"""What every blob store promises."""

import pytest

from evertide.persist.faults import BlobMissing, Corrupt
from evertide.persist.store.protocol import OWNER_BYTES, BlobStore


async def test_what_was_put_is_got(blob: BlobStore) -> None:
    await blob.put("shard/one.parquet", b"\x00\xff")
    await blob.put("shard/two.parquet", b"")
    assert await blob.get("shard/one.parquet") == b"\x00\xff"
    assert await blob.get("shard/two.parquet") == b""
    assert await blob.keys() == ["shard/one.parquet", "shard/two.parquet"]
    assert await blob.keys("shard/t") == ["shard/two.parquet"]


async def test_a_missing_key_is_a_typed_fault(blob: BlobStore) -> None:
    with pytest.raises(BlobMissing) as missing:
        await blob.get("shard/none")
    assert missing.value.key == "shard/none"


async def test_deleting_may_be_repeated(blob: BlobStore) -> None:
    await blob.put("a", b"1")
    await blob.delete("a")
    await blob.delete("a")
    assert await blob.keys() == []


async def test_a_local_path_holds_the_value(blob: BlobStore) -> None:
    await blob.put("shard/part", b"bytes")
    path = blob.local_path("shard/part")
    assert path is None or path.read_bytes() == b"bytes"


async def test_whose_it_is_may_be_written_again_and_again(blob: BlobStore) -> None:
    assert await blob.read_owner() is None
    for value in (b"first", b"x" * OWNER_BYTES, b"second"):
        await blob.write_owner(value)
        assert await blob.read_owner() == value
    await blob.write_owner(b"x" * (OWNER_BYTES + 1))
    with pytest.raises(Corrupt, match="too long"):
        await blob.read_owner()


async def test_the_first_release_said_whose_it_is_by_a_value(blob: BlobStore) -> None:
    await blob.put("environment", b"some id")
    assert await blob.read_owner() == b"some id"
