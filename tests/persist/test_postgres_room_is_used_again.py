"""A shard that changes all the time does not fill the server's disk with its old states."""

import asyncio
import os

import psycopg

from evertide.persist.store.attempts import Attempts
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_pool import Pool
from evertide.persist.store.postgres_port import PostgresPort
from evertide.persist.store.postgres_upkeep import Upkeep
from evertide.persist.store.protocol import AllSet, CompareAndSet
from evertide.vocab.ids import ShardId

A = ShardId("a")
STATE = os.urandom(20_000)


async def size(url: str) -> int:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute("SELECT pg_total_relation_size('shards')")
        row = await cursor.fetchone()
        assert row is not None
        return int(row[0])


async def test_old_states_make_room_for_new_ones(postgres_url: str) -> None:
    store, pool = PostgresStore(postgres_url), Pool(postgres_url)
    upkeep = Upkeep(pool, written_bytes=1024**2)
    consensus = Attempts(PostgresPort(pool, upkeep), await store.raise_epoch())
    for seqno in range(600):
        change = CompareAndSet(A, seqno or None, STATE)
        assert await consensus.compare_and_set_all([change]) == AllSet()
        if upkeep._task is not None and seqno % 20 == 0:
            await upkeep._task
    written = 600 * len(STATE)
    assert await size(postgres_url) < written / 2
    await upkeep.close()
    await pool.close()
    await store.close()


async def test_it_may_end_in_the_middle(postgres_url: str) -> None:
    store, pool = PostgresStore(postgres_url), Pool(postgres_url)
    await store.prepare()
    upkeep = Upkeep(pool, written_bytes=1)
    for _ in range(3):
        upkeep.wrote(10)
        await asyncio.sleep(0.01)
    async with asyncio.timeout(20):
        await upkeep.close()
        await pool.close()
    await store.close()
