"""Goal: a COMMIT that fails halfway is neither repeated when it happened nor lost when it did not.

Method: two stores on one file whose commits fail at random: before, after, or by a rollback.
"""

import asyncio
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from evertide.persist.faults import StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.protocol import CompareAndSet, Head
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from tests.persist.racing import DESC, SHARD, append_one, check_rows


def failing_commit(rng: random.Random) -> Callable[[sqlite3.Connection], None]:
    def commit(connection: sqlite3.Connection) -> None:
        fate = rng.choice(["well", "before", "after", "undone"])
        if fate in ("well", "after"):
            connection.execute("COMMIT")
        if fate == "undone":
            connection.execute("ROLLBACK")
        if fate != "well":
            raise sqlite3.OperationalError("disk I/O error")

    return commit


@pytest.mark.parametrize("seed", range(5))
async def test_every_row_is_there_once(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    stores = [SqliteStore(tmp_path / "consensus.db", commit=failing_commit(rng)) for _ in range(2)]
    epoch = await stores[0].raise_epoch()
    clients = [PersistClient(store.consensus(epoch), MemoryBlob()) for store in stores]
    await clients[0].create_shard(SHARD)

    async def write(client: PersistClient, name: str) -> None:
        for number in range(15):
            await append_one(client, name, number)

    await asyncio.gather(*(write(c, f"w{i}") for i, c in enumerate(clients * 2)))
    upper = (await clients[0].state(SHARD)).upper
    found = await clients[0].snapshot(SHARD, DESC, Timestamp(upper - 1))
    written = {(f"w{i}", number) for i in range(4) for number in range(15)}
    check_rows(found, written, written)
    for store in stores:
        await store.close()


async def test_a_store_that_never_answers_is_unreachable(tmp_path: Path) -> None:
    def commit(connection: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    store = SqliteStore(tmp_path / "consensus.db", commit=commit, lock_timeout_s=0.2)
    with pytest.raises(StoreUnreachable):
        await store.raise_epoch()
    assert await store.current_epoch() == 0
    await store.close()


async def test_a_failing_statement_leaves_the_writer_usable(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "consensus.db")
    epoch = await store.raise_epoch()
    with pytest.raises(StoreUnreachable):
        await store.transact(epoch, lambda connection: connection.execute("SELECT nonsense"))

    def change_and_fail(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM epoch")
        raise KeyError("mine")

    consensus, shard_id = store.consensus(epoch), ShardId("a")
    outcomes = await asyncio.gather(
        store.transact(epoch, change_and_fail),
        consensus.compare_and_set_all([CompareAndSet(shard_id, None, b"1")]),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], KeyError)
    assert await consensus.head(shard_id) == Head(1, b"1")
    assert await store.current_epoch() == epoch
    await store.close()
