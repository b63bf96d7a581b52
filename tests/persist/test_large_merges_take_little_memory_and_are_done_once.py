"""Goal: a merge of any size fits into memory, disturbs nobody, and is not done twice."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from evertide.persist.faults import Corrupt
from evertide.persist.handle import PersistClient
from evertide.persist.machine import Refused
from evertide.persist.state import (
    Batch,
    BlobPart,
    HoldBelowSince,
    ShardChange,
    existing,
    set_hold,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.upkeep.claims import CLAIM_MS, claimed_below
from evertide.persist.upkeep.compaction import Compacted, compact_shard
from evertide.persist.upkeep.maintenance import Maintenance
from evertide.persist.upkeep.merge import part_keys
from evertide.persist.upkeep.merge_choice import MergeSizes
from evertide.persist.upkeep.row_hash import row_hashes
from evertide.vocab.clock import ManualClock
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD
from tests.support.owned import OURS

KB = 1024
SIZES = MergeSizes(newest_batches=0, part_bytes=32 * KB, step_bytes=64 * KB)
ROWS = 10_000


def ts(value: int) -> Timestamp:
    return Timestamp(value)


class WatchedBlob(MemoryBlob):
    """Counts, and lets a test step in before a value is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.before_read: Callable[[int], object] = lambda _: None

    async def get(self, key: str) -> bytes:
        self.reads += 1
        found = self.before_read(self.reads)
        if asyncio.iscoroutine(found):
            await found
        return await super().get(key)


class Place:
    """A shard with some batches of some thousand rows each, and clients of it."""

    def __init__(self) -> None:
        self.store, self.blob, self.clock = MemoryStore(), WatchedBlob(), ManualClock()
        self.upper = 0

    async def open(self) -> "Place":
        self.epoch = await self.store.raise_epoch()
        self.client = self.new_client()
        self.maintenance = Maintenance(
            self.client.machine, self.client.blob, self.clock, sizes=SIZES
        )
        await self.client.create_shard(SHARD, since_lag=0)
        return self

    def new_client(self) -> PersistClient:
        consensus = self.store.consensus(self.epoch)
        return PersistClient(consensus, self.blob, clock=self.clock, owner=OURS)

    async def append(self, rows: int, batches: int = 1, diff: int = 1) -> None:
        for _ in range(batches):
            at = ts(self.upper)
            self.upper += 1
            updates = [Update((f"{at} {i}", i), at, diff) for i in range(rows)]
            await self.client.compare_and_append(SHARD, DESC, updates, at, ts(self.upper))
            await self.client.maintenance.close()  # only merges of this test's sizes

    async def merge(
        self, client: PersistClient, sizes: MergeSizes = SIZES, upto: int | None = None
    ) -> Compacted | None:
        def choose(batches: Sequence[Batch]) -> tuple[Batch, ...]:
            return tuple(batches[:upto])

        now_ms = self.clock.now_ms()
        return await compact_shard(
            client.machine, client.blob, SHARD, DESC, now_ms, choose=choose, sizes=sizes
        )

    async def maintain(self) -> None:
        """What a process does in the background, until nothing is due."""
        self.maintenance.request(SHARD, DESC)
        await self.maintenance.idle()

    async def count(self) -> int:
        fresh = self.new_client()
        return len(await fresh.snapshot(SHARD, DESC, ts(self.upper - 1)))


# Kept for good: what was allocated from a pool must not outlive it.
POOLS: list[pa.MemoryPool] = []


@contextmanager
def counted_memory() -> Iterator[pa.MemoryPool]:
    """Arrow's memory from here on, in a pool that counts from 0."""
    before = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(before))
    pa.set_memory_pool(POOLS[-1])
    try:
        yield POOLS[-1]
    finally:
        pa.set_memory_pool(before)


async def test_memory_is_bounded_by_a_step_not_by_the_batch() -> None:
    """Eight times the data, by steps of the same size: about the same memory."""
    peaks = []
    for batches in (2, 16):
        place = await Place().open()
        await place.append(ROWS, batches)
        with counted_memory() as memory:
            assert await place.merge(place.client)
        peaks.append(memory.max_memory())
        (batch,) = (await place.client.state(SHARD)).batches
        assert batch.rows == batches * ROWS
        assert len(batch.parts) >= batches
        assert await place.count() == batches * ROWS
    assert peaks[1] < 2 * peaks[0]


