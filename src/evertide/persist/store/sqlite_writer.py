"""The one thread of a process that writes to a SQLite file.

A commit waits for the disk, so it must not run on an event loop; and SQLite has one writer at a
time, so more threads would only wait for each other. What queued up while one commit ran is
committed together by the next.

Whether a failed COMMIT happened is found out by reading: every transaction leaves its mark, this
writer's name and a number of its own. It stands in a row of a shard that the transaction set, if
that was all it did, else in the table `writers`; and whoever changes the former first puts the mark
that it bears into the latter. So it is found whatever others committed in between.

A full or failing disk is told at once instead of being tried again until somebody's patience ends.
Without room the last page of the transaction is missing from the log, so it can never come to
light. After a failed fsync it may lie there whole, and nobody sees it, because only after the fsync
are others told how far the log goes. The next commit of any process is written over it; a crash of
all of them before that would make recovery find it. The same is true if the log was written, and
then its index, the -shm file, could not grow: a disk without room, and yet more than nothing done.
"""

import asyncio
import os
import queue
import sqlite3
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

from evertide.persist.faults import PersistFault, StoreFailing, StoreFull, StoreUnreachable
from evertide.persist.news import News
from evertide.persist.store.protocol import AllSet
from evertide.persist.store.sqlite_requests import (
    Done,
    Failed,
    Mark,
    Outcome,
    Request,
    Single,
    Undo,
    Work,
    deliver,
)
from evertide.vocab.ids import ShardId

T = TypeVar("T")

_GROUP_LIMIT: Final = 128
_OPEN_TIMEOUT_S: Final = 10.0
_FIRST_PAUSE_S: Final = 0.0002
_LONGEST_PAUSE_S: Final = 0.005
# As many bytes as all that come after it, so that a row keeps its size whoever sets it.
_FIRST_NUMBER: Final = 2**32
_FIND_MARK: Final = """
    SELECT 1 FROM writers WHERE writer = ?1 AND number = ?2
    UNION ALL SELECT 1 FROM shards WHERE shard_id = ?3 AND writer = ?1 AND number = ?2"""
# How long a failing disk is asked whether a commit happened: whoever waits is told soon.
_SETTLE_S: Final = 1.0
# The byte of the -shm file that SQLite locks while it writes in WAL mode.
_WAL_WRITE_LOCK: Final = 120


class Commit(Protocol):
    """The step whose failure leaves the outcome open; tests put others in its place."""

    def __call__(
        self, connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...], /
    ) -> int:
        """Run COMMIT, or a statement that is a transaction by itself; how many rows it changed."""
        ...


def commit_transaction(
    connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
) -> int:
    """Just that."""
    return connection.execute(statement, arguments).rowcount


class Ring(Protocol):
    """Tells other processes of changed shards, from any thread."""

    def __call__(self, shard_ids: Collection[ShardId], news: Sequence[News], /) -> None: ...


