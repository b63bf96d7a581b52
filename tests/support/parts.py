"""Shards whose rows lie in parts, and what may happen to those."""

from pathlib import Path

from evertide.persist.handle import Appended, PersistClient
from evertide.persist.prepare import load_bytes, store_part
from evertide.persist.state import (
    Batch,
    BlobPart,
    Changed,
    ShardChange,
    ShardState,
    compact,
    existing,
)
from evertide.persist.store.protocol import Blob
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update


async def append_part(
    client: PersistClient, shard_id: ShardId, desc: RelationDesc, rows: list[tuple]
) -> None:
    """Append rows at the shard's upper; enough of them for a part of their own."""
    upper = (await client.state(shard_id)).upper
    updates = [Update(row, upper, 1) for row in rows]
    outcome = await client.compare_and_append(shard_id, desc, updates, upper, Timestamp(upper + 1))
    assert isinstance(outcome, Appended)


async def blob_parts(client: PersistClient, shard_id: ShardId) -> list[BlobPart]:
    """The shard's parts outside its state."""
    batches = (await client.state(shard_id)).batches
    parts = [part for batch in batches for part in batch.parts]
    return [part for part in parts if isinstance(part, BlobPart)]


async def replace_parts(client: PersistClient, shard_id: ShardId) -> None:
    """What compaction and garbage collection do: the same contents under other keys."""
    state = await client.state(shard_id)
    batches = tuple([await _rewritten(client.blob, shard_id, batch) for batch in state.batches])
    old = await blob_parts(client, shard_id)

    def transition(now: ShardState) -> Changed:
        return compact(now, replaced=state.batches, replacement=batches)

    await client.machine.apply_all([ShardChange(shard_id, existing(transition))])
    assert not {part.key for part in old} & {p.key for p in await blob_parts(client, shard_id)}
    for part in old:
        await client.blob.delete(part.key)


async def _rewritten(blob: Blob, shard_id: ShardId, batch: Batch) -> Batch:
    parts = [
        await store_part(blob, shard_id, await load_bytes(blob, part), part.rows)
        if isinstance(part, BlobPart)
        else part
        for part in batch.parts
    ]
    return Batch(batch.lower, batch.upper, batch.since, tuple(parts))


def flip_a_byte(path: Path) -> None:
    """Damage a file in its middle."""
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2] ^= 1
    path.write_bytes(stored)