async def test_what_cancels_leaves_few_parts() -> None:
    """Buckets are planned by what goes in. Where little comes out, they become fewer."""
    place = await Place().open()
    await place.append(ROWS, 4)
    gone = [Update((f"{at} {i}", i), ts(4), -1) for at in range(4) for i in range(100, ROWS)]
    await place.client.compare_and_append(SHARD, DESC, gone, ts(4), ts(5))
    await place.client.maintenance.close()
    place.upper = 5
    assert await place.merge(place.client)
    (batch,) = (await place.client.state(SHARD)).batches
    assert (batch.rows, batch.retractions) == (400, 0)
    assert len(batch.parts) == 1
    assert await place.count() == 400


async def test_parts_of_different_versions_become_parts_of_the_newest() -> None:
    """Merged by a process that only knows the older columns."""
    place = await Place().open()
    await place.append(ROWS, 2)
    wide = relation_desc(("writer", TEXT), ("number", INT8), ("note", TEXT))
    added = [Update((f"{n}", n, "new"), ts(2), 1) for n in range(ROWS)]
    await place.client.compare_and_append(SHARD, wide, added, ts(2), ts(3))
    await place.client.maintenance.close()
    place.upper = 3
    assert await place.merge(place.client)
    (batch,) = (await place.client.state(SHARD)).batches
    assert len(batch.parts) > 2
    assert {part.schema for part in batch.parts} == {1}
    found = await place.new_client().snapshot(SHARD, wide, ts(2))
    assert {update.row for update in found} == {
        *((f"{at} {i}", i, None) for at in (0, 1) for i in range(ROWS)),
        *(update.row for update in added),
    }
    assert await place.count() == 3 * ROWS


async def test_a_large_merge_is_not_lost_to_a_hold_taken_meanwhile() -> None:
    """Since has moved before the merge begins: the hold that would need it is refused."""
    place = await Place().open()
    await place.append(ROWS, 4)
    outcomes: list[object] = []

    async def take_holds(_: int) -> None:
        for at in (1, 3):
            take = existing(partial(set_hold, owner=f"h{at}", hold_ts=ts(at)))
            outcomes.append(await place.client.machine.apply_all([ShardChange(SHARD, take)]))

    place.blob.before_read = lambda reads: take_holds(reads) if reads == 3 else None
    assert await place.merge(place.client)
    below, at_since = outcomes
    assert isinstance(below, Refused)
    assert below.refusal == HoldBelowSince(ts(3))
    assert not isinstance(at_since, Refused)
    assert await place.count() == 4 * ROWS


async def test_only_one_process_does_a_large_merge() -> None:
    place = await Place().open()
    await place.append(ROWS, 4)
    other = place.new_client()
    tried: list[object] = []

    async def try_too(_: int) -> None:
        reads = place.blob.reads
        tried.append(await place.merge(other))
        assert place.blob.reads == reads, "it has read nothing"

    place.blob.before_read = lambda reads: try_too(reads) if reads == 3 else None
    assert await place.merge(place.client)
    assert tried == [None]
    state = await place.client.state(SHARD)
    assert claimed_below(state, place.clock.now_ms()) is None
    assert state.holds == ()
    assert len(state.batches) == 1


async def test_the_claim_of_a_process_that_died_runs_out() -> None:
    place = await Place().open()
    await place.append(ROWS, 8)

    def die(_: int) -> None:
        raise asyncio.CancelledError

    place.blob.before_read = die
    with pytest.raises(asyncio.CancelledError):
        await place.merge(place.client)
    place.blob.before_read = lambda _: None
    await place.maintain()
    assert len((await place.client.state(SHARD)).batches) == 8, "it may still be at work"
    place.clock.advance(CLAIM_MS)
    await place.maintain()
    assert len((await place.client.state(SHARD)).batches) == 1
    assert await place.count() == 8 * ROWS


