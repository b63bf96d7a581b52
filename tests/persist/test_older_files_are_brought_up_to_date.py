"""Goal: a consensus file of an earlier format opens with all it holds; a later one is refused."""

import sqlite3
from pathlib import Path

import pytest

from evertide.persist.faults import Corrupt
from evertide.persist.store.protocol import AllSet, CompareAndSet, Head, StashAppend, StashRow
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp

# As the first release wrote it: never to be edited.
FORMAT_1 = """
    CREATE TABLE epoch (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL);
    INSERT INTO epoch VALUES (1, 7);
    CREATE TABLE shards (
        shard_id TEXT PRIMARY KEY, seqno INTEGER NOT NULL, value BLOB NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO shards VALUES ('s1', 3, x'0102');
    CREATE TABLE timelines (
        timeline TEXT PRIMARY KEY, read_ts INTEGER NOT NULL, write_ts INTEGER NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO timelines VALUES ('epoch_ms', 40, 50);
    CREATE TABLE writers (writer TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
    PRAGMA user_version = 1;
"""
FORMAT_2 = """
    CREATE TABLE notes (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
    INSERT INTO notes VALUES ('environment', 'kept');
    PRAGMA user_version = 2;
"""


def write_file(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


FORMAT_3 = """
    CREATE TABLE stash (
        one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER NOT NULL, upper INTEGER NOT NULL
    );
    INSERT INTO stash VALUES (1, 0, 0);
    INSERT INTO shards VALUES ('s2', 8, zeroblob(100000));
    PRAGMA user_version = 3;
"""


async def test_a_file_of_the_first_format(tmp_path: Path) -> None:
    path = tmp_path / "consensus.db"
    write_file(path, FORMAT_1)
    store = SqliteStore(path)
    assert await store.current_epoch() == 7
    assert await store.consensus(Epoch(7)).head(ShardId("s1")) == Head(3, b"\x01\x02")
    assert (await store.oracle_rows(Epoch(7)).read(Timeline.EPOCH_MS)).write_ts == 50
    assert await store.note("environment", "first") == "first"
    await use_stash(store, Epoch(7))
    await store.close()
    again = SqliteStore(path)
    assert await again.note("environment", "second") == "first"
    assert await again.stash().upper() == 1
    await again.close()


async def test_a_file_of_the_second_format(tmp_path: Path) -> None:
    path = tmp_path / "consensus.db"
    write_file(path, FORMAT_1 + FORMAT_2)
    store = SqliteStore(path)
    assert await store.note("environment", "x") == "kept"
    await use_stash(store, Epoch(7))
    await store.close()


async def test_a_file_of_the_third_format(tmp_path: Path) -> None:
    path = tmp_path / "consensus.db"
    write_file(path, FORMAT_1 + FORMAT_2 + FORMAT_3)
    store = SqliteStore(path)
    consensus = store.consensus(Epoch(7))
    assert await consensus.shard_ids() == ["s1", "s2"]
    assert await consensus.head(ShardId("s1")) == Head(3, b"\x01\x02")
    assert await consensus.head(ShardId("s2")) == Head(8, bytes(100_000))
    changed = CompareAndSet(ShardId("s2"), 8, b"next")
    assert await consensus.compare_and_set_each([changed]) == AllSet()
    assert await consensus.head(ShardId("s2")) == Head(9, b"next")
    await use_stash(store, Epoch(7))
    await store.close()


FORMAT_4 = """
    ALTER TABLE shards RENAME TO narrow_shards;
    CREATE TABLE shards (
        shard_id TEXT NOT NULL PRIMARY KEY, seqno INTEGER NOT NULL, value BLOB NOT NULL,
        room BLOB NOT NULL
    );
    INSERT INTO shards SELECT shard_id, seqno, value, zeroblob(64) FROM narrow_shards;
    DROP TABLE narrow_shards;
    INSERT INTO writers VALUES ('a name of thirty-two characters', 12);
    PRAGMA user_version = 4;
"""


async def test_a_file_of_the_fourth_format(tmp_path: Path) -> None:
    path = tmp_path / "consensus.db"
    write_file(path, FORMAT_1 + FORMAT_2 + FORMAT_3 + FORMAT_4)
    store = SqliteStore(path)
    consensus = store.consensus(Epoch(7))
    assert await consensus.shard_ids() == ["s1", "s2"]
    assert await consensus.head(ShardId("s2")) == Head(8, bytes(100_000))
    for seqno in (3, 4, 5):
        changed = CompareAndSet(ShardId("s1"), seqno, b"next")
        assert await consensus.compare_and_set_each([changed]) == AllSet()
    assert await consensus.head(ShardId("s1")) == Head(6, b"next")
    assert await store.raise_epoch() == 8
    await store.close()


async def use_stash(store: SqliteStore, epoch: Epoch) -> None:
    """It is as good as that of a new file."""
    assert await store.stash().upper() == 0
    await store.stash().ensure(["item"])
    row = StashRow("item", "k", "v", Timestamp(0), 1)
    append = StashAppend(Timestamp(0), Timestamp(0), [row], Timestamp(0))
    assert await store.consensus(epoch).compare_and_set_all([], stash=append) == AllSet()
    assert (await store.stash().read()).rows == [row]


async def test_a_file_of_a_later_program(tmp_path: Path) -> None:
    path = tmp_path / "consensus.db"
    write_file(path, FORMAT_1 + "PRAGMA user_version = 99;")
    with pytest.raises(Corrupt, match="has format 99, this program knows 5"):
        SqliteStore(path)
