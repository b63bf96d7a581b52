"""Goal: a store can be copied into memory, whoever else uses it, without changing a byte of it."""

import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from evertide.persist.faults import BlobMissing, Corrupt
from evertide.persist.store.file import FileBlob
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.overlay import OverlayBlob
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_copy import copy_postgres, is_there
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    CompareAndSet,
    Head,
    OracleRow,
    StashAppend,
    StashRow,
    Store,
)
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.store.sqlite_copy import copy_sqlite
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp
from tests.support.postgres import own_schema

SHARD = ShardId("s")


async def fill(store: Store, rng: random.Random) -> Epoch:
    """Something of everything."""
    epoch = await store.raise_epoch()
    await store.stash().ensure(["a", "b"])
    await store.set_note(epoch, "name", "a note")
    write_ts = MIN_TS
    for seqno in range(5):
        upper, write_ts = write_ts if seqno == 0 else Timestamp(write_ts + 1), Timestamp(seqno + 1)
        rows = [StashRow(kind, f"k{seqno}", "v", write_ts, 1) for kind in "ab"]
        outcome = await store.consensus(epoch).compare_and_set_all(
            [CompareAndSet(SHARD, seqno or None, rng.randbytes(100))],
            applied=[AppliedWrite(Timeline.CATALOG, write_ts)],
            stash=StashAppend(upper, write_ts, rows, MIN_TS),
        )
        assert outcome == AllSet()
    return epoch


async def same(first: Store, second: Store, epoch: Epoch) -> bool:
    found = [
        (
            await store.current_epoch(),
            await store.consensus(epoch).head(SHARD),
            await store.consensus(epoch).shard_ids(),
            await store.oracle_rows(epoch).read(Timeline.CATALOG),
            await store.find_note("name"),
            await store.stash().read(),
        )
        for store in (first, second)
    ]
    assert isinstance(found[0][1], Head)
    return found[0] == found[1]


def files(directory: Path) -> dict[str, bytes]:
    """But for the one that readers, too, write their locks into."""
    kept = (path for path in directory.iterdir() if not path.name.endswith("-shm"))
    return {path.name: path.read_bytes() for path in kept}


async def test_a_file_in_use_is_copied(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "c.db")
    epoch = await fill(store, random.Random(1))
    before = files(tmp_path)
    copied = copy_sqlite(tmp_path / "c.db")
    assert copied is not None
    assert await same(store, copied, epoch)
    assert files(tmp_path) == before
    await copied.raise_epoch()
    assert await store.current_epoch() == epoch
    await store.close()


async def test_a_file_that_nobody_uses_is_copied(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "c.db")
    epoch = await fill(store, random.Random(2))
    await store.close()
    before = files(tmp_path)
    copied = copy_sqlite(tmp_path / "c.db")
    assert copied is not None
    assert files(tmp_path) == before
    assert list(tmp_path.iterdir()) == [tmp_path / "c.db"]
    again = SqliteStore(tmp_path / "c.db")
    assert await same(again, copied, epoch)
    await again.close()


async def test_what_a_killed_process_left_in_its_log_is_copied(tmp_path: Path) -> None:
    """Method: the files as they lie while a process still has them open."""
    store = SqliteStore(tmp_path / "c.db")
    epoch = await fill(store, random.Random(3))
    left = tmp_path / "left"
    left.mkdir()
    for name in ("c.db", "c.db-wal"):
        shutil.copy(tmp_path / name, left / name)
    before = files(left)
    copied = copy_sqlite(left / "c.db")
    assert copied is not None
    assert await same(store, copied, epoch)
    assert files(left) == before
    await store.close()


async def test_a_file_that_changes_meanwhile_is_copied_at_one_moment(tmp_path: Path) -> None:
    """Method: another process writes all the time; stash and shard move together or not."""
    path = tmp_path / "c.db"
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        for _ in range(30):
            copied = copy_sqlite(path)
            if copied is None:
                continue
            epoch = await copied.current_epoch()
            head = await copied.consensus(epoch).head(SHARD)
            upper = await copied.stash().upper()
            timeline = await copied.oracle_rows(epoch).read(Timeline.CATALOG)
            assert isinstance(head, Head)
            assert (upper, timeline) == (
                head.seqno + 1,
                OracleRow(Timestamp(head.seqno), Timestamp(head.seqno)),
            )
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()


_WRITER = """
import asyncio, sys
from pathlib import Path
from evertide.persist.store.protocol import *
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

async def main():
    number = 0
    while True:
        store = SqliteStore(Path(sys.argv[1]))
        epoch = await store.current_epoch() or await store.raise_epoch()
        await store.stash().ensure(["a"])
        for _ in range(20):
            upper = Timestamp(number + 1) if number else MIN_TS
            ts = Timestamp(number + 1)
            await store.consensus(epoch).compare_and_set_all(
                [CompareAndSet("s", number or None, b"x")],
                applied=[AppliedWrite(Timeline.CATALOG, ts)],
                stash=StashAppend(upper, ts, [StashRow("a", str(number), "", ts, 1)], MIN_TS),
            )
            number += 1
            print(number, flush=True)
        await store.close()

asyncio.run(main())
"""


async def test_no_file_is_no_store_and_none_is_made(tmp_path: Path) -> None:
    assert copy_sqlite(tmp_path / "c.db") is None
    assert not list(tmp_path.iterdir())
    store = SqliteStore(tmp_path / "c.db")
    assert copy_sqlite(tmp_path / "c.db") is None, "nobody opened a generation yet"
    await store.close()


async def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "c.db")
    await fill(store, random.Random(4))
    await store.close()
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Corrupt, match="format 99"):
        copy_sqlite(tmp_path / "c.db")


@pytest.fixture
async def postgres(postgres_dsn: str) -> AsyncIterator[tuple[str, PostgresStore]]:
    url = own_schema(postgres_dsn)
    store = PostgresStore(url)
    yield url, store
    await store.close()


async def test_a_schema_is_copied(postgres: tuple[str, PostgresStore]) -> None:
    url, store = postgres
    assert not await is_there(url)
    assert await copy_postgres(url) is None
    assert not await is_there(url)
    epoch = await fill(store, random.Random(5))
    copied = await copy_postgres(url)
    assert copied is not None
    assert await same(store, copied, epoch)
    assert await is_there(url)
    await copied.raise_epoch()
    assert await store.current_epoch() == epoch


async def test_what_is_written_over_a_blob_store_stays_in_memory(tmp_path: Path) -> None:
    below = FileBlob(tmp_path / "blob")
    await below.put("a/1", b"one")
    await below.put("a/2", b"two")
    over = OverlayBlob(below)
    await over.put("a/3", b"three")
    await over.delete("a/1")
    assert await over.keys("a/") == ["a/2", "a/3"]
    assert (await over.get("a/2"), await over.get("a/3")) == (b"two", b"three")
    with pytest.raises(BlobMissing):
        await over.get("a/1")
    assert await below.keys() == ["a/1", "a/2"]
    assert await OverlayBlob(MemoryBlob()).keys() == []
    assert await MemoryStore().current_epoch() == 0
