"""Merging more than fits into memory: a batch of several parts, made a few of them at a time.

The rows of a large batch are spread over its parts, its buckets, by hash: the part of bucket b out
of B holds the rows whose hash is b modulo B. B is a power of two, so that the rows of a bucket come
from one bucket, or a few, of any other batch. Inputs are gone through in steps: each reads what may
belong to some of the buckets, and makes those. An input with fewer buckets than there are steps is
read several times; steps are as few as memory allows.

Where most updates cancel, buckets turn out small: then two of them become one, whose number is that
of both modulo half as many.

A row in another bucket than its hash says would not meet the rows it adds up with, and nobody would
ever notice. So every part that is read is looked at: all its rows must belong to its bucket.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from evertide.persist.faults import Corrupt
from evertide.persist.prepare import load_bytes
from evertide.persist.state import BlobPart, InlinePart, Part
from evertide.persist.store.protocol import Blob
from evertide.persist.upkeep.merge import (
    EncodedPart,
    MergedPart,
    add_up,
    hashes_of,
    inline_keys,
    merge_few,
    merged_part,
    part_keys,
    split_rows,
)
from evertide.persist.upkeep.row_hash import Hashes
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

# Puts a part, given its bucket and how many there are.
Store: TypeAlias = Callable[[EncodedPart, int, int], Awaitable[BlobPart]]
# Called before each part that is read.
Pace: TypeAlias = Callable[[], Awaitable[None]]

# So few updates are merged on the event loop, in less time than handing them over takes.
_LOOP_ROWS: Final = 128
# A row costs memory and time even where rows are so alike that they take no room.
_ROW_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """How many parts to make, and in how many steps; both are powers of two."""

    buckets: int
    steps: int


def weight(part: Part) -> int:
    """A part's size, or what its rows would have if they were not so alike."""
    return max(part.size_bytes, part.rows * _ROW_BYTES)


def plan_buckets(parts: Sequence[Part], *, part_bytes: int, step_bytes: int) -> BucketPlan:
    """Parts of about `part_bytes`, with about `step_bytes` of inputs in memory at a time."""
    total = sum(map(weight, parts))
    buckets = _power_of_two(total / part_bytes)
    return BucketPlan(buckets, min(buckets, _power_of_two(total / step_bytes)))


def _power_of_two(at_least: float) -> int:
    power = 1
    while power < at_least:
        power *= 2
    return power


