"""Goal: neither the state nor the number of parts grows with the number of appends."""

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench.storage_appends import CASES, AppendFigures, run_case
from evertide.persist.faults import BelowSince
from evertide.persist.handle import Append, PersistClient
from evertide.persist.prepare import INLINE_BYTES
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
from evertide.persist.upkeep import maintenance
from evertide.persist.upkeep.compaction import compact_shard
from evertide.persist.upkeep.merge import MERGED_INLINE_BYTES
from evertide.persist.upkeep.merge_choice import choose_merge, is_overfull
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD
from tests.support.owned import OURS


def ts(value: int) -> Timestamp:
    return Timestamp(value)


class Shard:
    """Batches as appends and merges would leave them, without any contents."""

    def __init__(self, merged: Callable[[Sequence[Batch], Timestamp], Batch]) -> None:
        self.batches: list[Batch] = []
        self.appended = self.written = 0
        self._merged = merged

    def append(self, number: int, size: int, rows: int) -> None:
        part: Part = BlobPart("k", rows, size, 0)
        if size <= INLINE_BYTES:
            part = InlinePart(b"x" * size, rows)
        self.batches.append(Batch(ts(number), ts(number + 1), MIN_TS, (part,)))
        self.appended += size

    def merge_all(self, since: int) -> None:
        while run := choose_merge(self.batches, ts(since)):
            start = self.batches.index(run[0])
            merged = self._merged(run, ts(since))
            self.batches[start : start + len(run)] = [merged]
            self.written += merged.size_bytes


def merged_part(size: int, rows: int) -> Part:
    if size <= MERGED_INLINE_BYTES:
        return InlinePart(b"x" * size, rows)
    return BlobPart("k", rows, size, 0)


def kept_all(run: Sequence[Batch], since: Timestamp) -> Batch:
    """What a merge makes of inserts: nothing cancels."""
    size, rows = sum(b.size_bytes for b in run), sum(b.rows for b in run)
    return Batch(run[0].lower, run[-1].upper, since, (merged_part(size, rows),), 0)


