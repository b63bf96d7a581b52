"""Goal: a PostgreSQL store of an earlier format opens with all it holds, whoever is at work in it.

Method: the tables and functions of the first release, kept beside this file. A client that calls
them stands for a process of that release.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_schema import FENCED
from evertide.persist.store.protocol import AllSet, CompareAndSet, Head, StashMismatch, Store
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline
from tests.conformance.stash_rows import ITEM, append, row, ts
from tests.support.postgres import own_schema

FORMAT_1 = Path(__file__).with_name("postgres_format_1.sql").read_text()
A, B = ShardId("a"), ShardId("b")
CHANGE = """
    SELECT change(%s, 'old', %s, false, ARRAY[%s], ARRAY[%s]::bigint[], ARRAY[%s::bytea],
        '{}', '{}', NULL, NULL)"""


@pytest.fixture
async def old(postgres_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """A process of the first release, which has made the store and opened its third generation."""
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        await lay_down(connection)
        for epoch in range(3):
            await connection.execute("SELECT raise_epoch(%s, 'old')", (epoch,))
        await connection.execute(CHANGE, (3, 1, A, None, b"a"))
        await connection.execute("SELECT apply(3, 'epoch_ms', 40)")
        await connection.execute("SELECT note('environment', 'kept')")
        yield connection


async def lay_down(connection: psycopg.AsyncConnection) -> None:
    path = await (await connection.execute("SHOW search_path")).fetchone()
    assert path is not None
    await connection.execute(f"CREATE SCHEMA {path[0]}".encode())
    await connection.execute(FORMAT_1.replace("SCHEMA.", f"{path[0]}.").encode())


@pytest.fixture
async def store(old: psycopg.AsyncConnection, postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres_url)
    yield opened
    await opened.close()


async def use(store: Store, epoch: Epoch) -> None:
    """It is as good as a new one."""
    consensus, stash = store.consensus(epoch), store.stash()
    await stash.ensure([ITEM])
    stored = append(0, [row(0, "k")])
    sets = [CompareAndSet(B, None, b"b")]
    outcome = await consensus.compare_and_set_all(sets, stash=stored, raises_epoch=True)
    assert outcome == AllSet()
    assert (await stash.read()).rows == [row(0, "k")]
    assert await store.current_epoch() == epoch + 1


async def test_a_schema_of_the_first_format(store: PostgresStore) -> None:
    await store.prepare()
    assert await store.current_epoch() == 3
    assert await store.consensus(Epoch(3)).head(A) == Head(1, b"a")
    assert (await store.oracle_rows(Epoch(3)).read(Timeline.EPOCH_MS)).read_ts == 40
    assert await store.note("environment", "x") == "kept"
    await use(store, Epoch(3))


async def test_many_may_bring_it_up_to_date_at_once(
    old: psycopg.AsyncConnection, postgres_url: str
) -> None:
    stores = [PostgresStore(postgres_url) for _ in range(8)]
    await asyncio.gather(*(store.prepare() for store in stores))
    assert await asyncio.gather(*(store.stash().upper() for store in stores)) == [0] * 8
    await use(stores[3], Epoch(3))
    outcome = await stores[5].consensus(Epoch(4)).compare_and_set_all([], stash=append(0, []))
    assert outcome == StashMismatch(ts(1))
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_process_of_the_first_release_goes_on_until_it_is_fenced(
    old: psycopg.AsyncConnection, store: PostgresStore
) -> None:
    """What it calls has the same arguments; and it is fenced however the next generation opens."""
    await old.execute("""
        PREPARE mine(bigint, bigint, bytea) AS SELECT change(3, 'old', $1, false, ARRAY['a'],
            ARRAY[$2], ARRAY[$3], '{}', '{}', NULL, NULL)""")
    await old.execute("EXECUTE mine(2, 1, 'before')")
    await store.prepare()
    await old.execute("EXECUTE mine(3, 2, 'after')")
    await old.execute(CHANGE, (3, 4, A, 3, b"again"))
    assert await store.consensus(Epoch(3)).head(A) == Head(4, b"again")
    assert await (await old.execute("SELECT settle('old', 4)")).fetchone() == ("[]",)
    await use(store, Epoch(3))
    for late in ("EXECUTE mine(5, 4, 'late')", "SELECT allocate(3, 'epoch_ms', 1, 1)"):
        with pytest.raises(psycopg.Error) as fenced:
            await old.execute(late.encode())
        assert fenced.value.sqlstate == FENCED
    assert await store.consensus(Epoch(4)).head(A) == Head(4, b"again")


async def test_a_transaction_under_way_neither_blocks_it_nor_is_disturbed(
    old: psycopg.AsyncConnection, store: PostgresStore
) -> None:
    async with old.transaction():
        await old.execute(CHANGE, (3, 2, A, 1, b"under way"))
        async with asyncio.timeout(5):
            await store.prepare()
            assert await store.stash().upper() == 0
    assert await store.consensus(Epoch(3)).head(A) == Head(2, b"under way")


async def test_it_ends_up_like_a_new_one(
    old: psycopg.AsyncConnection, store: PostgresStore, postgres_dsn: str
) -> None:
    """Nothing is missing and nothing of before is left over: columns, options, functions."""
    await store.prepare()
    new_url = own_schema(postgres_dsn)
    new = PostgresStore(new_url)
    await new.prepare()
    await new.close()
    async with await psycopg.AsyncConnection.connect(new_url) as looker:
        assert await described(old) == await described(looker)


async def described(connection: psycopg.AsyncConnection) -> list[tuple]:
    cursor = await connection.execute("""
        SELECT c.relname, a.attname, a.atttypid::regtype::text, a.attnotnull, c.reloptions
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'i')
        UNION ALL
        SELECT p.proname, pg_get_function_identity_arguments(p.oid),
            replace(pg_get_functiondef(p.oid), quote_ident(current_schema()), 'here'), true, NULL
        FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
        ORDER BY 1, 2, 3""")
    found = await cursor.fetchall()
    cursor = await connection.execute("SELECT format FROM epoch")
    return found + await cursor.fetchall()
