"""What every blob store promises."""

import pytest

from evertide.persist.faults import BlobMissing
from evertide.persist.store.protocol import Blob


async def test_what_was_put_is_got(blob: Blob) -> None:
    await blob.put("shard/one.parquet", b"\x00\xff")
    await blob.put("shard/two.parquet", b"")
    assert await blob.get("shard/one.parquet") == b"\x00\xff"
    assert await blob.get("shard/two.parquet") == b""
    assert await blob.keys() == ["shard/one.parquet", "shard/two.parquet"]
    assert await blob.keys("shard/t") == ["shard/two.parquet"]


async def test_a_missing_key_is_a_typed_fault(blob: Blob) -> None:
    with pytest.raises(BlobMissing) as missing:
        await blob.get("shard/none")
    assert missing.value.key == "shard/none"


async def test_deleting_may_be_repeated(blob: Blob) -> None:
    await blob.put("a", b"1")
    await blob.delete("a")
    await blob.delete("a")
    assert await blob.keys() == []


async def test_a_local_path_holds_the_value(blob: Blob) -> None:
    await blob.put("shard/part", b"bytes")
    path = blob.local_path("shard/part")
    assert path is None or path.read_bytes() == b"bytes"