class SqliteWriter:
    """Runs work inside write transactions, one group after the other."""

    def __init__(
        self,
        path: Path,
        *,
        lock_timeout_s: float,
        commit: Commit = commit_transaction,
    ) -> None:
        self._path = path
        self._lock_timeout_s = lock_timeout_s
        self._commit = commit
        # That of the transaction under way; for work.
        self.mark = Mark(uuid.uuid4().bytes, _FIRST_NUMBER)
        # Tells other processes of changes, from the thread that made them.
        self.ring: Ring | None = None
        self._queue: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(
            target=self._main, args=(connect(path, busy_timeout_s=0),), daemon=True
        )
        self._thread.start()

    def run(
        self,
        work: Work[T],
        tell: Callable[[T], None] | None = None,
        single: Single[T] | None = None,
        *,
        shard_ids: Sequence[ShardId] = (),
        news: Sequence[News] = (),
    ) -> Awaitable[T]:
        """Run `work` in a write transaction; durable when it has been waited for.

        `work` may run more than once, each time after a rollback, and must only use its connection.
        What it raises undoes it alone. `tell` hears of its outcome before whoever waits does, and
        also if that one was cancelled meanwhile. `single` does the same in one statement, which is
        tried first if nothing else is waiting. `shard_ids` are those that it may change, and `news`
        is what others may be told of them if its outcome is AllSet.
        """
        if self._ended:
            raise StoreUnreachable(f"{self._path} was closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        heard = cast("Callable[[object], None] | None", tell)
        self._queue.put(Request(work, loop, future, heard, single, shard_ids, news))
        return cast("Awaitable[T]", future)

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _main(self, connection: sqlite3.Connection) -> None:
        ended = False
        try:
            while not ended:
                group, ended = self._next_group()
                try:
                    outcomes = self._run_group(connection, group)
                except (sqlite3.Error, PersistFault, MemoryError) as error:
                    _give_up(connection)
                    outcomes = [Failed(self._told(error))] * len(group)
                # First the others: they have more to do than to answer, and once its own event loop
                # is awake this thread waits for it at every step.
                try:
                    self._tell_others(group, outcomes)
                finally:
                    deliver(group, outcomes)
        finally:
            self._ended = True
            connection.close()

    def _told(self, error: sqlite3.Error | PersistFault | MemoryError) -> PersistFault:
        if isinstance(error, PersistFault):
            return error
        if isinstance(error, MemoryError):  # so SQLite's own want of memory is raised
            error = sqlite3.OperationalError("out of memory")
        return fault_of(error, self._path)

    def _tell_others(self, group: Sequence[Request], outcomes: Sequence[Outcome]) -> None:
        """What was changed by those who say what they change."""
        if self.ring is None:
            return
        changed: dict[ShardId, None] = {}
        news: list[News] = []
        for request, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Done):
                changed.update(dict.fromkeys(request.shard_ids))
                if isinstance(outcome.value, AllSet):
                    news += request.news
        if changed:
            self.ring(changed, news)

    def _next_group(self) -> tuple[list[Request], bool]:
        """What is waiting, at least one request; True when the end was asked for."""
        group: list[Request] = []
        # Nobody else takes from the queue, so what it holds cannot be gone again.
        while not group or (len(group) < _GROUP_LIMIT and not self._queue.empty()):
            request = self._queue.get()
            if request is None:
                return group, True
            group.append(request)
        return group, False

    def _run_group(self, connection: sqlite3.Connection, group: Sequence[Request]) -> list[Outcome]:
        if not group:
            return []
        deadline = time.monotonic() + self._lock_timeout_s
        if len(group) == 1 and (single := group[0].single) is not None:
            done = self._run_single(connection, single, deadline)
            if done is not None:
                return [done]
        while True:
            begin_write(connection, self._path, deadline)
            self._next_mark()
            before = connection.total_changes
            outcomes = (
                [_attempt_alone(connection, group[0].work)]
                if len(group) == 1
                else [_attempt(connection, request.work) for request in group]
            )
            if not connection.in_transaction:
                return outcomes  # the only request failed
            if connection.total_changes == before:
                connection.execute("ROLLBACK")
                return outcomes
            if len(group) > 1 or self.mark.shard_id is None:
                self._leave_mark(connection)
            error = self._finish(connection, "COMMIT", (), deadline)
            if not isinstance(error, sqlite3.Error):
                return outcomes
            self._check_retry(error, deadline)

    def _run_single(
        self, connection: sqlite3.Connection, single: Single[object], deadline: float
    ) -> Outcome | None:
        """None: nothing was done, and the request's work is to be run."""
        self._next_mark()
        self.mark.shard_id = single.shard_id
        changed = self._finish(connection, single.statement, single.arguments(self.mark), deadline)
        if isinstance(changed, sqlite3.Error):
            if not is_busy(changed):
                self._check_retry(changed, deadline)
            return None
        return Done(single.outcome) if changed else None

    def _next_mark(self) -> None:
        self.mark = Mark(self.mark.writer, self.mark.number + 1)

    def _leave_mark(self, connection: sqlite3.Connection) -> None:
        """Where no row of a shard is known to bear it: others may have been undone."""
        self.mark.shard_id = None
        connection.execute(
            "INSERT INTO writers VALUES (?, ?) ON CONFLICT DO UPDATE SET number = excluded.number",
            (self.mark.writer, self.mark.number),
        )

    def _finish(
        self,
        connection: sqlite3.Connection,
        statement: str,
        arguments: tuple[object, ...],
        deadline: float,
    ) -> int | sqlite3.Error:
        """Commit; an error: it is not committed, so the group may run again."""
        try:
            return self._commit(connection, statement, arguments)
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
                return error
            if is_busy(error):
                return error  # nothing was begun
            if isinstance(fault_of(error, self._path), StoreFull | StoreFailing):
                deadline = min(deadline, time.monotonic() + _SETTLE_S)
            return 1 if self._was_committed(deadline) else error

    def _check_retry(self, error: sqlite3.Error, deadline: float) -> None:
        """Raise what is to be told instead of trying again."""
        fault = _fault_of_commit(error, self._path)
        if isinstance(fault, StoreFull | StoreFailing):
            raise fault from error
        if time.monotonic() > deadline:
            raise StoreUnreachable(f"{self._path} takes no commits")

    def _was_committed(self, deadline: float) -> bool:
        while True:
            try:
                reader = connect(self._path, busy_timeout_s=1)
                try:
                    mark = self.mark
                    sought = (mark.writer, mark.number, mark.shard_id)
                    return reader.execute(_FIND_MARK, sought).fetchone() is not None
                finally:
                    reader.close()
            except sqlite3.Error as error:
                if time.monotonic() > deadline:
                    fault = fault_of(error, self._path)
                    # It may have happened: want of room for a look does not mean that nothing did.
                    if isinstance(fault, StoreFull):
                        raise StoreFailing(fault.reason) from error
                    raise fault from error
            time.sleep(_LONGEST_PAUSE_S)


