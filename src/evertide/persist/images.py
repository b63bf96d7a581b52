"""Images of tables and views that rows are looked for in, brought forward as these change.

A statement that looks for rows by their values asks for the image at its timestamp. The first
one reads the shard; later ones read what was appended since. Bounded by size: what was used longest
ago goes, and a table too large for it has no image.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import pyarrow as pa

from evertide.persist.cache import SizedCache
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.faults import BelowSince, PersistFault
from evertide.persist.handle import PersistClient
from evertide.persist.image import TableImage, advance, make_image
from evertide.persist.prepare import THREAD_ROWS
from evertide.persist.snapshot import snapshot_table, table_snapshot_table
from evertide.persist.state import Batch, ShardState
from evertide.persist.txn import Txns
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back, step_forward

# A column more or less is another image.
_Key: TypeAlias = tuple[ShardId, int]

_LIMIT_BYTES: Final = 1024**3
# By then a view has most likely shown the change that the image lacks.
_REFRESH_S: Final = 0.15
# Larger shards are not even tried: an update takes about so much in Arrow.
_UPDATE_BYTES: Final = 64


class TableImages:
    """The images of one process."""

    def __init__(self, client: PersistClient, txns: Txns, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._client = client
        self._txns = txns
        self._limit_bytes = limit_bytes
        self._images: SizedCache[_Key, TableImage] = SizedCache(limit_bytes)
        # One at a time brings a table's image forward; the others use what it made.
        self._locks: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._due: dict[_Key, asyncio.Task[None]] = {}
        # Views that were seen in error have no image any more: it would have to hold that too.
        self._failing: set[_Key] = set()

    async def at(
        self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp, *, is_table: bool = True
    ) -> TableImage | None:
        """The image at a timestamp that is complete and held; None if there is none."""
        key = (shard_id, desc.arity)
        if key in self._failing:
            return None
        async with self._locks[key]:
            known = self._images.get(key)
            if known is not None and known.as_of <= as_of:
                image = await self._forward(shard_id, desc, known, as_of)
                if key in self._failing:
                    self._images.drop(key)
                    return None
                if image is not None:
                    self._images.put(key, image, image.nbytes)
                    return image
            image = await self._load(shard_id, desc, as_of, is_table=is_table)
            if image is not None and (known is None or known.as_of <= as_of):
                self._images.put(key, image, image.nbytes)
            return image

    def kept(self, shard_id: ShardId, desc: RelationDesc) -> bool:
        """Whether the table has an image now."""
        return self._images.get((shard_id, desc.arity)) is not None

    def committed(
        self, shard_id: ShardId, desc: RelationDesc, image: TableImage | None, at: Timestamp
    ) -> None:
        """This process wrote to the table; `image` is what it holds now, where that is known.

        Otherwise the image is brought forward when whoever waits for the change has been served,
        also because it would have to be made anew once history has been merged across its end.
        """
        key = (shard_id, desc.arity)
        known = self._images.get(key)
        if image is not None and (known is None or known.as_of < at):
            now = replace(image, as_of=at, boundary=step_forward(at))
            self._images.put(key, now, now.nbytes)
        elif known is not None and key not in self._due:
            self._due[key] = asyncio.create_task(self._refresh(key, desc))

    async def _refresh(self, key: _Key, desc: RelationDesc) -> None:
        try:
            await asyncio.sleep(_REFRESH_S)
            await self.at(key[0], desc, step_back(await self._txns.upper()))
        except PersistFault:
            self._images.drop(key)  # whoever asks for it next is told
        finally:
            del self._due[key]

    async def _load(
        self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp, *, is_table: bool
    ) -> TableImage | None:
        state = await self._client.reader.readable(shard_id, as_of)
        records = sum(batch.rows for batch in state.batches)
        if records * _UPDATE_BYTES > self._limit_bytes // 2:
            return None
        if is_table:
            table = await table_snapshot_table(self._client, self._txns, shard_id, desc, as_of)
        else:
            table = await snapshot_table(self._client, shard_id, desc, as_of)
        if _has_errors(table):
            self._failing.add((shard_id, desc.arity))
            return None
        state = await self._client.reader.readable(shard_id, as_of)
        return await asyncio.to_thread(make_image, table, as_of, _boundary(state, as_of))

    async def _forward(
        self, shard_id: ShardId, desc: RelationDesc, image: TableImage, as_of: Timestamp
    ) -> TableImage | None:
        """The image at a later time; None where what changed can no longer be told."""
        while True:
            state = (await self._client.machine.read(shard_id)).state
            if state is None or as_of < state.since:
                return None
            unseen = _unseen(state, image)
            if unseen is None:
                found = await self._by_times(shard_id, desc, image, as_of)
                if found is None or self._fails(shard_id, desc, found):
                    return None
                return await _advanced(image, found, as_of, _boundary(state, as_of))
            upper = step_forward(as_of)
            found = await self._client.reader.updates_of(shard_id, desc, unseen, upper)
            if found is not None:
                if self._fails(shard_id, desc, found):
                    return None
                return await _advanced(image, found, as_of, _boundary(state, as_of))

    def _fails(self, shard_id: ShardId, desc: RelationDesc, found: UpdateBatch) -> bool:
        if len(found) and _has_errors(found.table):
            self._failing.add((shard_id, desc.arity))
            return True
        return False

    async def _by_times(
        self, shard_id: ShardId, desc: RelationDesc, image: TableImage, as_of: Timestamp
    ) -> UpdateBatch | None:
        """Where batches from before and after the image are one, their times tell updates apart."""
        lower, upper = step_forward(image.as_of), step_forward(as_of)
        try:
            return await self._client.reader.update_columns(shard_id, desc, lower, upper)
        except BelowSince:
            return None


def _has_errors(table: pa.Table) -> bool:
    return bool(table.column("e").null_count < table.num_rows)


async def _advanced(
    image: TableImage, found: UpdateBatch, as_of: Timestamp, boundary: Timestamp | None
) -> TableImage | None:
    if not len(found):
        return TableImage(as_of, boundary, image.runs, image.telling)
    if len(found) <= THREAD_ROWS:
        return advance(image, found.table, as_of, boundary)
    return await asyncio.to_thread(lambda: advance(image, found.table, as_of, boundary))


def _unseen(state: ShardState, image: TableImage) -> Sequence[Batch] | None:
    """The batches that are not in the image; None if one lies on both sides of its end.

    A batch that ends where the image's last one ended says that none was merged across that point:
    whatever became of those before, they hold nothing that the image has not.
    """
    if image.boundary is None or all(b.upper != image.boundary for b in state.batches):
        return None
    return [batch for batch in state.batches if batch.lower >= image.boundary]


def _boundary(state: ShardState, as_of: Timestamp) -> Timestamp | None:
    """Where the last batch up to as_of ends; None if there is none or one goes on beyond."""
    if any(batch.lower <= as_of < batch.upper - 1 for batch in state.batches):
        return None
    ends = [batch.upper for batch in state.batches if batch.lower <= as_of]
    return max(ends, default=MIN_TS) or None
