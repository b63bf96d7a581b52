"""Goal: closing a store waits for reads that nobody waits for any more.

Method: a thread is in the middle of a read, its caller is cancelled, and the store is closed.
"""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from evertide.persist.store.sqlite_reader import SqliteReader


async def test_a_connection_is_closed_after_the_read_on_it(tmp_path: Path) -> None:
    reader = SqliteReader(tmp_path / "c.db")
    begun, let = threading.Event(), threading.Event()
    ended: list[str] = []

    def work(connection: sqlite3.Connection) -> None:
        begun.set()
        let.wait(30)
        ended.append(str(connection.execute("SELECT 'read'").fetchone()[0]))

    reading = asyncio.create_task(asyncio.to_thread(reader.run, work))
    await asyncio.to_thread(begun.wait, 30)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    closing = asyncio.create_task(asyncio.to_thread(reader.close))
    await asyncio.sleep(0.05)
    assert not closing.done()
    let.set()
    await closing
    assert ended == ["read"]
