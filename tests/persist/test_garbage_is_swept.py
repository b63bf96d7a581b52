"""Goal: parts that no state refers to go in the end, and no part that a state comes to refer to.

The sweeper knows nothing of what went wrong before: it compares what is stored with what is
referred to, twice, and lets nobody refer to what it is about to take away.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from evertide.persist.faults import Fenced, StoreFailing
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.prepare import store_part
from evertide.persist.state import (
    BlobPart,
    ShardChange,
    append,
    existing,
    set_hold,
)
from evertide.persist.store.file import FileBlob
from evertide.persist.store.memory import MemoryBlob, MemoryConsensus, MemoryStore
from evertide.persist.store.protocol import (
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    CompareAndSet,
    SetOutcome,
    StashAppend,
)
from evertide.persist.upkeep.compaction import compact_shard
from evertide.persist.upkeep.maintenance import Maintenance
from evertide.persist.upkeep.merge_choice import MergeSizes, due_merge
from evertide.persist.upkeep.part_age import MAX_AGE_MS, StaleParts
from evertide.persist.upkeep.sweep import Sweeper, SweepTimes
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD
from tests.support.owned import OURS

HOUR_MS = 3_600_000
GRACE_MS = 600_000
TIMES = SweepTimes(unreferenced_ms=GRACE_MS, old_ms=HOUR_MS)


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Place:
    """A store, a client, and a sweeper whose clock starts at the time of day."""

    def __init__(self) -> None:
        self.store, self.blob = MemoryStore(), MemoryBlob()
        self.clock = ManualClock(now_ms())

    async def open(self) -> "Place":
        self.epoch = await self.store.raise_epoch()
        self.client = self.new_client()
        self.sweeper = self.new_sweeper(TIMES)
        await self.client.create_shard(SHARD, since_lag=0)
        return self

    def new_client(self) -> PersistClient:
        consensus = self.store.consensus(self.epoch)
        return PersistClient(consensus, self.blob, clock=self.clock, owner=OURS)

    def new_sweeper(self, times: SweepTimes) -> Sweeper:
        consensus = self.store.consensus(self.epoch)
        return Sweeper(self.new_client(), consensus, self.clock, times)

    async def append(self, at: int, rows: int = 10_000) -> None:
        updates = [Update((f"row {i}", i), ts(at), 1) for i in range(rows)]
        done = await self.client.compare_and_append(SHARD, DESC, updates, ts(at), ts(at + 1))
        assert isinstance(done, Appended)
        await self.client.maintenance.close()  # nothing but what the test does

    async def put(self, name: str, age_ms: int, shard_id: ShardId = SHARD) -> str:
        key = f"{shard_id}/{self.clock.now_ms() - age_ms}-{name}.parquet"
        await self.blob.put(key, b"")
        return key

    async def sweep(self, after_ms: int = 0) -> Sequence[str]:
        self.clock.advance(after_ms)
        return (await self.sweeper.sweep_once()).deleted


async def test_a_part_goes_that_was_twice_unreferenced_and_is_old() -> None:
    place = await Place().open()
    await place.append(0)
    (kept,) = await place.blob.keys()
    orphan = await place.put("orphan", HOUR_MS)
    assert await place.sweep() == [], "seen once"
    assert await place.sweep(GRACE_MS - 1) == [], "seen again too soon"
    assert await place.sweep(1) == [orphan]
    assert await place.blob.keys() == [kept]
    place.clock.advance(100 * HOUR_MS)
    assert await place.sweep() == await place.sweep(GRACE_MS) == [], "what is referred to stays"
    assert len(await place.new_client().snapshot(SHARD, DESC, ts(0))) == 10_000


async def test_a_young_part_stays_however_often_it_is_seen() -> None:
    place = await Place().open()
    orphan = await place.put("orphan", age_ms=0)
    for _ in range(5):
        assert await place.sweep(GRACE_MS) == []
    assert await place.sweep(GRACE_MS) == [orphan]


async def test_what_was_replaced_stays_for_readers_as_long_as_they_may_need_it() -> None:
    """However old the part is: the time counts from when it was first seen unreferenced."""
    place = await Place().open()
    await place.append(0)
    (replaced,) = await place.blob.keys()
    place.clock.advance(100 * HOUR_MS)
    assert await place.sweep() == []
    merged = await compact_shard(
        place.client.machine, place.client.blob, SHARD, DESC, place.clock.now_ms(), choose=tuple
    )
    assert merged is not None
    assert await place.sweep() == []
    assert await place.sweep(GRACE_MS - 1) == []
    assert await place.sweep(1) == [replaced]
    assert len(await place.new_client().snapshot(SHARD, DESC, ts(0))) == 10_000


async def test_parts_of_a_merge_that_goes_on_are_left_alone() -> None:
    """It stores them over hours, and refers to them at its end."""
    place = await Place().open()
    parts = [await place.put("merge-0of4", 3 * HOUR_MS)]
    assert await place.sweep() == []
    for number in (1, 2, 3):
        parts.append(await place.put(f"merge-{number}of4", age_ms=0))
        assert await place.sweep(GRACE_MS) == []
        place.clock.advance(HOUR_MS)
    assert sorted(await place.sweep()) == parts, "it has not stored one for long: it has died"


async def test_what_is_not_named_like_a_part_is_not_touched() -> None:
    place = await Place().open()
    for key in (f"{SHARD}/readme.txt", "elsewhere/5-orphan.parquet", f"{SHARD}/sub/5-x.parquet"):
        await place.blob.put(key, b"")
    assert await place.sweep() == await place.sweep(10 * HOUR_MS) == []


async def test_an_append_whose_part_waited_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its process was stopped between storing the part and referring to it."""
    place = await Place().open()

    class SlowBlob(MemoryBlob):
        async def put(self, key: str, value: bytes) -> None:
            await super().put(key, value)
            late = time.time_ns() + (MAX_AGE_MS + 1) * 1_000_000
            monkeypatch.setattr(time, "time_ns", lambda: late)

    client = PersistClient(place.store.consensus(place.epoch), SlowBlob(), owner=OURS)
    rows = [Update((f"row {i}", i), ts(0), 1) for i in range(10_000)]
    with pytest.raises(StaleParts):
        await client.compare_and_append(SHARD, DESC, rows, ts(0), ts(1))
    monkeypatch.undo()
    assert (await place.client.state(SHARD)).upper == 0
    assert TIMES.unreferenced_ms > MAX_AGE_MS


