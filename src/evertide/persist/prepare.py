"""Updates on their way into a shard: inline while they are few, else a part in the blob store.

A part is stored before the state refers to it. If the state then never does, the part is garbage;
its key says when it was made, so that garbage can be told from parts about to be referred to.
"""

import asyncio
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Final

from evertide.persist.coding.batch import UpdateBatch, from_payload, to_batch
from evertide.persist.coding.parts import Times, checksum, decode_part, encode_part
from evertide.persist.faults import BlobMissing, Corrupt
from evertide.persist.owned_blob import OwnedBlob
from evertide.persist.state import BlobPart, InlinePart, Part
from evertide.persist.store.protocol import Blob
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.update import Update

# An append up to this size lies in the state, and is read and written with it.
INLINE_BYTES: Final = 64 * 1024
_INLINE_ROWS: Final = 8 * 1024
# What takes longer than a few milliseconds to convert leaves the event loop.
THREAD_ROWS: Final = 2_000


async def store_updates(
    blob: Blob,
    shard_id: ShardId,
    desc: RelationDesc,
    updates: Sequence[Update],
) -> tuple[Part, ...]:
    """The parts that hold these updates, durable as far as they lie outside the state."""
    if not updates:
        return ()
    batch = to_batch(desc, updates)
    if len(batch) > THREAD_ROWS and not batch.columnar:
        await asyncio.to_thread(lambda: batch.table)
    if (inline := inline_part(batch)) is not None:
        return (inline,)
    value = await asyncio.to_thread(lambda: encode_part(batch.table))
    decoded_bytes = batch.table.nbytes
    return (await store_part(blob, shard_id, value, len(batch), decoded_bytes=decoded_bytes),)


def inline_part(batch: UpdateBatch) -> InlinePart | None:
    """The part that lies in the state; None: there are too many updates, or they are too large."""
    count = len(batch)
    if count > _INLINE_ROWS:
        return None
    payload = batch.payload
    return InlinePart(payload, count) if len(payload) <= INLINE_BYTES else None


async def store_part(
    blob: Blob,
    shard_id: ShardId,
    value: bytes,
    rows: int,
    *,
    decoded_bytes: int | None = None,
    name: str | None = None,
) -> BlobPart:
    """Put the bytes of a Parquet file under a new key; nobody else may use the same name."""
    key = f"{shard_id}/{time.time_ns() // 1_000_000}-{name or uuid.uuid4().hex}.parquet"
    await blob.put(key, value)
    return BlobPart(key, rows, len(value), checksum(value), decoded_bytes=decoded_bytes)


async def load_part(
    blob: Blob,
    desc: RelationDesc,
    part: Part,
    *,
    shard_id: ShardId | None = None,
    times: Times | None = None,
) -> UpdateBatch:
    """The updates of a part; raises BlobMissing and Corrupt, naming shard and part.

    With `times`, updates of other times may be left out where that spares work.
    """
    if isinstance(part, InlinePart):
        return load_inline(desc, part, shard_id=shard_id)
    value = await load_bytes(blob, part)
    if part.rows <= THREAD_ROWS:
        return UpdateBatch(desc, table=decode_part(desc, part, value, times))
    table = await asyncio.to_thread(decode_part, desc, part, value, times)
    return UpdateBatch(desc, table=table)


def load_inline(
    desc: RelationDesc, part: InlinePart, *, shard_id: ShardId | None = None
) -> UpdateBatch:
    """The updates of a part that lies in the state; raises Corrupt, naming the shard."""
    try:
        return from_payload(desc, part.payload)
    except Corrupt as error:
        raise Corrupt(str(error), shard_id=shard_id) from error


async def load_bytes(blob: Blob, part: BlobPart) -> bytes:
    """The bytes of a part, unchecked; raises BlobMissing, naming shard and part."""
    try:
        return await blob.get(part.key)
    except BlobMissing as error:
        raise BlobMissing(part.key, shard_id=part.shard_id) from error


async def make_rows(batches: Iterable[UpdateBatch]) -> None:
    """Let the batches have their rows; many are made on a thread, in steps that give way."""
    for batch in batches:
        if len(batch) > THREAD_ROWS and batch.columnar:
            await asyncio.to_thread(batch.make_rows)


async def discard(blob: OwnedBlob, parts: Iterable[Part]) -> None:
    """Remove parts that no state refers to, or will."""
    await blob.delete(*(part.key for part in parts if isinstance(part, BlobPart)))


def made_at_ms(key: str) -> int:
    """When the part under this key was made."""
    return int(key.rpartition("/")[2].partition("-")[0])