async def test_a_claim_is_kept_while_the_merge_goes_on() -> None:
    place = await Place().open()
    await place.append(ROWS, 8)
    unclaimed = 0

    async def take_long(_: int) -> None:
        nonlocal unclaimed
        place.clock.advance(CLAIM_MS // 3)
        state = await place.client.state(SHARD)
        unclaimed += claimed_below(state, place.clock.now_ms()) is None

    place.blob.before_read = take_long
    await place.maintain()
    assert place.blob.reads > 8
    assert unclaimed == 0
    assert len((await place.client.state(SHARD)).batches) == 1


async def test_small_batches_are_merged_while_a_large_merge_goes_on() -> None:
    place = await Place().open()
    await place.append(ROWS, 8)
    go_on = asyncio.Event()
    place.blob.before_read = lambda _: go_on.wait()
    merging = asyncio.create_task(place.maintain())
    async with asyncio.timeout(60):
        while not place.blob.reads:
            await asyncio.sleep(0.001)
        await place.append(1, 200)
        place.maintenance.request(SHARD, DESC)
        while len((await place.client.state(SHARD)).batches) > 100:
            await asyncio.sleep(0.001)
    assert place.blob.reads == 1, "it has waited all the time"
    go_on.set()
    await merging
    state = await place.client.state(SHARD)
    assert state.batches[0].rows == 8 * ROWS
    assert len(state.batches) < 100
    assert await place.count() == 8 * ROWS + 200


async def test_a_failed_merge_leaves_neither_part_nor_claim() -> None:
    place = await Place().open()
    await place.append(ROWS, 4)
    before = await place.blob.keys()

    def fail(reads: int) -> None:
        if reads == 7:
            raise OSError("no such luck")

    place.blob.before_read = fail
    with pytest.raises(OSError, match="luck"):
        await place.merge(place.client)
    assert await place.blob.keys() == before
    assert (await place.client.state(SHARD)).holds == ()
    assert await place.merge(place.client)


async def test_batches_of_many_parts_are_merged_part_by_part() -> None:
    """Also where inputs have as many buckets as the result, or more."""
    place = await Place().open()
    await place.append(ROWS, 4)
    assert await place.merge(place.client)
    wide = (await place.client.state(SHARD)).batches[0]
    again = [Update((f"{at} {i}", i), ts(4), 1) for at in range(4) for i in range(ROWS)]
    await place.client.compare_and_append(SHARD, DESC, again, ts(4), ts(5))
    await place.client.maintenance.close()
    place.upper = 5
    for part_bytes in (2 * SIZES.part_bytes, 4 * SIZES.part_bytes):
        sizes = MergeSizes(part_bytes=part_bytes, step_bytes=2 * part_bytes)
        assert await place.merge(place.client, sizes)
        (batch,) = (await place.client.state(SHARD)).batches
        assert 2 < len(batch.parts) <= len(wide.parts)
        assert batch.rows == 4 * ROWS, "equal rows were added up"
        for part in batch.parts:
            assert isinstance(part, BlobPart)
            keys = part_keys(DESC, part, await place.blob.get(part.key))
            hashes = row_hashes(keys.drop_columns(["t", "d"])) % np.uint64(part.buckets)
            assert set(hashes.tolist()) == {part.bucket}


@pytest.mark.parametrize("part_bytes", [SIZES.part_bytes // 4, 2 * SIZES.part_bytes])
async def test_a_part_whose_rows_belong_elsewhere_is_not_merged(part_bytes: int) -> None:
    """Rows that are not where their hash says would never meet those they add up with.

    Into more buckets than the part's own, and into fewer.
    """
    place = await Place().open()
    await place.append(ROWS, 4)
    assert await place.merge(place.client)
    (batch,) = (await place.client.state(SHARD)).batches
    first, second, *others = batch.parts
    assert isinstance(first, BlobPart)
    assert isinstance(second, BlobPart)
    swapped = (
        msgspec.structs.replace(first, bucket=second.bucket),
        msgspec.structs.replace(second, bucket=first.bucket),
    )
    wrong = msgspec.structs.replace(batch, parts=(*swapped, *others))
    swap = existing(partial(msgspec.structs.replace, batches=(wrong,)))
    await place.client.machine.apply_all([ShardChange(SHARD, swap)])
    await place.append(ROWS)
    before, keys = await place.client.state(SHARD), await place.blob.keys()
    sizes = MergeSizes(part_bytes=part_bytes, step_bytes=2 * part_bytes)
    named = f"shard {SHARD}, part ({first.key}|{second.key}): .* do not belong to bucket"
    with pytest.raises(Corrupt, match=named):
        await place.merge(place.client, sizes)
    assert (await place.client.state(SHARD)).batches == before.batches
    assert await place.blob.keys() == keys
