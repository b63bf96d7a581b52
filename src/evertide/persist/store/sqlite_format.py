"""The tables of a SQLite store, and how files of earlier formats get them."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Final

from evertide.persist.faults import Corrupt
from evertide.persist.store.sqlite_stash import TABLES as STASH_TABLES
from evertide.persist.store.sqlite_writer import begin_write, connect, is_busy

FORMAT: Final = 5
_SCHEMA: Final = (
    "CREATE TABLE epoch (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL)",
    "INSERT INTO epoch VALUES (1, 0)",
    """CREATE TABLE shards (
        shard_id TEXT PRIMARY KEY, seqno INTEGER NOT NULL, value BLOB NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE timelines (
        timeline TEXT PRIMARY KEY, read_ts INTEGER NOT NULL, write_ts INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE writers (writer TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
)
# Every page that a commit changes makes it a twentieth slower. A table with rowids keeps rows of
# nearly a page on one page, one without only a quarter of that. And a larger row whose size stays
# the same, thanks to the room left behind its value, is written over in place where it differs;
# otherwise its pages are freed and taken again (docs/adr/2026-11-15-states-grow-in-place.md).
_ROOMY_SHARDS: Final = (
    "ALTER TABLE shards RENAME TO narrow_shards",
    """CREATE TABLE shards (
        shard_id TEXT NOT NULL PRIMARY KEY, seqno INTEGER NOT NULL, value BLOB NOT NULL,
        room BLOB NOT NULL
    )""",
    "INSERT INTO shards SELECT shard_id, seqno, value, x'' FROM narrow_shards",
    "DROP TABLE narrow_shards",
)
# Every change of a row bears the mark of the transaction that made it, where the page is written
# anyway (docs/adr/2026-11-16-marks-in-the-rows-they-change.md). It stands before the value, whose
# first page is the one that always changes.
_MARKED_SHARDS: Final = (
    "ALTER TABLE shards RENAME TO unmarked_shards",
    """CREATE TABLE shards (
        shard_id TEXT NOT NULL PRIMARY KEY, seqno INTEGER NOT NULL,
        writer BLOB NOT NULL, number INTEGER NOT NULL, value BLOB NOT NULL, room BLOB NOT NULL
    )""",
    "INSERT INTO shards SELECT shard_id, seqno, x'', 0, value, room FROM unmarked_shards",
    "DROP TABLE unmarked_shards",
)
# What each format changes in the one before it.
_FORMATS: Final = {
    1: _SCHEMA,
    2: ("CREATE TABLE notes (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",),
    3: STASH_TABLES,
    4: _ROOMY_SHARDS,
    5: _MARKED_SHARDS,
}


def prepare_file(path: Path, lock_timeout_s: float) -> None:
    """Make file and tables, unless another process was first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # Only a file nobody has open yet: closing one that this process has open elsewhere would
        # drop SQLite's locks on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    deadline = time.monotonic() + lock_timeout_s
    connection = connect(path, busy_timeout_s=0)
    try:
        _use_wal(connection, deadline)
        begin_write(connection, path, deadline)
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise Corrupt(f"{path} has format {found}, this program knows {FORMAT}")
        for number in range(found + 1, FORMAT + 1):
            for statement in _FORMATS[number]:
                connection.execute(statement)
        if found < FORMAT:
            # Only then: whoever opens a file that is up to date needs no room for it.
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _use_wal(connection: sqlite3.Connection, deadline: float) -> None:
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.005)