class HeldConsensus(MemoryConsensus):
    """Sets wait, after they were decided on, until they are let go."""

    held: asyncio.Event

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        await self.held.wait()
        return await super().compare_and_set_each(sets)


async def test_a_part_is_not_taken_from_under_a_change_that_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The change was decided when the part was young, and arrives after the part is gone."""
    place = await Place().open()
    slow = HeldConsensus(place.store._cells, place.epoch)
    slow.held = asyncio.Event()
    client = PersistClient(slow, place.blob, owner=OURS)
    rows = [Update((f"row {i}", i), ts(0), 1) for i in range(10_000)]
    append = asyncio.create_task(client.compare_and_append(SHARD, DESC, rows, ts(0), ts(1)))
    while not await place.blob.keys():
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    place.clock.advance(2 * HOUR_MS)
    assert await place.sweep() == []
    assert len(await place.sweep(GRACE_MS)) == 1
    late = time.time_ns() + 3 * HOUR_MS * 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: late)
    slow.held.set()
    with pytest.raises(StaleParts):
        await append
    monkeypatch.undo()
    state = await place.client.state(SHARD)
    assert (state.upper, state.batches) == (0, ())


async def test_a_part_that_is_referred_to_at_the_last_moment_stays() -> None:
    """Between the sweeper's look at the state and its own change of it."""
    place = await Place().open()
    await place.append(0)
    (kept,) = await place.blob.keys()
    key = await place.put("late", HOUR_MS)
    inner = place.store.consensus(place.epoch)

    class LateConsensus(MemoryConsensus):
        async def compare_and_set_all(
            self,
            sets: Sequence[CompareAndSet],
            *,
            applied: Sequence[AppliedWrite] = (),
            claimed: ClaimedWrite | None = None,
            stash: StashAppend | None = None,
            raises_epoch: bool = False,
        ) -> ChangeOutcome:
            part = BlobPart(key, 1, 0, 0)
            refer = existing(
                lambda s: append(s, lower=ts(1), upper=ts(2), writer=None, parts=(part,))
            )
            await place.client.machine.apply_all([ShardChange(SHARD, refer)])
            return await inner.compare_and_set_all(
                sets, applied=applied, claimed=claimed, stash=stash, raises_epoch=raises_epoch
            )

    late = LateConsensus(place.store._cells, place.epoch)
    place.sweeper = Sweeper(place.new_client(), late, place.clock, TIMES)
    assert await place.sweep() == []
    assert await place.sweep(GRACE_MS) == []
    assert await place.blob.keys() == sorted([key, kept])


async def test_expired_leases_end_where_nothing_merges() -> None:
    place = await Place().open()
    for owner, expires_ms in (("gone", 1_000), ("there", 60_000), ("critical", None)):
        deadline = None if expires_ms is None else place.clock.now_ms() + expires_ms
        hold = existing(partial(set_hold, owner=owner, hold_ts=ts(0), expires_ms=deadline))
        await place.client.machine.apply_all([ShardChange(SHARD, hold)])
    place.clock.advance(1_000)
    swept = await place.sweeper.sweep_once()
    assert swept.leases_ended == 1
    holds = (await place.client.state(SHARD)).holds
    assert [hold.owner for hold in holds] == ["critical", "there"]