@pytest.mark.parametrize(
    "sizes",
    [(40, 40), (2_000, 6_000), (30_000, 60_000), (40, 900_000), (5_000_000, 20_000_000)],
)
def test_batches_stay_few_and_are_rewritten_a_few_times(sizes: tuple[int, int]) -> None:
    """Up to 35 GB: about as often as there are levels."""
    rng = random.Random(3)
    shard = Shard(kept_all)
    for number in range(3_000):
        size = rng.randint(*sizes)
        shard.append(number, size, rows=max(size // 50, 1))
        shard.merge_all(max(number - 10, 0))
        assert sum(b.inline_bytes for b in shard.batches) < 200 * 1024
        assert len(shard.batches) < 100
    assert shard.written < 6 * shard.appended


ROWS_OF_TABLE = 200_000
ROW_BYTES = 100


def updated(run: Sequence[Batch], since: Timestamp) -> Batch:
    """What a merge makes of updates that hit the rows of a table at random.

    Behind since, an update of a row replaces earlier ones. With the table's own rows in the run,
    which are in the first batch, one version of each row is left.
    """
    retractions = sum(b.rows // 2 if b.retractions is None else b.retractions for b in run)
    rows = sum(b.rows for b in run)
    if run[-1].upper - 1 <= since:
        from_first = run[0].lower == 0
        hit = round(ROWS_OF_TABLE * (1 - math.exp(-retractions / ROWS_OF_TABLE)))
        retractions, rows = (0, ROWS_OF_TABLE) if from_first else (hit, 2 * hit)
    part = merged_part(rows * ROW_BYTES, rows)
    return Batch(run[0].lower, run[-1].upper, since, (part,), retractions)


@pytest.mark.parametrize("held_until", [0, 1_500])
def test_history_of_a_large_table_is_no_larger_than_the_table(held_until: int) -> None:
    """Fifteen times every row is updated. A hold keeps all of it for a while, and then goes."""
    shard = Shard(updated)
    shard.append(0, ROWS_OF_TABLE * ROW_BYTES, ROWS_OF_TABLE)
    for number in range(1, 3_000):
        shard.append(number, 2_000 * ROW_BYTES, rows=2_000)
        shard.merge_all(max(number - 10, 0) if number >= held_until else 0)
        assert len(shard.batches) < 100
        if number > held_until:
            assert sum(batch.rows for batch in shard.batches) < 2.5 * ROWS_OF_TABLE
    assert shard.written < 4 * shard.appended


def test_what_cannot_cancel_any_more_is_not_rewritten_for_it() -> None:
    """A batch of nothing but retractions, because its data are wrong, and small ones after it."""
    wrong = Batch(ts(0), ts(9), ts(8), (BlobPart("k", 10_000, 10**6, 0),), 10_000)
    assert choose_merge([wrong], ts(1_000)) == ()
    late = [Batch(ts(n), ts(n + 1), MIN_TS, (InlinePart(b"x", 1),)) for n in range(9, 40)]
    assert choose_merge([wrong, *late], ts(1_000)) == ()


@pytest.mark.parametrize(
    ("name", "appends"),
    [
        ("inserts", 20_000),
        ("updates of 100 rows", 20_000),
        ("inserts and deletes", 5_000),
        ("rows of 2 KB", 5_000),
        ("updates of 100 rows, held", 5_000),
    ],
)
async def test_many_small_appends_keep_a_small_state(name: str, appends: int) -> None:
    check_figures(name, await run_case(CASES[name], appends, MemoryStore()))


async def test_whoever_appends_faster_than_merges_go_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A merge is stuck. Appends go on for a while, and then wait for it."""
    monkeypatch.setattr(maintenance, "_LONGEST_WAIT_S", 3_600.0)
    go_on = asyncio.Event()

    class StuckBlob(MemoryBlob):
        async def put(self, key: str, value: bytes) -> None:
            await go_on.wait()
            await super().put(key, value)

    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), StuckBlob())
    await client.create_shard(SHARD)

    async def write() -> None:
        for number in range(200):
            update = Update(("x" * 8_000, number), ts(number), 1)
            await client.compare_and_append(SHARD, DESC, [update], ts(number), ts(number + 1))

    writing = asyncio.create_task(write())
    async with asyncio.timeout(60):
        while not is_overfull(await client.state(SHARD)):
            await asyncio.sleep(0)
    for _ in range(1_000):
        await asyncio.sleep(0)
    stuck = await client.state(SHARD)
    assert stuck.upper < 100
    assert len(encode_state(stuck)) < 500_000
    go_on.set()
    async with asyncio.timeout(60):
        await writing
    await client.maintenance.idle()
    assert not is_overfull(await client.state(SHARD))
    await client.maintenance.close()


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", CASES)
async def test_a_million_small_appends_keep_a_small_state(name: str) -> None:
    """The same bounds as for a few thousand."""
    appends = 100_000 if name == "rows of 2 KB" else 1_000_000
    check_figures(name, await run_case(CASES[name], appends, MemoryStore()))


def check_figures(name: str, figures: AppendFigures) -> None:
    """However fast the appends come: whoever is too fast waits."""
    assert figures.batches_max < 400
    assert figures.parts_max < 100
    assert figures.state_bytes_max < 600_000
    assert figures.state_bytes_end < 120_000
    assert figures.amplification < 4
    if name == "updates of 100 rows":
        # The rows, and what was updated within the lag.
        assert figures.stored_bytes_end < 500_000


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
        async with part_files(client, SHARD, DESC, ts(1)) as files:
            assert len(files.paths) == 1
            assert files.paths[0].read_bytes()[:4] == b"PAR1"
            assert files.inline == (Update(("x", 1), ts(1), 1),)
        async with part_files(client, SHARD, DESC, ts(0)) as files:
            assert len(files.inline) == 0
        fresh = PersistClient(consensus, FileBlob(tmp_path))
        assert len(await fresh.snapshot(SHARD, DESC, ts(1))) == 10_001


async def test_a_refused_append_leaves_no_part(tmp_path: Path) -> None:
    store, blob = MemoryStore(), FileBlob(tmp_path)
    client = PersistClient(store.consensus(await store.raise_epoch()), blob, owner=OURS)
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
    client = PersistClient(consensus, blob, owner=OURS)
    await client.create_shard(SHARD, since_lag=0)
    rows = [Update((f"row {i}", i), ts(0), 1) for i in range(10_000)]
    await client.compare_and_append(SHARD, DESC, rows, ts(0), ts(1))
    await client.compare_and_append(SHARD, DESC, [], ts(1), ts(9))
    done = await compact_shard(client.machine, client.blob, SHARD, DESC, 0, choose=tuple)
    assert done is None
    state = await client.state(SHARD)
    assert state.since <= 1
    assert len(await blob.keys()) == 1, "the refused merge's part is gone"
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
