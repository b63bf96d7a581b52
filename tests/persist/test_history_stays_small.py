"""Goal: neither the state nor the number of parts grows with the number of appends."""

import random
from pathlib import Path

import pytest

from evertide.persist.compaction import choose_merge, compact_shard
from evertide.persist.faults import BelowSince
from evertide.persist.handle import Append, PersistClient
from evertide.persist.maintenance import sweep_orphans
from evertide.persist.prepare import made_at_ms
from evertide.persist.spark_input import part_files
from evertide.persist.state import (
    Batch,
    BlobPart,
    InlinePart,
    Part,
    ShardChange,
    encode_state,
    existing,
    set_hold,
)
from evertide.persist.store.file import FileBlob
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def merge_all(batches: list[Batch]) -> tuple[list[Batch], int]:
    """Merge as long as a merge is due, as if nothing ever cancelled; the bytes written."""
    written = 0
    while run := choose_merge(batches):
        start = batches.index(run[0])
        size, rows = sum(b.size_bytes for b in run), sum(b.rows for b in run)
        part: Part = BlobPart("k", rows, size, 0)
        if size <= 16 * 1024:
            part = InlinePart(b"x" * size, rows)
        merged = Batch(run[0].lower, run[-1].upper, MIN_TS, (part,))
        batches[start : start + len(run)] = [merged]
        written += size
    return batches, written


@pytest.mark.parametrize("sizes", [(40, 40), (2_000, 6_000), (30_000, 60_000), (40, 900_000)])
def test_batches_stay_few_and_are_rewritten_a_few_times(sizes: tuple[int, int]) -> None:
    rng = random.Random(3)
    batches: list[Batch] = []
    appended = written = 0
    for number in range(3_000):
        size = rng.randint(*sizes) if number % 3 else sizes[0]
        appended += size
        part: Part = (
            InlinePart(b"x" * size, 1) if size <= 65_536 else BlobPart(f"{number}", 1, size, 0)
        )
        batches.append(Batch(ts(number), ts(number + 1), MIN_TS, (part,)))
        batches, rewritten = merge_all(batches)
        written += rewritten
        assert sum(b.inline_bytes for b in batches) < 400 * 1024
    large = [b for b in batches if b.size_bytes > 4 * 1024**2]
    assert len(batches) - len(large) < 200
    assert written < 16 * appended


async def test_a_shard_written_often_keeps_a_small_state(tmp_path: Path) -> None:
    """One row, changed a thousand times: after the lag has passed, one row is what is left."""
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, FileBlob(tmp_path), clock=ManualClock()) as client:
        await client.create_shard(SHARD, since_lag=10)
        for number in range(1_000):
            updates = [Update(("w", number), ts(number), 1)]
            if number:
                updates.append(Update(("w", number - 1), ts(number), -1))
            await client.compare_and_append(SHARD, DESC, updates, ts(number), ts(number + 1))
        await client.maintenance.idle()
        state = await client.state(SHARD)
        assert len(state.batches) < 80
        assert len(encode_state(state)) < 16 * 1024
        assert state.since > 900
        assert await client.snapshot(SHARD, DESC, ts(999)) == [Update(("w", 999), ts(999), 1)]
        with pytest.raises(BelowSince):
            await client.snapshot(SHARD, DESC, ts(100))


async def test_large_appends_become_parts_that_spark_can_read(tmp_path: Path) -> None:
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, FileBlob(tmp_path)) as client:
        await client.create_shard(SHARD)
        rows = [Update((f"row {i}", i), ts(0), 1) for i in range(10_000)]
        await client.compare_and_append(SHARD, DESC, rows, ts(0), ts(1))
        await client.compare_and_append(SHARD, DESC, [Update(("x", 1), ts(1), 1)], ts(1), ts(2))
        files = await part_files(client, SHARD, DESC, ts(1))
        assert len(files.paths) == 1
        assert files.paths[0].read_bytes()[:4] == b"PAR1"
        assert files.inline == (Update(("x", 1), ts(1), 1),)
        assert len((await part_files(client, SHARD, DESC, ts(0))).inline) == 0
        fresh = PersistClient(consensus, FileBlob(tmp_path))
        assert len(await fresh.snapshot(SHARD, DESC, ts(1))) == 10_001


