"""Shard states and timelines in one SQLite file, shared by the processes of one host.

Reads are single rows by key (a few microseconds), so they run where they are asked for, each thread
on its own connection. Changes go through the process's one writer thread.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from evertide.persist.faults import Corrupt, Fenced, StoreUnreachable
from evertide.persist.store.protocol import (
    AllSet,
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    ClaimLost,
    CompareAndSet,
    Head,
    OracleRow,
    SetMismatch,
    SetOutcome,
    StashAppend,
    Unchanged,
    check_distinct,
)
from evertide.persist.store.sqlite_reader import SqliteReader, at_one_moment
from evertide.persist.store.sqlite_stash import TABLES as STASH_TABLES
from evertide.persist.store.sqlite_stash import SqliteStash, append_rows, in_the_way
from evertide.persist.store.sqlite_writer import (
    SqliteWriter,
    Undo,
    Work,
    begin_write,
    commit_transaction,
    connect,
    fault_of,
    is_busy,
)
from evertide.persist.store.stash import check_append
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

T = TypeVar("T")

FORMAT: Final = 4
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
# Rows up to the first fit on a page and need no room; others grow in steps. With the least room the
# length itself always takes two bytes: one less would be another size of the row.
_ROOMY_BYTES: Final = 3 * 1024
_STEP_BYTES: Final = 1024
_LEAST_ROOM: Final = 64
# What each format changes in the one before it.
_FORMATS: Final = {
    1: _SCHEMA,
    2: ("CREATE TABLE notes (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",),
    3: STASH_TABLES,
    4: _ROOMY_SHARDS,
}
_NOTE: Final = "SELECT text FROM notes WHERE name = ?"
_HEAD: Final = """
    SELECT seqno, CASE WHEN seqno = ? THEN NULL ELSE value END FROM shards WHERE shard_id = ?"""
_SET: Final = """
    UPDATE shards SET seqno = ?1 + 1, value = ?2, room = zeroblob(?3)
    WHERE shard_id = ?4 AND seqno = ?1 AND (SELECT epoch FROM epoch) = ?5"""
_MAKE: Final = """
    INSERT INTO shards SELECT ?, 1, ?, zeroblob(?) WHERE (SELECT epoch FROM epoch) = ?
    ON CONFLICT DO NOTHING"""
_READ_TIMELINE: Final = """
    SELECT epoch.epoch, timelines.read_ts, timelines.write_ts
    FROM epoch LEFT JOIN timelines ON timelines.timeline = ?"""
_APPLY: Final = """
    INSERT INTO timelines VALUES (?1, ?2, ?2) ON CONFLICT DO UPDATE
    SET read_ts = max(read_ts, ?2), write_ts = max(write_ts, ?2)"""
_CLAIM: Final = """
    INSERT INTO timelines VALUES (?1, ?2, ?2) ON CONFLICT DO UPDATE
    SET read_ts = max(read_ts, ?2), write_ts = ?2 WHERE write_ts < ?2"""
_ALLOCATE: Final = """
    INSERT INTO timelines VALUES (?1, 0, max(1, ?2) + ?3 - 1) ON CONFLICT DO UPDATE
    SET write_ts = max(write_ts + 1, ?2) + ?3 - 1
    RETURNING write_ts - ?3 + 1"""


class SqliteStore:
    """One file. Made on first use, readable by its owner only."""

    def __init__(
        self,
        path: Path,
        *,
        lock_timeout_s: float = 10.0,
        commit: Callable[[sqlite3.Connection], None] = commit_transaction,
    ) -> None:
        try:
            _prepare_file(path, lock_timeout_s)
            self._reader = SqliteReader(path)
            self._writer = SqliteWriter(path, lock_timeout_s=lock_timeout_s, commit=commit)
        except sqlite3.Error as error:
            raise fault_of(error, path) from error
        except OSError as error:
            raise StoreUnreachable(f"{path}: {error}") from error

    async def raise_epoch(self) -> Epoch:
        return await self._writer.run(_raise_epoch)

    async def current_epoch(self) -> Epoch:
        return self._reader.run(_epoch)

    def consensus(self, epoch: Epoch) -> "SqliteConsensus":
        return SqliteConsensus(self._reader, self._writer, epoch)

    def oracle_rows(self, epoch: Epoch) -> "SqliteOracleRows":
        return SqliteOracleRows(self._reader, self._writer, epoch)

    def stash(self) -> SqliteStash:
        return SqliteStash(self._reader, self._writer)

    async def find_note(self, name: str) -> str | None:
        row = self._reader.run(lambda connection: connection.execute(_NOTE, (name,)).fetchone())
        return None if row is None else str(row[0])

    async def note(self, name: str, text: str) -> str:
        def work(connection: sqlite3.Connection) -> str:
            connection.execute(
                "INSERT INTO notes VALUES (?, ?) ON CONFLICT DO NOTHING", (name, text)
            )
            return str(connection.execute(_NOTE, (name,)).fetchone()[0])

        row = self._reader.run(lambda connection: connection.execute(_NOTE, (name,)).fetchone())
        return await self._writer.run(work) if row is None else str(row[0])

    async def set_note(
        self, epoch: Epoch, name: str, text: str, *, raises_epoch: bool = False
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, text))
            if raises_epoch:
                _raise_epoch(connection)

        await self._writer.run(_fenced(epoch, work))

    async def transact(self, epoch: Epoch, work: Work[T]) -> T:
        """Other tables of the same file, changed under the epoch.

        `work` may run more than once, each time after a rollback.
        """
        return await self._writer.run(_fenced(epoch, work))

    async def close(self) -> None:
        await asyncio.to_thread(self._writer.close)
        self._reader.close()


class SqliteConsensus:
    """Shard states under one epoch."""

    def __init__(self, reader: SqliteReader, writer: SqliteWriter, epoch: Epoch) -> None:
        self._reader = reader
        self._writer = writer
        self._epoch = epoch

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        return self._reader.run(lambda connection: _head(connection, shard_id, known_seqno))

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return self._reader.run(lambda connection: _heads(connection, known_seqnos))

    async def shard_ids(self) -> list[ShardId]:
        query = "SELECT shard_id FROM shards ORDER BY shard_id"
        rows = self._reader.run(lambda connection: connection.execute(query).fetchall())
        return [ShardId(shard_id) for (shard_id,) in rows]

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        return await self.set_all_telling(
            sets, None, applied=applied, claimed=claimed, stash=stash, raises_epoch=raises_epoch
        )

    async def set_all_telling(
        self,
        sets: Sequence[CompareAndSet],
        tell: Callable[[ChangeOutcome], None] | None,
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        check_distinct(sets)
        if stash is not None:
            check_append(stash)

        def work(connection: sqlite3.Connection) -> ChangeOutcome:
            epoch = self._epoch
            if stash is not None or not sets:  # else each set looks at the epoch itself
                _check_epoch(connection, epoch)
            if stash is not None and (mismatch := in_the_way(connection, stash)):
                return mismatch
            # Done without a look first: what is in the way is seldom there.
            lost = [s.shard_id for s in sets if not _set_if_expected(connection, epoch, s)]
            if lost:
                _check_epoch(connection, epoch)  # perhaps that is what none of them expected
                raise Undo(SetMismatch(tuple(lost)))
            if claimed is not None and (taken := _claim(connection, claimed)):
                raise Undo(taken)
            if stash is not None:
                append_rows(connection, stash)
            for write in applied:
                connection.execute(_APPLY, (write.timeline.value, write.write_ts))
            if raises_epoch:
                _raise_epoch(connection)
            return AllSet()

        return await self._writer.run(work, tell)

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        return await self.set_each_telling(sets, None)

    async def set_each_telling(
        self, sets: Sequence[CompareAndSet], tell: Callable[[SetOutcome], None] | None
    ) -> SetOutcome:
        check_distinct(sets)

        def work(connection: sqlite3.Connection) -> SetOutcome:
            epoch = self._epoch
            lost = [s.shard_id for s in sets if not _set_if_expected(connection, epoch, s)]
            if lost or not sets:
                _check_epoch(connection, epoch)  # perhaps that is what none of them expected
            return SetMismatch(tuple(lost)) if lost else AllSet()

        return await self._writer.run(work, tell)


class SqliteOracleRows:
    """Timelines under one epoch."""

    def __init__(self, reader: SqliteReader, writer: SqliteWriter, epoch: Epoch) -> None:
        self._reader = reader
        self._writer = writer
        self._epoch = epoch

    async def read(self, timeline: Timeline) -> OracleRow:
        # One statement, so epoch and value are of one moment.
        epoch, read_ts, write_ts = self._reader.run(
            lambda connection: connection.execute(_READ_TIMELINE, (timeline.value,)).fetchone()
        )
        if epoch != self._epoch:
            raise Fenced(self._epoch, Epoch(epoch))
        return OracleRow(read_ts or MIN_TS, write_ts or MIN_TS)

    async def allocate(self, timeline: Timeline, at_least: Timestamp, count: int = 1) -> Timestamp:
        def work(connection: sqlite3.Connection) -> Timestamp:
            arguments = (timeline.value, at_least, count)
            return Timestamp(connection.execute(_ALLOCATE, arguments).fetchone()[0])

        return await self._writer.run(_fenced(self._epoch, work))

    async def apply(self, timeline: Timeline, write_ts: Timestamp) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_APPLY, (timeline.value, write_ts))

        await self._writer.run(_fenced(self._epoch, work))


def _prepare_file(path: Path, lock_timeout_s: float) -> None:
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


def _fenced(epoch: Epoch, work: Work[T]) -> Work[T]:
    """The same work under the epoch: whether it is the current one is read in its transaction."""

    def checked(connection: sqlite3.Connection) -> T:
        _check_epoch(connection, epoch)
        return work(connection)

    return checked


def _check_epoch(connection: sqlite3.Connection, epoch: Epoch) -> None:
    current = _epoch(connection)
    if current != epoch:
        raise Fenced(epoch, current)


def _epoch(connection: sqlite3.Connection) -> Epoch:
    return Epoch(connection.execute("SELECT epoch FROM epoch").fetchone()[0])


def _raise_epoch(connection: sqlite3.Connection) -> Epoch:
    # The rows of writers from older generations are of no more use: those can commit nothing.
    connection.execute("DELETE FROM writers")
    row = connection.execute("UPDATE epoch SET epoch = epoch + 1 RETURNING epoch").fetchone()
    return Epoch(row[0])


def _head(
    connection: sqlite3.Connection, shard_id: ShardId, known_seqno: int | None
) -> Head | Unchanged | None:
    row = connection.execute(_HEAD, (known_seqno, shard_id)).fetchone()
    if row is None:
        return None
    return Unchanged() if row[1] is None else Head(row[0], row[1])


def _heads(
    connection: sqlite3.Connection, known_seqnos: Mapping[ShardId, int | None]
) -> dict[ShardId, Head | Unchanged | None]:
    if len(known_seqnos) == 1:
        return {shard: _head(connection, shard, known) for shard, known in known_seqnos.items()}
    with at_one_moment(connection):
        return {shard: _head(connection, shard, known) for shard, known in known_seqnos.items()}


def _set_if_expected(connection: sqlite3.Connection, epoch: Epoch, change: CompareAndSet) -> bool:
    """Compare seqno and epoch, and set, in one statement; whether it was done."""
    shard_id, expected, value = change.shard_id, change.expected_seqno, change.value
    room = 0
    if len(value) > _ROOMY_BYTES:
        room = _LEAST_ROOM + -len(value) % _STEP_BYTES
    if expected is None:
        return connection.execute(_MAKE, (shard_id, value, room, epoch)).rowcount == 1
    return connection.execute(_SET, (expected, value, room, shard_id, epoch)).rowcount == 1


def _claim(connection: sqlite3.Connection, claimed: ClaimedWrite) -> ClaimLost | None:
    timeline = claimed.timeline.value
    if connection.execute(_CLAIM, (timeline, claimed.write_ts)).rowcount == 1:
        return None
    query = "SELECT write_ts FROM timelines WHERE timeline = ?"
    return ClaimLost(Timestamp(connection.execute(query, (timeline,)).fetchone()[0]))