class BucketMerge:
    """One merge. `parts` is what it has made so far, also when it fails in the middle."""

    def __init__(
        self,
        blob: Blob,
        desc: RelationDesc,
        since: Timestamp,
        store: Store,
        pace: Pace,
        *,
        part_bytes: int,
    ) -> None:
        self._blob = blob
        self._desc = desc
        self._since = since
        self._store = store
        self._pace = pace
        self._part_bytes = part_bytes
        self.parts: list[Part] = []
        self.retractions = 0

    async def run(self, inputs: Sequence[Part], plan: BucketPlan) -> None:
        """Make the parts."""
        if plan.buckets == 1:
            values = [(part, await self._value(part)) for part in inputs]
            merge = partial(merge_few, self._desc, values, self._since)
            few = sum(part.rows for part in inputs) <= _LOOP_ROWS
            await self._keep(merge() if few else await asyncio.to_thread(merge))
            return
        left = await self._steps(inputs, plan, 0, 1)
        if left is not None:
            await self._finish(left, 0, 1)

    async def _steps(
        self, inputs: Sequence[Part], plan: BucketPlan, residue: int, modulus: int
    ) -> pa.Table | None:
        """Merge the rows whose hash is `residue` modulo `modulus`; what is left, if it is small.

        None: it is in parts already.
        """
        if modulus < plan.steps:
            first = await self._steps(inputs, plan, residue, 2 * modulus)
            second = await self._steps(inputs, plan, residue + modulus, 2 * modulus)
            return await self._joined(first, second, residue, modulus)
        return await self._fold(await self._read(inputs, plan, residue), residue, modulus)

    async def _read(
        self, inputs: Sequence[Part], plan: BucketPlan, residue: int
    ) -> list[list[pa.Table]]:
        """The rows of one step, by bucket. One part after the other: no more is in memory."""
        buckets: list[list[pa.Table]] = [[] for _ in range(plan.buckets // plan.steps)]
        inline = [part for part in inputs if isinstance(part, InlinePart)]
        tables = await asyncio.to_thread(
            lambda: _split_inline(inline_keys(self._desc, inline), plan, residue)
        )
        for bucket, table in zip(buckets, tables, strict=True):
            bucket.append(table)
        for part in inputs:
            if isinstance(part, BlobPart) and _concerns(part, plan, residue):
                value = await self._value(part)
                tables = await asyncio.to_thread(_split, self._desc, part, value, plan, residue)
                for bucket, table in zip(buckets, tables, strict=True):
                    bucket.append(table)
        return buckets

    async def _fold(
        self, buckets: list[list[pa.Table]], residue: int, modulus: int
    ) -> pa.Table | None:
        """The same as _steps, for rows that are in memory. Takes the tables out of the lists."""
        if len(buckets) > 1:
            first = await self._fold(buckets[0::2], residue, 2 * modulus)
            second = await self._fold(buckets[1::2], residue + modulus, 2 * modulus)
            return await self._joined(first, second, residue, modulus)
        (tables,) = buckets
        left = await asyncio.to_thread(add_up, tables, self._since)
        if left.nbytes <= self._part_bytes:
            return left
        await self._finish(left, residue, modulus)
        return None

    async def _joined(
        self, first: pa.Table | None, second: pa.Table | None, residue: int, modulus: int
    ) -> pa.Table | None:
        """Two halves as one, if both are small enough for that."""
        if first is None or second is None or first.nbytes + second.nbytes > self._part_bytes:
            for half, bucket in ((first, residue), (second, residue + modulus)):
                if half is not None:
                    await self._finish(half, bucket, 2 * modulus)
            return None
        return pa.concat_tables([first, second])

    async def _finish(self, left: pa.Table, bucket: int, buckets: int) -> None:
        """Make a part of what is left of a bucket."""
        whole = buckets == 1
        merged = await asyncio.to_thread(merged_part, self._desc, left, inline=whole)
        await self._keep(merged, bucket, buckets)

    async def _keep(self, merged: MergedPart | None, bucket: int = 0, buckets: int = 1) -> None:
        if merged is None:
            return
        part: Part
        if isinstance(merged.part, InlinePart):
            part = merged.part
        else:
            stored = await self._store(merged.part, bucket, buckets)
            part = msgspec.structs.replace(stored, bucket=bucket, buckets=buckets)
        self.parts.append(part)
        self.retractions += merged.retractions

    async def _value(self, part: Part) -> bytes:
        if isinstance(part, InlinePart):
            return part.payload
        await self._pace()
        return await load_bytes(self._blob, part)


def _concerns(part: BlobPart, plan: BucketPlan, residue: int) -> bool:
    """Whether some of its rows may have a hash that is `residue` modulo the plan's steps."""
    common = min(part.buckets, plan.steps)
    return part.bucket % common == residue % common


def _split(
    desc: RelationDesc, part: BlobPart, value: bytes, plan: BucketPlan, residue: int
) -> list[pa.Table]:
    keys = part_keys(desc, part, value)
    hashes = hashes_of(keys)
    _check_bucket(part, hashes)
    if part.buckets < plan.buckets:
        return _split_rows(keys, hashes, plan, residue)
    # All its rows are of one bucket, as its name says.
    nothing = keys.slice(0, 0)
    tables = [nothing] * (plan.buckets // plan.steps)
    tables[part.bucket % plan.buckets // plan.steps] = keys
    return tables


def _check_bucket(part: BlobPart, hashes: Hashes) -> None:
    strays = int(np.count_nonzero(hashes & np.uint64(part.buckets - 1) != part.bucket))
    if strays:
        bucket = f"bucket {part.bucket} of {part.buckets}"
        message = f"{strays} of its {len(hashes)} rows do not belong to {bucket}"
        raise Corrupt(message, shard_id=part.shard_id, key=part.key)


def _split_inline(keys: pa.Table, plan: BucketPlan, residue: int) -> list[pa.Table]:
    return _split_rows(keys, hashes_of(keys), plan, residue)


def _split_rows(keys: pa.Table, hashes: Hashes, plan: BucketPlan, residue: int) -> list[pa.Table]:
    return split_rows(keys, hashes, residue=residue, steps=plan.steps, buckets=plan.buckets)
