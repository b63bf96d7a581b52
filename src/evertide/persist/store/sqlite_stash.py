"""The stash in a SQLite file: one table for each kind, and one row with since and upper.

A table is never scanned for a merge: rows beyond since are found by ts, those that add to them by
key. (A plus before a column keeps SQLite from using its index.)
"""

import asyncio
import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from evertide.persist.faults import Corrupt
from evertide.persist.store.protocol import StashAppend, StashMismatch, StashPage, StashRow
from evertide.persist.store.sqlite_reader import SqliteReader, at_one_moment
from evertide.persist.store.sqlite_writer import SqliteWriter
from evertide.persist.store.stash import (
    MERGE_EVERY,
    MERGE_ROWS,
    PREFIX,
    merge_end,
    page_of,
    table_of,
)
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward

TABLES: Final = (
    """CREATE TABLE stash (
        one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER NOT NULL, upper INTEGER NOT NULL
    )""",
    "INSERT INTO stash VALUES (1, 0, 0)",
)
_TABLE: Final = (
    """CREATE TABLE IF NOT EXISTS {0} (
        key TEXT NOT NULL, value TEXT NOT NULL, ts INTEGER NOT NULL, diff INTEGER NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS key_of_{0} ON {0} (key)",
    "CREATE INDEX IF NOT EXISTS ts_of_{0} ON {0} (ts)",
)
# Rows that history after since adds to, and their sums. A row that stands alone is not among them.
_SUMS: Final = """
    SELECT t.key, t.value, sum(t.diff)
    FROM (SELECT DISTINCT key, value FROM {0} WHERE ts > ?1 AND ts <= ?2) AS moved
    CROSS JOIN {0} t ON t.key = moved.key AND t.value = moved.value
    WHERE +t.ts <= ?2 GROUP BY t.key, t.value HAVING count(*) > 1"""


class SqliteStash:
    """Read in threads, because a page may be long."""

    def __init__(self, reader: SqliteReader, writer: SqliteWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ensure(self, kinds: Collection[str]) -> None:
        wanted = {table_of(kind) for kind in kinds}

        def work(connection: sqlite3.Connection) -> None:
            for table in sorted(wanted):
                for statement in _TABLE:
                    connection.execute(statement.format(table))
            # So that the writer, who counts changed rows, knows of tables made.
            connection.execute("UPDATE stash SET upper = upper")

        if not wanted <= self._reader.run(_tables):
            await self._writer.run(work)

    async def upper(self) -> Timestamp:
        return self._reader.run(_bounds)[1]

    async def read(
        self, lower: Timestamp = MIN_TS, kinds: Collection[str] | None = None
    ) -> StashPage:
        wanted = None if kinds is None else {table_of(kind) for kind in kinds}

        def work(connection: sqlite3.Connection) -> StashPage:
            with at_one_moment(connection):
                since, upper = _bounds(connection)
                found = _tables(connection)
                tables = sorted(found if wanted is None else found & wanted)
                rows = [row for table in tables for row in _rows(connection, table, lower)]
            return page_of(rows, lower, since, upper)

        return await asyncio.to_thread(self._reader.run, work)


def in_the_way(connection: sqlite3.Connection, append: StashAppend) -> StashMismatch | None:
    """What an append would be refused by; raises Corrupt where a table is missing."""
    missing = {table_of(row.kind) for row in append.rows} - _tables(connection)
    if missing:
        kinds = sorted(table.removeprefix(PREFIX) for table in missing)
        raise Corrupt(f"the stash has no table for {', '.join(kinds)}")
    _, upper = _bounds(connection)
    return None if upper == append.expected_upper else StashMismatch(upper)


def append_rows(connection: sqlite3.Connection, append: StashAppend) -> None:
    """Write the rows, in a transaction that found nothing in the way; merge if it is time."""
    by_table: dict[str, list[tuple[str, str, int, int]]] = {}
    for row in append.rows:
        by_table.setdefault(table_of(row.kind), []).append((row.key, row.value, row.ts, row.diff))
    for table, rows in by_table.items():
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
    connection.execute("UPDATE stash SET upper = ?", (step_forward(append.write_ts),))
    since, _ = _bounds(connection)
    if append.since >= since + MERGE_EVERY:
        _merge(connection, since, append.since)


def _merge(connection: sqlite3.Connection, since: Timestamp, wanted: Timestamp) -> None:
    tables = sorted(_tables(connection))
    for table in tables:
        first = _nth_ts(connection, table, since, wanted, 0)
        beyond = _nth_ts(connection, table, since, wanted, MERGE_ROWS)
        wanted = merge_end(wanted, first, beyond)
    for table in tables:
        sums = connection.execute(_SUMS.format(table), (since, wanted)).fetchall()
        _replace(connection, table, wanted, sums)
    connection.execute("UPDATE stash SET since = ?", (wanted,))


def _replace(
    connection: sqlite3.Connection,
    table: str,
    since: Timestamp,
    sums: Sequence[tuple[str, str, int]],
) -> None:
    """One row at since, or none, in the place of all rows up to it."""
    connection.executemany(
        f"DELETE FROM {table} WHERE key = ? AND value = ? AND +ts <= ?",
        [(key, value, since) for key, value, _ in sums],
    )
    connection.executemany(
        f"INSERT INTO {table} VALUES (?, ?, ?, ?)",
        [(key, value, since, diff) for key, value, diff in sums if diff],
    )


def _nth_ts(
    connection: sqlite3.Connection, table: str, since: Timestamp, wanted: Timestamp, n: int
) -> int | None:
    query = f"SELECT ts FROM {table} WHERE ts > ? AND ts <= ? ORDER BY ts LIMIT 1 OFFSET ?"
    row = connection.execute(query, (since, wanted, n)).fetchone()
    return None if row is None else int(row[0])


def _tables(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ?"
    return {name for (name,) in connection.execute(query, (f"{PREFIX}*",))}


def _bounds(connection: sqlite3.Connection) -> tuple[Timestamp, Timestamp]:
    since, upper = connection.execute("SELECT since, upper FROM stash").fetchone()
    return Timestamp(since), Timestamp(upper)


def _rows(connection: sqlite3.Connection, table: str, lower: Timestamp) -> list[StashRow]:
    query = f"SELECT key, value, ts, diff FROM {table} WHERE ts >= ?"
    kind = table.removeprefix(PREFIX)
    found = connection.execute(query, (lower,)).fetchall()
    return [StashRow(kind, key, value, Timestamp(ts), diff) for key, value, ts, diff in found]
