"""Images of tables and views that rows are looked for in, brought forward as these change.

A statement that looks for rows by their values asks for the image at its timestamp. The first
one reads the shard; later ones read what was appended since. Bounded by size: what was used longest
ago goes, and a table too large for it has no image.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import pyarrow as pa

from evertide.persist.cache import SizedCache
from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.faults import BelowSince, PersistFault
from evertide.persist.handle import PersistClient
from evertide.persist.image import Places, TableImage, advance, make_image
from evertide.persist.prepare import THREAD_ROWS
from evertide.persist.snapshot import snapshot_table, table_snapshot_table
from evertide.persist.state import Batch, ShardState
from evertide.persist.txn import TableWrite, Txns, diff_table, diffs_at, join_writes
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp, step_back, step_forward

# A column more or less is another image.
_Key: TypeAlias = tuple[ShardId, int]

_LIMIT_BYTES: Final = 1024**3
# By then a view has most likely shown the change that the image lacks, and whoever made it has not
# come back with the next: a statement that finds the image up to date takes half the time.
_REFRESH_S: Final = 0.008
# What nobody has looked for rows in for so long is left as it is until somebody does.
_ASKED_S: Final = 5.0
# Larger shards are not even tried: an update takes about so much in Arrow.
_UPDATE_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class _Kept:
    """An image, and what happened up to its time that is not in it yet: rows of it went, and then
    rows came."""

    image: TableImage
    later: Sequence[TableWrite] = ()
    gone: Places | None = None


class TableImages:
    """The images of one process."""

    def __init__(self, client: PersistClient, txns: Txns, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._client = client
        self._txns = txns
        self._limit_bytes = limit_bytes
        self._images: SizedCache[_Key, _Kept] = SizedCache(limit_bytes)
        # One at a time brings a table's image forward; the others use what it made.
        self._locks: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._due: dict[_Key, asyncio.Task[None]] = {}
        # When somebody last looked for rows, by the event loop's clock.
        self._asked: dict[_Key, float] = {}
        # Views that were seen in error have no image any more: it would have to hold that too.
        self._failing: set[_Key] = set()

    async def at(
        self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp, *, is_table: bool = True
    ) -> TableImage | None:
        """The image at a timestamp that is complete and held; None if there is none."""
        key = (shard_id, desc.arity)
        self._asked[key] = asyncio.get_running_loop().time()
        return await self._at(key, desc, as_of, is_table=is_table)

    async def _at(
        self, key: _Key, desc: RelationDesc, as_of: Timestamp, *, is_table: bool = True
    ) -> TableImage | None:
        if key in self._failing:
            return None
        shard_id, _ = key
        async with self._locks[key]:
            kept = self._images.get(key)
            known = None if kept is None else kept.image
            if kept is not None and kept.image.as_of > as_of:
                if await self._stood_still(shard_id, as_of):
                    image = await _completed(kept, desc)
                    return None if image is None else replace(image, as_of=as_of)
            elif kept is not None:
                known = await _completed(kept, desc)
                image = known and await self._forward(shard_id, desc, known, as_of)
                if key in self._failing:
                    self._images.drop(key)
                    return None
                if image is not None:
                    self._keep(key, image)
                    return image
            image = await self._load(shard_id, desc, as_of, is_table=is_table)
            if image is not None and (known is None or known.as_of <= as_of):
                self._keep(key, image)
            return image

    async def _stood_still(self, shard_id: ShardId, since: Timestamp) -> bool:
        """Whether nothing has changed after this time: a transaction may lag behind the image."""
        state = (await self._client.machine.read(shard_id)).state
        if state is None or since < state.since:
            return False
        return all(batch.upper <= step_forward(since) for batch in state.batches)

    def _keep(self, key: _Key, image: TableImage) -> None:
        self._images.put(key, _Kept(image), image.nbytes)

    def kept(self, shard_id: ShardId, desc: RelationDesc) -> bool:
        """Whether the table has an image now."""
        return self._images.get((shard_id, desc.arity)) is not None

    def committed(
        self,
        shard_id: ShardId,
        desc: RelationDesc,
        image: TableImage | None,
        at: Timestamp,
        later: Sequence[TableWrite] = (),
        *,
        gone: Places | None = None,
    ) -> None:
        """This process wrote to the table; `image` is what it holds now, where that is known, but
        for rows that have `gone` from it, and `later`, which only adds rows.

        Otherwise the image is brought forward when whoever waits for the change has been served,
        also because it would have to be made anew once history has been merged across its end.
        """
        key = (shard_id, desc.arity)
        known = self._images.get(key)
        complete = False
        if image is not None and (known is None or known.image.as_of < at):
            image = replace(image, as_of=at, boundary=step_forward(at))
            self._images.put(key, _Kept(image, later, gone), image.nbytes)
            complete = not later and gone is None
        if complete or key in self._due or self._images.get(key) is None:
            return
        now_s = asyncio.get_running_loop().time()
        if now_s < self._asked.get(key, now_s) + _ASKED_S:
            self._due[key] = asyncio.create_task(self._refresh(key, desc))

    def under_way(self) -> list["asyncio.Task[None]"]:
        """Work in the background that brings images forward."""
        return list(self._due.values())

    async def _refresh(self, key: _Key, desc: RelationDesc) -> None:
        try:
            await asyncio.sleep(_REFRESH_S)
            before = self._images.get(key)
            image = await self._at(key, desc, step_back(await self._txns.upper()))
            if image is not None and before is not None:
                image.prepare(before.image)
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
            if not unseen:  # as it mostly is: the process has just put its own changes into it
                return TableImage(as_of, _boundary(state, as_of), image.runs, image.telling)
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


async def _completed(kept: _Kept, desc: RelationDesc) -> TableImage | None:
    """The image without what went and with all that has come; None if a row is there too often to
    be counted."""
    image = kept.image if kept.gone is None else kept.image.without(kept.gone)
    if not kept.later:
        return image

    def complete() -> TableImage | None:
        added = diffs_at(desc, diff_table(join_writes(kept.later)), image.as_of)
        return advance(image, added, image.as_of, image.boundary)

    rows = sum(len(write.rows) + sum(map(len, write.tables)) for write in kept.later)
    return complete() if rows <= THREAD_ROWS else await asyncio.to_thread(complete)


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
    if image.boundary is None:
        return None
    unseen: list[Batch] = []
    for batch in reversed(state.batches):  # of many, the newest are those that matter
        if batch.upper <= image.boundary:
            return unseen[::-1] if batch.upper == image.boundary else None
        unseen.append(batch)
    return None


def _boundary(state: ShardState, as_of: Timestamp) -> Timestamp | None:
    """Where the last batch up to as_of ends; None if there is none or one goes on beyond."""
    for batch in reversed(state.batches):
        if batch.lower <= as_of:
            return batch.upper if batch.upper <= step_forward(as_of) else None
    return None