async def test_a_refused_append_leaves_no_part(tmp_path: Path) -> None:
    store, blob = MemoryStore(), FileBlob(tmp_path)
    client = PersistClient(store.consensus(await store.raise_epoch()), blob)
    await client.create_shard(SHARD)
    rows = [Update((f"row {i}", i), ts(5), 1) for i in range(10_000)]
    append = Append(SHARD, DESC, rows, ts(5), ts(6))
    await client.append_each([append])
    await client.append_all([append])
    assert await blob.keys() == []


async def test_a_merge_gives_way_to_a_hold_taken_meanwhile() -> None:
    """The merge has read its batches and chosen a since; then a hold below that since arrives."""
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())

    class HoldingBlob(MemoryBlob):
        async def get(self, key: str) -> bytes:
            hold = ShardChange(SHARD, existing(lambda s: set_hold(s, owner="h", hold_ts=ts(1))))
            await client.machine.apply_all([hold])
            return await super().get(key)

    blob = HoldingBlob()
    client = PersistClient(consensus, blob)
    await client.create_shard(SHARD, since_lag=0)
    rows = [Update((f"row {i}", i), ts(0), 1) for i in range(10_000)]
    await client.compare_and_append(SHARD, DESC, rows, ts(0), ts(1))
    await client.compare_and_append(SHARD, DESC, [], ts(1), ts(9))
    done = await compact_shard(client.machine, blob, SHARD, DESC, 0, choose=tuple)
    assert done is None
    state = await client.state(SHARD)
    assert state.since <= 1
    assert len(await blob.keys()) == 1, "the refused merge's part is gone"
    await client.maintenance.close()


async def test_parts_that_nobody_refers_to_are_swept_once_they_are_old() -> None:
    store, blob = MemoryStore(), MemoryBlob()
    consensus = store.consensus(await store.raise_epoch())
    client = PersistClient(consensus, blob)
    await client.create_shard(SHARD)
    rows = [Update((f"row {i}", i), ts(0), 1) for i in range(10_000)]
    await client.compare_and_append(SHARD, DESC, rows, ts(0), ts(1))
    (kept,) = await blob.keys()
    await blob.put(f"{SHARD}/5-orphan.parquet", b"")
    now_ms = made_at_ms(kept) + 10_000_000
    assert await sweep_orphans(consensus, blob, 3_600_000) == []
    assert await sweep_orphans(consensus, blob, now_ms) == [f"{SHARD}/5-orphan.parquet"]
    assert await blob.keys() == [kept]
    await client.maintenance.close()


async def test_a_reader_whose_parts_were_collected_finds_their_replacement(tmp_path: Path) -> None:
    """The reader knows an old state; its part goes between that look and the read."""
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())

    class CollectingBlob(FileBlob):
        collected = False

        async def get(self, key: str) -> bytes:
            if not self.collected:
                self.collected = True
                writer = PersistClient(consensus, FileBlob(tmp_path))
                done = await compact_shard(
                    writer.machine, writer.blob, SHARD, DESC, 0, choose=tuple
                )
                assert done is not None
                await super().delete(key)
            return await super().get(key)

    client = PersistClient(consensus, FileBlob(tmp_path))
    await client.create_shard(SHARD)
    rows = [Update((f"row {i}", i), ts(0), 1) for i in range(10_000)]
    await client.compare_and_append(SHARD, DESC, rows, ts(0), ts(1))
    reader = PersistClient(consensus, CollectingBlob(tmp_path))
    assert len(await reader.snapshot(SHARD, DESC, ts(0))) == 10_000
    await client.maintenance.close()
    assert ShardId("s1") == SHARD
