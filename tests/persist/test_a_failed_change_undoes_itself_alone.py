"""Goal: work that fails in a write transaction of SQLite leaves nothing behind, whether it had the
transaction to itself or shared it; and others that shared it are done."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from evertide.persist.store.protocol import AllSet, CompareAndSet
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId


class OurMistake(Exception):
    """Raised by work after it has changed something."""


def fail(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO notes VALUES ('half', 'done')")
    raise OurMistake


@pytest.mark.parametrize("others", [0, 1, 5])
async def test_work_that_fails_is_undone(tmp_path: Path, others: int) -> None:
    store = SqliteStore(tmp_path / "consensus.db")
    epoch = await store.raise_epoch()
    consensus = store.consensus(epoch)
    for seqno in (None, 1, 2):
        done = await asyncio.gather(
            *(
                consensus.compare_and_set_each([CompareAndSet(ShardId(f"s{n}"), seqno, b"x")])
                for n in range(others)
            ),
            store.transact(epoch, fail),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in done] == [AllSet] * others + [OurMistake]
    assert await store.find_note("half") is None
    assert await store.note("half", "whole") == "whole", "and the store goes on"
    assert len(await consensus.shard_ids()) == others
    await store.close()