async def test_a_restarted_environment_is_merged_without_a_write() -> None:
    """Many batches were left behind, and nobody appends to the shard any more."""
    place = await Place().open()
    for number in range(100):
        await place.append(number, rows=1)
    before = await place.client.state(SHARD)
    assert due_merge(before, place.clock.now_ms()) is not None
    client = place.new_client()
    sweeper = Sweeper(client, place.store.consensus(place.epoch), place.clock)
    assert (await sweeper.sweep_once()).merges_requested == 1
    await client.maintenance.idle()
    assert len((await place.client.state(SHARD)).batches) < 20
    assert (await sweeper.sweep_once()).merges_requested == 0
    await client.maintenance.close()


async def test_replaced_parts_are_deleted_by_whoever_replaced_them() -> None:
    """After a grace period; the sweeper only finds what such a process left behind."""
    place = await Place().open()
    await place.append(0)
    await place.append(1)
    before = await place.blob.keys()
    sizes = MergeSizes(fanout=2, newest_batches=0)
    keen = Maintenance(
        place.client.machine, place.client.blob, place.clock, grace_s=0.05, sizes=sizes
    )
    keen.request(SHARD, DESC)
    await keen.idle()
    kept = set(await place.blob.keys()) - set(before)
    assert len(kept) == 1
    assert set(before) <= set(await place.blob.keys()), "readers may still need them"
    async with asyncio.timeout(60):
        while set(await place.blob.keys()) != kept:
            await asyncio.sleep(0.01)
    await keen.close()


async def test_sweeps_go_on_after_trouble_and_end_with_the_generation() -> None:
    place = await Place().open()
    orphan = await place.put("orphan", 2 * HOUR_MS)

    class FailingBlob(MemoryBlob):
        failures = 3

        async def keys(self, prefix: str = "") -> list[str]:
            if self.failures:
                self.failures -= 1
                raise StoreFailing("no answer")
            return await place.blob.keys(prefix)

        async def delete(self, key: str) -> None:
            await place.blob.delete(key)

    consensus = place.store.consensus(place.epoch)
    client = PersistClient(consensus, FailingBlob(), owner=OURS)
    at_once = SweepTimes(pause_s=0, unreferenced_ms=0, old_ms=HOUR_MS)
    running = asyncio.create_task(Sweeper(client, consensus, place.clock, at_once).run())
    while await place.blob.keys():
        await asyncio.sleep(0)
    assert not running.done()
    await place.store.raise_epoch()
    await place.blob.put(orphan, b"")
    with pytest.raises(Fenced):
        await running


async def test_files_are_listed_for_one_shard_only(tmp_path: Path) -> None:
    blob = FileBlob(tmp_path)
    for shard_id in ("s1", "s10", "s2"):
        await store_part(blob, ShardId(shard_id), b"", 0)
    keys = await blob.keys("s1/")
    assert [key.partition("/")[0] for key in keys] == ["s1"]
    assert await blob.keys("s3/") == []


KILLED = """
import asyncio, os, stat, sys
from pathlib import Path
from evertide.persist.store.file import FileBlob

def die(descriptor):
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.kill(os.getpid(), 9)

os.fsync = die
asyncio.run(FileBlob(Path(sys.argv[1])).put("s1/key", b"half"))
"""


async def test_what_a_killed_process_was_writing_goes_when_it_is_old(tmp_path: Path) -> None:
    """Not sooner: it might be a put that is under way. And no value that is whole goes with it."""
    place = await Place().open()
    place.blob = FileBlob(tmp_path)  # type: ignore[assignment]
    place.client, place.sweeper = place.new_client(), place.new_sweeper(TIMES)
    await place.append(0)
    await place.blob.put("other.kept", b"kept")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.rglob(".writing-*")
    whole = [path for path in tmp_path.rglob("*") if path.is_file() and path != left]
    assert len(whole) == 2
    place.clock.advance(HOUR_MS - 60_000)
    assert (await place.sweeper.sweep_once()).unfinished == 0
    assert left.exists()
    place.clock.advance(120_000)
    assert (await place.sweeper.sweep_once()).unfinished == 1
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(whole)


async def test_what_a_killed_process_was_writing_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In containers the next process has the same number, and it writes as its first thing what
    the one before did."""
    killed = [sys.executable, "-c", KILLED, str(tmp_path)]
    process = subprocess.Popen(killed)
    assert process.wait(60) == -signal.SIGKILL
    (left,) = tmp_path.rglob(".writing-*")
    monkeypatch.setattr(os, "getpid", lambda: process.pid)
    await FileBlob(tmp_path).put("s1/key", b"whole")
    assert await FileBlob(tmp_path).get("s1/key") == b"whole"
    assert left.exists()


async def test_a_put_whose_file_was_taken_for_left_behind_fails_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was frozen for hours in the middle of it: nobody comes to rely on the key."""
    blob = FileBlob(tmp_path)
    real = os.fsync

    def sweep_meanwhile(descriptor: int) -> None:
        for path in tmp_path.rglob(".writing-*"):
            os.utime(path, (0, 0))
        blob._remove_unfinished(now_ms())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sweep_meanwhile)
    with pytest.raises(StoreFailing):
        await blob.put("s1/key", b"value")
    assert await blob.keys() == []
