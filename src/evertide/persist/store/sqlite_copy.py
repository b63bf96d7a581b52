"""A SQLite store copied into memory, for those who only look: not a byte on disk changes.

Files of every format so far are read as they are.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from evertide.persist.faults import Corrupt, StoreUnreachable
from evertide.persist.store.memory import MemoryStore, StoreContents
from evertide.persist.store.protocol import Head, OracleRow, StashPage, StashRow
from evertide.persist.store.sqlite_format import FORMAT
from evertide.persist.store.sqlite_reader import at_one_moment
from evertide.persist.store.sqlite_writer import fault_of
from evertide.persist.store.stash import PREFIX, page_of
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

_TIMEOUT_S: Final = 10.0
_ATTEMPTS: Final = 5


def copy_sqlite(path: Path) -> MemoryStore | None:
    """All that the file holds at one moment; None if there is no file, or nothing in it yet."""
    try:
        for _ in range(_ATTEMPTS):
            if not path.exists():
                return None
            contents = _contents(path)
            if contents is not None:
                return None if contents.epoch == 0 else MemoryStore(contents)
    except sqlite3.Error as error:
        raise fault_of(error, path) from error
    except OSError as error:
        raise StoreUnreachable(f"{path}: {error}") from error
    raise StoreUnreachable(f"{path}: it changed at every attempt to read it")


def _contents(path: Path) -> StoreContents | None:
    """None if somebody began to use a file that nobody used before."""
    used = _in_use(path)
    # Where nobody uses the file, SQLite would make the files that go with it. Told that nothing
    # changes, it does not; whether that was true is seen afterwards.
    mode = "mode=ro" if used else "immutable=1"
    before = path.stat()
    uri = f"file:{quote(str(path))}?{mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_TIMEOUT_S, isolation_level=None)) as found:
        contents = _read(found, path)
    after = path.stat()
    unchanged = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    return contents if used or (unchanged and not _in_use(path)) else None


def _in_use(path: Path) -> bool:
    return path.with_name(f"{path.name}-wal").exists()


def _read(connection: sqlite3.Connection, path: Path) -> StoreContents:
    with at_one_moment(connection):
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise Corrupt(f"{path} has format {found}, this program knows {FORMAT}")
        if found == 0:
            empty = StashPage([], MIN_TS, MIN_TS)
            return StoreContents(epoch=Epoch(0), heads={}, timelines={}, notes={}, stash=empty)
        (epoch,) = connection.execute("SELECT epoch FROM epoch").fetchone()
        shards = connection.execute("SELECT shard_id, seqno, value FROM shards")
        heads = {ShardId(shard): Head(seqno, value) for shard, seqno, value in shards}
        rows = connection.execute("SELECT timeline, read_ts, write_ts FROM timelines")
        timelines = {Timeline(name): OracleRow(read, write) for name, read, write in rows}
        notes = dict(connection.execute("SELECT name, text FROM notes")) if found > 1 else {}
        return StoreContents(
            epoch=Epoch(epoch),
            heads=heads,
            timelines=timelines,
            notes=notes,
            stash=_stash(connection) if found > 2 else StashPage([], MIN_TS, MIN_TS),
        )


def _stash(connection: sqlite3.Connection) -> StashPage:
    since, upper = connection.execute("SELECT since, upper FROM stash").fetchone()
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?", (f"{PREFIX}*",)
    ).fetchall()
    rows = [
        StashRow(table.removeprefix(PREFIX), key, value, Timestamp(ts), diff)
        for (table,) in tables
        for key, value, ts, diff in connection.execute(f"SELECT key, value, ts, diff FROM {table}")
    ]
    return page_of(rows, MIN_TS, Timestamp(since), Timestamp(upper))
