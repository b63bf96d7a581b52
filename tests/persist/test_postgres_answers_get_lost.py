"""Goal: whatever happens to a connection, each row is there exactly once.

Method: a proxy before a real server cuts connections around changes: before they arrive, after they
were done, and so that they arrive when their sender has given up on them already. Also the server
ends connections by itself, and is stopped and started again.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence

import psycopg
import pytest

from evertide.persist.faults import StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.store.attempts import Attempt, Change, OutcomeUnknown
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_pool import Pool
from evertide.persist.store.postgres_port import PostgresPort
from evertide.persist.store.protocol import AllSet, CompareAndSet, Head
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from tests.persist.racing import DESC, SHARD, append_one, check_rows
from tests.support.cut_proxy import CutProxy, Fate, cut_changes, is_change, running_cut_proxy
from tests.support.postgres import own_schema, restartable_postgres
from tests.support.seeds import seeds

A = ShardId("a")


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[CutProxy]:
    async with running_cut_proxy(postgres_url) as running:
        yield running


async def write(client: PersistClient, name: str, count: int) -> None:
    for number in range(count):
        await append_one(client, name, number)


async def check(client: PersistClient, names: Sequence[str], count: int) -> None:
    upper = (await client.state(SHARD)).upper
    assert upper == len(names) * count, "each append moves the upper by one"
    found = await client.snapshot(SHARD, DESC, Timestamp(upper - 1))
    written = {(name, number) for name in names for number in range(count)}
    check_rows(found, written, written)


@seeds(range(6), deep=range(100, 200), fresh=50)
async def test_every_row_is_there_once_though_connections_are_cut(
    seed: int, postgres_url: str, proxy: CutProxy
) -> None:
    stores = [PostgresStore(proxy.url(postgres_url)) for _ in range(2)]
    epoch = await stores[0].raise_epoch()
    clients = [PersistClient(store.consensus(epoch), MemoryBlob()) for store in stores]
    await clients[0].create_shard(SHARD)
    proxy.choose = cut_changes(random.Random(seed))
    names = ["w0", "w1", "w2", "w3"]
    await asyncio.gather(*(write(c, n, 8) for c, n in zip(clients * 2, names, strict=True)))
    proxy.choose = lambda _: Fate.ARRIVES
    # Those that arrive late have arrived by now.
    await asyncio.sleep(proxy.late_s * 3)
    await check(clients[0], names, 8)
    assert len(set(proxy.fates)) > 1, "connections were cut"
    for client, store in zip(clients, stores, strict=True):
        await client.__aexit__()
        await store.close()


@pytest.mark.parametrize("cut", range(2))
@pytest.mark.parametrize("fate", [fate for fate in Fate if fate is not Fate.ARRIVES])
async def test_one_change_and_one_cut(
    fate: Fate, cut: int, postgres_url: str, proxy: CutProxy
) -> None:
    """Each way of losing a change, by itself: done once, under one seqno. A shard that is made and
    one that is there are changed by different statements."""
    store = PostgresStore(proxy.url(postgres_url))
    consensus = store.consensus(await store.raise_epoch())
    cuts = iter([*[Fate.ARRIVES] * cut, fate])
    proxy.choose = lambda sent: next(cuts, Fate.ARRIVES) if is_change(sent) else Fate.ARRIVES
    for number in range(3):
        change = CompareAndSet(A, number or None, b"%d" % number)
        assert await consensus.compare_and_set_all([change]) == AllSet()
        await asyncio.sleep(proxy.late_s * 2)
    assert await consensus.head(A) == Head(3, b"2")
    assert fate in proxy.fates
    await store.close()


@pytest.mark.parametrize("fate", [fate for fate in Fate if fate is not Fate.ARRIVES])
async def test_a_commit_of_several_statements_and_one_cut(
    fate: Fate, postgres_url: str, proxy: CutProxy
) -> None:
    """A transaction over other tables is done once, too, and its result is that of that once."""
    store = PostgresStore(proxy.url(postgres_url))
    epoch = await store.raise_epoch()
    cuts, runs = iter([fate]), itertools.count(1)
    proxy.choose = lambda sent: next(cuts, Fate.ARRIVES) if b"COMMIT" in sent else Fate.ARRIVES

    async def work(connection: psycopg.AsyncConnection) -> int:
        run = next(runs)
        await connection.execute("CREATE TABLE IF NOT EXISTS others (run int)")
        await connection.execute("INSERT INTO others VALUES (%s)", (run,))
        return run

    committed = await store._transact(epoch, work)
    async with await psycopg.AsyncConnection.connect(postgres_url) as looker:
        cursor = await looker.execute("SELECT run FROM others")
        assert await cursor.fetchall() == [(committed,)]
    assert next(cuts, None) is None, "the cut was made"
    await store.close()


async def test_a_change_that_is_ended_by_the_server_is_not_known_to_be_done(
    postgres_url: str,
) -> None:
    """Its session is terminated while it waits for a shard that somebody else holds."""
    store, pool = PostgresStore(postgres_url), Pool(postgres_url)
    epoch = await store.raise_epoch()
    consensus, port = store.consensus(epoch), PostgresPort(pool)
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"1")])
    async with await psycopg.AsyncConnection.connect(postgres_url) as holder:
        await holder.execute("SELECT FROM shards WHERE shard_id = 'a' FOR UPDATE")
        change = Change(epoch, [CompareAndSet(A, 1, b"2")])
        direct = asyncio.create_task(port.change(Attempt("w", 1), change))
        through_attempts = asyncio.create_task(
            consensus.compare_and_set_all([CompareAndSet(A, 1, b"3")])
        )
        await ended_waiting_sessions(postgres_url, 2)
        with pytest.raises(OutcomeUnknown):
            await direct
        assert await port.settle(Attempt("w", 1)) is None
        await holder.rollback()
    await through_attempts
    assert await consensus.head(A) == Head(2, b"3")
    await pool.close()
    await store.close()


async def ended_waiting_sessions(url: str, count: int) -> None:
    """End so many sessions that wait for a lock, once there are so many."""
    query = """
        SELECT pid FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND application_name = 'evertide' AND datname IS NOT NULL
        AND pid IN (SELECT pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
            WHERE c.relnamespace = current_schema()::regnamespace)"""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        async with asyncio.timeout(10):
            while True:
                waiting = await (await connection.execute(query)).fetchall()
                if len(waiting) >= count:
                    break
                await asyncio.sleep(0.01)
        for (pid,) in waiting:
            await connection.execute("SELECT pg_terminate_backend(%s)", (pid,))


async def test_silence_is_an_unknown_outcome_and_the_change_comes_too_late(
    postgres_url: str,
) -> None:
    """The client waits for an answer no longer than it must; what it bars is barred for good."""
    store, pool = PostgresStore(postgres_url), Pool(postgres_url, answer_timeout_s=0.3)
    epoch, port = await store.raise_epoch(), PostgresPort(pool)
    consensus = store.consensus(epoch)
    await consensus.compare_and_set_all([CompareAndSet(A, None, b"1")])
    async with await psycopg.AsyncConnection.connect(postgres_url) as holder:
        await holder.execute("SELECT FROM shards WHERE shard_id = 'a' FOR UPDATE")
        with pytest.raises(OutcomeUnknown, match="no answer within"):
            await port.change(Attempt("w", 1), Change(epoch, [CompareAndSet(A, 1, b"late")]))
        assert await port.settle(Attempt("w", 1)) is None
        await holder.rollback()
    # The session that waited has got its lock by now, and found itself barred.
    async with await psycopg.AsyncConnection.connect(postgres_url) as looker:
        await looker.execute("LOCK TABLE shards IN EXCLUSIVE MODE")
    assert await consensus.head(A) == Head(1, b"1")
    await pool.close()
    await store.close()


@pytest.mark.parametrize("mode", ["immediate", "fast"])
async def test_a_restart_of_the_server_is_survived(mode: str) -> None:
    """Again and again a crash, or an orderly stop, in the middle of writes."""
    with restartable_postgres() as server:
        store = PostgresStore(own_schema(server.dsn))
        client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob())
        await client.create_shard(SHARD)
        written: set[tuple[str, int]] = set()
        ended = asyncio.Event()

        async def write_on(name: str) -> None:
            number = 0
            while not ended.is_set():
                await append_one(client, name, number)
                written.add((name, number))
                number += 1

        writing = [asyncio.create_task(write_on(name)) for name in ("w0", "w1", "w2")]
        for _ in range(3):
            await more_of(written)
            await asyncio.to_thread(server.stop, mode)
            await asyncio.to_thread(server.start)
        ended.set()
        await asyncio.gather(*writing)
        upper = (await client.state(SHARD)).upper
        assert upper == len(written), "each append moves the upper by one"
        check_rows(await client.snapshot(SHARD, DESC, Timestamp(upper - 1)), written, written)
        await client.__aexit__()
        await store.close()


async def more_of(written: set[tuple[str, int]]) -> None:
    """Until some more rows have been acknowledged."""
    before = len(written)
    async with asyncio.timeout(30):
        while len(written) < before + 5:
            await asyncio.sleep(0.005)


async def test_a_server_that_stays_away_is_unreachable() -> None:
    with restartable_postgres() as server:
        store = PostgresStore(own_schema(server.dsn), patience_s=0.5)
        consensus = store.consensus(await store.raise_epoch())
        await asyncio.to_thread(server.stop)
        try:
            with pytest.raises(StoreUnreachable):
                await consensus.compare_and_set_all([CompareAndSet(A, None, b"1")])
            with pytest.raises(StoreUnreachable):
                await consensus.head(A)
        finally:
            await asyncio.to_thread(server.start)
        await consensus.compare_and_set_all([CompareAndSet(A, None, b"1")])
        await store.close()
