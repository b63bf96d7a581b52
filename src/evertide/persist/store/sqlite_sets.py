"""Compare-and-set of shards' rows in SQLite, and the marks by which their writers find them again.

Each transaction has a mark: its writer's name and a number. A row that is set bears the mark of the
transaction that set it, so a writer whose COMMIT failed sees there whether it happened. Whoever
changes a row that bears another writer's mark first keeps that in the table `writers`, so that it
can be found whatever others committed in between.
"""

import sqlite3
from typing import Final

from evertide.persist.store.protocol import AllSet, CompareAndSet
from evertide.persist.store.sqlite_requests import Mark, Single
from evertide.vocab.ids import Epoch

# Rows up to the first fit on a page, which holds 4,061 bytes of one, and need no room; others grow
# in steps. With the least room the length itself always takes two bytes: one less would be another
# size of the row.
_ROOMY_BYTES: Final = 3_900
_STEP_BYTES: Final = 1024
_LEAST_ROOM: Final = 64
# Seqno, epoch and mark are compared and set in one statement.
_SET_OWN: Final = """
    UPDATE shards SET seqno = ?1 + 1, number = ?2, value = ?3, room = zeroblob(?4)
    WHERE shard_id = ?5 AND seqno = ?1 AND writer = ?6 AND (SELECT epoch FROM epoch) = ?7"""
_SET: Final = """
    UPDATE shards SET seqno = ?1 + 1, writer = ?6, number = ?2, value = ?3, room = zeroblob(?4)
    WHERE shard_id = ?5"""
_KEEP_MARK: Final = """
    INSERT INTO writers SELECT writer, number FROM shards
    WHERE shard_id = ? AND seqno = ? AND writer <> ? AND (SELECT epoch FROM epoch) = ?
    ON CONFLICT DO UPDATE SET number = max(number, excluded.number)"""
_MAKE: Final = """
    INSERT INTO shards SELECT ?, 1, ?, ?, ?, zeroblob(?) WHERE (SELECT epoch FROM epoch) = ?
    ON CONFLICT DO NOTHING"""


def set_if_expected(
    connection: sqlite3.Connection, mark: Mark, epoch: Epoch, change: CompareAndSet
) -> bool:
    """Compare seqno and epoch, and set; whether it was done. The row then bears the mark."""
    done = _set_or_make(connection, mark, epoch, change)
    if done:
        mark.shard_id = change.shard_id
    return done


def _set_or_make(
    connection: sqlite3.Connection, mark: Mark, epoch: Epoch, change: CompareAndSet
) -> bool:
    shard_id, expected, value = change.shard_id, change.expected_seqno, change.value
    room = _room(value)
    if expected is None:
        made = (shard_id, mark.writer, mark.number, value, room, epoch)
        return connection.execute(_MAKE, made).rowcount == 1
    own = (expected, mark.number, value, room, shard_id, mark.writer, epoch)
    if connection.execute(_SET_OWN, own).rowcount == 1:
        return True
    kept = connection.execute(_KEEP_MARK, (shard_id, expected, mark.writer, epoch))
    return kept.rowcount == 1 and connection.execute(_SET, own[:-1]).rowcount == 1


def single_set(epoch: Epoch, change: CompareAndSet) -> Single[AllSet] | None:
    """The same in one statement, which does nothing unless the row bears this writer's mark."""
    expected, shard_id, value = change.expected_seqno, change.shard_id, change.value
    if expected is None:
        return None

    def arguments(mark: Mark) -> tuple[object, ...]:
        return (expected, mark.number, value, _room(value), shard_id, mark.writer, epoch)

    return Single(_SET_OWN, arguments, shard_id, AllSet())


def _room(value: bytes) -> int:
    return _LEAST_ROOM + -len(value) % _STEP_BYTES if len(value) > _ROOMY_BYTES else 0