def connect(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection in WAL mode whose commits reach the disk; transactions are begun by hand."""
    # Another process may be cleaning up after the last connection, or recovering, just now.
    connection = sqlite3.connect(
        path, timeout=_OPEN_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    # What savepoints need stays off the disk for temporary files, which may be full as well.
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}")
    return connection


def begin_write(connection: sqlite3.Connection, path: Path, deadline: float) -> None:
    """Take the write lock, looking again in short pauses: SQLite's own grow too long."""
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            if time.monotonic() > deadline:
                reason = f"{path} stayed locked"
                raise StoreUnreachable(reason, holder_pid=write_lock_holder(path)) from error
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection's lock is the reason."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return (code & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def fault_of(error: sqlite3.Error, path: Path) -> StoreFull | StoreFailing | StoreUnreachable:
    """What an error of SQLite means to whoever asked."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    reason = f"{error} ({getattr(error, 'sqlite_errorname', 'no code')})"
    # Clients are told the first two, and need not know where the server keeps its files.
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE):
        return StoreFull(f"{path.name}: {reason}")  # the second: its -shm file could not grow
    if code & 0xFF == sqlite3.SQLITE_IOERR:
        return StoreFailing(f"{path.name}: {reason}")
    return StoreUnreachable(f"{path}: {reason}")


def _fault_of_commit(
    error: sqlite3.Error, path: Path
) -> StoreFull | StoreFailing | StoreUnreachable:
    """The same for a COMMIT that is known not to be visible: StoreFull only if nothing was done."""
    fault = fault_of(error, path)
    in_index = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHMSIZE
    return StoreFailing(fault.reason) if in_index and isinstance(fault, StoreFull) else fault


def write_lock_holder(path: Path) -> int | None:
    """The process that holds the write lock, as far as the system tells.

    From /proc, because asking by fcntl would mean opening the file, and closing it again would drop
    all locks that this process's own connections hold on it.
    """
    try:
        inode = os.stat(f"{path}-shm").st_ino
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in locks:
        fields = line.replace("->", " ").split()
        if len(fields) < 8 or fields[3] != "WRITE" or fields[5].rpartition(":")[2] != str(inode):
            continue
        if int(fields[6]) <= _WAL_WRITE_LOCK and fields[7] in ("EOF", str(_WAL_WRITE_LOCK)):
            return int(fields[4])
    return None


def _attempt(connection: sqlite3.Connection, work: Work[object]) -> Outcome:
    """Run one request of a group so that its failure undoes it and nothing else.

    A failing store is not the request's failure: that ends the whole group.
    """
    connection.execute("SAVEPOINT request")
    try:
        outcome: Outcome = Done(work(connection))
    except sqlite3.Error:
        raise
    except Undo as undo:
        connection.execute("ROLLBACK TO request")
        outcome = Done(undo.outcome)
    except Exception as error:  # noqa: BLE001 - this loop owns the request; its asker is told
        connection.execute("ROLLBACK TO request")
        outcome = Failed(error)
    connection.execute("RELEASE request")
    return outcome


def _attempt_alone(connection: sqlite3.Connection, work: Work[object]) -> Outcome:
    """The same for the only request of its transaction: its failure ends that."""
    try:
        return Done(work(connection))
    except sqlite3.Error:
        raise
    except Undo as undo:
        connection.execute("ROLLBACK")
        return Done(undo.outcome)
    except Exception as error:  # noqa: BLE001 - this loop owns the request; its asker is told
        connection.execute("ROLLBACK")
        return Failed(error)


def _give_up(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # the store is failing, which its askers are being told
