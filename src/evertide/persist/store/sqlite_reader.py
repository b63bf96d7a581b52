"""Reading a SQLite file, in whatever thread asks."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from evertide.persist.store.sqlite_requests import Work
from evertide.persist.store.sqlite_writer import connect, fault_of

T = TypeVar("T")

_READ_TIMEOUT_S: Final = 1.0


class SqliteReader:
    """A connection for each thread that reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        # Each with the lock that is held while a thread works on it.
        self._opened: list[tuple[sqlite3.Connection, threading.Lock]] = []

    def run(self, work: Work[T]) -> T:
        """What `work` finds; it must only read."""
        try:
            connection, lock = getattr(self._local, "opened", None) or self._open()
            with lock:
                return work(connection)
        except sqlite3.Error as error:
            raise fault_of(error, self._path) from error

    def _open(self) -> tuple[sqlite3.Connection, threading.Lock]:
        opened = connect(self._path, busy_timeout_s=_READ_TIMEOUT_S)
        opened.execute("PRAGMA query_only = 1")
        held = (opened, threading.Lock())
        self._local.opened = held
        self._opened.append(held)
        return held

    def close(self) -> None:
        """Close every thread's connection.

        Whoever gave up waiting for a thread did not stop it: SQLite does not survive a connection
        that is closed while it is used.
        """
        for connection, lock in self._opened:
            with lock:
                connection.close()


@contextmanager
def at_one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """All reads inside see the same moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # an I/O error ends it
            connection.execute("ROLLBACK")
