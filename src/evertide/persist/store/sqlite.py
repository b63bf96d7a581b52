"""Shard states and timelines in one SQLite file, shared by the processes of one host.

Reads are single rows by key (a few microseconds), so they run where they are asked for, each thread
on its own connection. Changes go through the process's one writer thread.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from evertide.persist.faults import Fenced, StoreUnreachable
from evertide.persist.news import News
from evertide.persist.store.protocol import (
    STASH_SHARD,
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
from evertide.persist.store.sqlite_format import prepare_file
from evertide.persist.store.sqlite_reader import SqliteReader, at_one_moment
from evertide.persist.store.sqlite_requests import Undo, Work
from evertide.persist.store.sqlite_sets import set_if_expected, single_set
from evertide.persist.store.sqlite_stash import SqliteStash, append_rows, in_the_way
from evertide.persist.store.sqlite_writer import (
    Commit,
    SqliteWriter,
    commit_transaction,
    fault_of,
)
from evertide.persist.store.stash import check_append
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

T = TypeVar("T")

_NOTE: Final = "SELECT text FROM notes WHERE name = ?"
_HEAD: Final = """
    SELECT seqno, CASE WHEN seqno = ? THEN NULL ELSE value END FROM shards WHERE shard_id = ?"""
# Several shards in one statement, which sees one moment; by how many there are.
_MOST_AT_ONCE: Final = 16
_HEADS: Final = {
    count: f"""
    WITH known (shard_id, seqno) AS (VALUES {", ".join(["(?, ?)"] * count)})
    SELECT shards.shard_id, shards.seqno,
        CASE WHEN shards.seqno = known.seqno THEN NULL ELSE shards.value END
    FROM known CROSS JOIN shards ON shards.shard_id = known.shard_id"""
    for count in range(2, _MOST_AT_ONCE + 1)
}
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
        commit: Commit = commit_transaction,
    ) -> None:
        try:
            prepare_file(path, lock_timeout_s)
            self._reader = SqliteReader(path)
            self.writer = SqliteWriter(path, lock_timeout_s=lock_timeout_s, commit=commit)
        except sqlite3.Error as error:
            raise fault_of(error, path) from error
        except OSError as error:
            raise StoreUnreachable(f"{path}: {error}") from error

    async def raise_epoch(self) -> Epoch:
        return await self.writer.run(_raise_epoch)

    async def current_epoch(self) -> Epoch:
        return self._reader.run(_epoch)

    def consensus(self, epoch: Epoch) -> "SqliteConsensus":
        return SqliteConsensus(self._reader, self.writer, epoch)

    def oracle_rows(self, epoch: Epoch) -> "SqliteOracleRows":
        return SqliteOracleRows(self._reader, self.writer, epoch)

    def stash(self) -> SqliteStash:
        return SqliteStash(self._reader, self.writer)

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
        return await self.writer.run(work) if row is None else str(row[0])

    async def set_note(
        self, epoch: Epoch, name: str, text: str, *, raises_epoch: bool = False
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, text))
            if raises_epoch:
                _raise_epoch(connection)

        await self.writer.run(_fenced(epoch, work))

    async def transact(self, epoch: Epoch, work: Work[T]) -> T:
        """Other tables of the same file, changed under the epoch.

        `work` may run more than once, each time after a rollback.
        """
        return await self.writer.run(_fenced(epoch, work))

    async def close(self) -> None:
        await asyncio.to_thread(self.writer.close)
        self._reader.close()


class SqliteConsensus:
    """Shard states under one epoch."""

    @property
    def rings(self) -> bool:
        """Whether it tells other processes of changes by itself."""
        return self._writer.ring is not None

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

    def set_all_telling(
        self,
        sets: Sequence[CompareAndSet],
        tell: Callable[[ChangeOutcome], None] | None,
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> Awaitable[ChangeOutcome]:
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
            lost = self._set(connection, sets)
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

        changed = [one.shard_id for one in sets]
        if stash is not None:
            changed.append(STASH_SHARD)
        return self._writer.run(work, tell, shard_ids=changed, news=_news(sets))

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        return await self.set_each_telling(sets, None)

    def set_each_telling(
        self, sets: Sequence[CompareAndSet], tell: Callable[[SetOutcome], None] | None
    ) -> Awaitable[SetOutcome]:
        check_distinct(sets)

        def work(connection: sqlite3.Connection) -> SetOutcome:
            lost = self._set(connection, sets)
            if lost or not sets:
                _check_epoch(connection, self._epoch)  # perhaps that is what none of them expected
            return SetMismatch(tuple(lost)) if lost else AllSet()

        single = single_set(self._epoch, sets[0]) if len(sets) == 1 else None
        changed = [one.shard_id for one in sets]
        return self._writer.run(work, tell, single, shard_ids=changed, news=_news(sets))

    def _set(self, connection: sqlite3.Connection, sets: Sequence[CompareAndSet]) -> list[ShardId]:
        """Set what is as expected; the others."""
        mark, epoch = self._writer.mark, self._epoch
        return [s.shard_id for s in sets if not set_if_expected(connection, mark, epoch, s)]


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


def _news(sets: Sequence[CompareAndSet]) -> list[News]:
    return [one.news for one in sets if one.news is not None]


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
    if len(known_seqnos) <= 1:
        return {shard: _head(connection, shard, known) for shard, known in known_seqnos.items()}
    if len(known_seqnos) > _MOST_AT_ONCE:
        with at_one_moment(connection):
            return {shard: _head(connection, shard, known) for shard, known in known_seqnos.items()}
    found: dict[ShardId, Head | Unchanged | None] = dict.fromkeys(known_seqnos)
    arguments = [argument for pair in known_seqnos.items() for argument in pair]
    for shard_id, seqno, value in connection.execute(_HEADS[len(found)], arguments):
        found[shard_id] = Unchanged() if value is None else Head(seqno, value)
    return found


def _claim(connection: sqlite3.Connection, claimed: ClaimedWrite) -> ClaimLost | None:
    timeline = claimed.timeline.value
    if connection.execute(_CLAIM, (timeline, claimed.write_ts)).rowcount == 1:
        return None
    query = "SELECT write_ts FROM timelines WHERE timeline = ?"
    return ClaimLost(Timestamp(connection.execute(query, (timeline,)).fetchone()[0]))
