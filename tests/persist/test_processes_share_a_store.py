"""Goal: processes on one SQLite file, killed or fenced at any instant, lose nothing that was
acknowledged and double nothing.

Method: real processes. A row counts as acknowledged once its writer has printed it.
"""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from evertide.persist.faults import StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.store.file import FileBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.upkeep.sweep import Sweeper, SweepTimes
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import Timestamp
from tests.persist.racing import DESC, SHARD, check_rows, first_line
from tests.support.owned import OURS

ROOT = Path(__file__).parent.parent.parent
MANY = 1_000_000


def start(directory: Path, epoch: Epoch, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.persist.append_worker"]
    return subprocess.Popen(
        [*command, str(directory), str(epoch), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def acknowledged(name: str, output: str) -> set[tuple[str, int]]:
    # A line cut off by the kill was not printed whole; it may or may not have been acknowledged.
    whole = output[: output.rfind("\n") + 1]
    return {(name, int(line)) for line in whole.split() if line.isdigit()}


async def read_rows(store: SqliteStore, directory: Path, epoch: Epoch) -> list:
    client = PersistClient(store.consensus(epoch), FileBlob(directory / "blob"))
    upper = (await client.state(SHARD)).upper
    return await client.snapshot(SHARD, DESC, Timestamp(upper - 1)) if upper else []


async def test_processes_append_each_row_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "consensus.db")
    epoch = await store.raise_epoch()
    blob = FileBlob(tmp_path / "blob")
    await PersistClient(store.consensus(epoch), blob).create_shard(SHARD)
    workers = {name: start(tmp_path, epoch, name, 150) for name in "abc"}
    for worker in workers.values():
        await asyncio.to_thread(worker.communicate, timeout=60)
        assert worker.returncode == 0
    written = {(name, number) for name in workers for number in range(150)}
    check_rows(await read_rows(store, tmp_path, epoch), written, written)
    await store.close()


async def test_a_killed_writer_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """Kill -9 again and again, in the middle of appends, merges and garbage collection."""
    rng = random.Random(7)
    store = SqliteStore(tmp_path / "consensus.db")
    epoch = await store.raise_epoch()
    blob = FileBlob(tmp_path / "blob")
    await PersistClient(store.consensus(epoch), blob).create_shard(SHARD, since_lag=20)
    told: set[tuple[str, int]] = set()
    names = [f"w{i}" for i in range(6)]
    for name in names:
        worker = start(tmp_path, epoch, name, MANY)
        first = await first_line(worker)
        await asyncio.sleep(rng.uniform(0.0, 0.3))
        worker.kill()
        told |= acknowledged(name, first + worker.communicate()[0])
        found = await read_rows(store, tmp_path, epoch)
        check_rows(found, told, {(n, i) for n in names for i in range(5_000)})
    assert len(told) >= len(names), "each was told of one at least"
    consensus = store.consensus(epoch)
    client = PersistClient(consensus, blob, owner=OURS)
    at_once = SweepTimes(unreferenced_ms=0, old_ms=0)
    sweeper = Sweeper(client, consensus, ManualClock(time.time_ns() // 1_000_000 + 10_000), at_once)
    await sweeper.sweep_once()
    check_rows(await read_rows(store, tmp_path, epoch), told, {u.row for u in found})
    assert (await sweeper.sweep_once()).deleted == []
    await client.maintenance.close()
    await store.close()


async def test_a_frozen_process_of_an_old_epoch_writes_nothing_after_waking(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "consensus.db")
    old = await store.raise_epoch()
    await PersistClient(store.consensus(old), FileBlob(tmp_path / "blob")).create_shard(SHARD)
    worker = start(tmp_path, old, "w", MANY)
    await first_line(worker)
    new = await raise_epoch_while_frozen(store, worker)
    before = await read_rows(store, tmp_path, new)
    worker.send_signal(signal.SIGCONT)
    output, _ = await asyncio.to_thread(worker.communicate, timeout=30)
    assert output.endswith("fenced\n")
    assert sorted(await read_rows(store, tmp_path, new)) == sorted(before)
    await store.close()


async def raise_epoch_while_frozen(store: SqliteStore, worker: subprocess.Popen[str]) -> Epoch:
    """Freeze the worker at an instant when it does not hold the write lock."""
    while True:
        worker.send_signal(signal.SIGSTOP)
        try:
            return await asyncio.wait_for(store.raise_epoch(), timeout=1)
        except TimeoutError:
            worker.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.05)
            if await store.current_epoch() > 1:
                worker.send_signal(signal.SIGSTOP)
                return await store.current_epoch()


HOLD_LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(60)
"""


async def test_a_lock_that_stays_is_reported_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "consensus.db"
    store = SqliteStore(path, lock_timeout_s=0.3)
    await store.raise_epoch()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    await asyncio.to_thread(holder.stdout.readline)
    try:
        with pytest.raises(StoreUnreachable) as unreachable:
            await store.raise_epoch()
        assert unreachable.value.holder_pid == holder.pid
        assert str(holder.pid) in str(unreachable.value)
    finally:
        holder.kill()
        holder.communicate()
    assert await store.raise_epoch() == 2
    await store.close()


async def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data" / "consensus.db")
    await store.raise_epoch()
    blob = FileBlob(tmp_path / "data" / "blob")
    await blob.put("s/part", b"x")
    for path in (tmp_path / "data").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    await store.close()


async def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "consensus.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Exception, match="format 99"):
        SqliteStore(path)
    (tmp_path / "text.db").write_text("this is not a database, whatever its name says" * 50)
    with pytest.raises(StoreUnreachable):
        SqliteStore(tmp_path / "text.db")
