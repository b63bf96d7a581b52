"""Shards as Spark's input: files that executors read for themselves, and what lies in the state."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from evertide.persist.handle import PersistClient
from evertide.persist.prepare import load_part
from evertide.persist.state import BlobPart
from evertide.persist.txn import Txns
from evertide.persist.updates import UpdateColumns
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward
from evertide.vocab.update import Update


@dataclass(frozen=True, slots=True)
class PartFiles:
    """A collection at a timestamp: add up d over equal rows of both, where t <= as_of.

    The files stay readable for the grace period of garbage collection.
    """

    paths: tuple[Path, ...]
    inline: tuple[Update, ...]


async def part_files(
    client: PersistClient, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
) -> PartFiles:
    """Waits until upper > as_of; raises BelowSince."""
    await client.wait_for_upper(shard_id, as_of)
    return await _part_files(client, shard_id, desc, as_of)


async def table_part_files(
    client: PersistClient, txns: Txns, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
) -> PartFiles:
    """Waits until the upper of all tables > as_of; raises BelowSince."""
    await txns.wait_for_upper(as_of)
    return await _part_files(client, shard_id, desc, as_of)


async def _part_files(
    client: PersistClient, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
) -> PartFiles:
    state = await client.reader.readable(shard_id, as_of)
    parts = [part for batch in state.batches for part in batch.parts]
    paths: list[Path] = []
    inline: list[UpdateColumns] = []
    for part in parts:
        path = client.blob.local_path(part.key) if isinstance(part, BlobPart) else None
        if path is not None:
            paths.append(path)
        else:
            inline.append(await load_part(client.blob, desc, part))
    due = chain.from_iterable(
        columns.between(MIN_TS, step_forward(as_of)).updates() for columns in inline
    )
    return PartFiles(tuple(paths), tuple(due))
