"""A PostgreSQL store may be opened by many at once, with odd settings, and in vain."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import quote

import psycopg
import pytest
import uvloop
from structlog.testing import capture_logs

from evertide.persist.faults import Corrupt, StoreUnreachable
from evertide.persist.push.listen import channel_of
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.postgres_session import open_session
from evertide.persist.store.protocol import CompareAndSet, Head
from evertide.vocab.ids import ShardId
from tests.support.postgres import own_schema

A = ShardId("a")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url)
    try:
        yield store
    finally:
        await store.close()


async def rows(url: str, query: str) -> list[tuple]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        return await (await connection.execute(query.encode())).fetchall()


async def test_many_may_be_the_first(postgres_url: str) -> None:
    stores = [PostgresStore(postgres_url) for _ in range(8)]
    await asyncio.gather(*(store.prepare() for store in stores))
    assert [await store.current_epoch() for store in stores] == [0] * 8
    await asyncio.gather(*(store.close() for store in stores))


async def test_nothing_happens_before_the_first_question(postgres_url: str) -> None:
    async with opened(postgres_url):
        await asyncio.sleep(0.01)
    assert await rows(postgres_url, "SELECT current_schema()") == [(None,)]


async def test_another_format_is_refused(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await store.prepare()
    await rows(postgres_url, "UPDATE epoch SET format = 99 RETURNING 1")
    async with opened(postgres_url) as store:
        with pytest.raises(Corrupt, match="format 99"):
            await store.prepare()


async def test_environments_share_a_database(postgres_dsn: str) -> None:
    """Each in the schema that its URL names, however odd the name."""
    # Within options, a space is written with a backslash.
    odd = quote(r"""-csearch_path="It's\ ""odd"",\ é",public""")
    urls = [own_schema(postgres_dsn), own_schema(postgres_dsn), f"{postgres_dsn}&options={odd}"]
    for number, url in enumerate(urls):
        async with opened(url) as store:
            for _ in range(number):
                await store.raise_epoch()
            consensus = store.consensus(await store.raise_epoch())
            await consensus.compare_and_set_all([CompareAndSet(A, None, url.encode())])
    for number, url in enumerate(urls):
        async with opened(url) as store:
            assert await store.current_epoch() == number + 1
    found = await rows(urls[2], "SELECT current_schema(), epoch FROM epoch")
    assert found == [('It\'s "odd", é', 3)]


async def test_without_a_choice_the_schema_has_our_name(postgres_dsn: str) -> None:
    await rows(postgres_dsn, "SELECT 1 FROM pg_database")
    name = f"db_{time.monotonic_ns()}"
    async with await psycopg.AsyncConnection.connect(postgres_dsn, autocommit=True) as admin:
        await admin.execute(f"CREATE DATABASE {name}".encode())
    url = postgres_dsn.replace("/postgres?", f"/{name}?")
    async with opened(url) as store:
        await store.raise_epoch()
    assert await rows(url, "SELECT epoch FROM evertide.epoch") == [(1,)]


@pytest.mark.parametrize(
    ("asked", "used"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"),
     ("remote_apply", "remote_apply")],
)  # fmt: skip
async def test_commits_wait_for_the_disk_and_for_what_the_server_demands(
    postgres_url: str, asked: str, used: str
) -> None:
    session = await open_session(f"{postgres_url}%20-csynchronous_commit%3D{asked}")
    cursor = await session.connection.execute("SHOW synchronous_commit")
    assert await cursor.fetchone() == (used,)
    await session.connection.close()


async def test_sessions_are_set_up_whatever_the_database_prefers(postgres_url: str) -> None:
    odd = "%20-cdefault_transaction_isolation%3Dserializable%20-cstatement_timeout%3D0"
    session = await open_session(postgres_url + odd)
    names = (
        "default_transaction_isolation", "statement_timeout",
        "idle_in_transaction_session_timeout", "application_name",
    )  # fmt: skip
    cursor = await session.connection.execute(
        "SELECT current_setting(name) FROM unnest(%s::text[]) AS name", (list(names),)
    )
    assert [value for (value,) in await cursor.fetchall()] == [
        "read committed", "10s", "5s", "evertide",
    ]  # fmt: skip
    await session.connection.close()


async def test_a_server_that_does_not_care_for_power_cuts_is_told_of(postgres_url: str) -> None:
    with capture_logs() as logs:
        async with opened(postgres_url) as store:
            await store.prepare()
            await asyncio.gather(*(store.current_epoch() for _ in range(10)))
    assert len([line for line in logs if "fsync" in line["event"]]) == 1


@pytest.fixture
def dead_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


SECRET = "s3cret-Pa55"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:{secret}@127.0.0.1:{port}/db",
        "postgresql://user@127.0.0.1:{port}/db?password={secret}",
        "host=127.0.0.1 port={port} user=u password={secret}",
        "postgresql://user:{secret}@/db?host=/nowhere",
        # An @ or / that should have been encoded: parts of it are taken for something else.
        "postgresql://user:x@{secret}@127.0.0.1:{port}/db",
        "postgresql://user:x/{secret}@127.0.0.1:{port}/db",
        "postgresql://user:{secret}/x@127.0.0.1:{port}/db",
        "postgresql://user:5432/{secret}@127.0.0.1:{port}/db",
        "postgresql://user:{secret}@127.0.0.1:{port}/db?nonsense={secret}",
        "host=127.0.0.1 port={port} password='{secret}",
    ],
)
async def test_in_vain_is_said_soon_and_without_the_password(url: str, dead_port: int) -> None:
    async with opened(url.format(secret=SECRET, port=dead_port)) as store:
        async with asyncio.timeout(15):
            with pytest.raises(StoreUnreachable) as unreachable:
                await store.prepare()
    told: BaseException | None = unreachable.value
    while told is not None:
        assert SECRET not in str(told)
        assert SECRET not in repr(told)
        told = told.__cause__ or told.__context__


async def test_a_password_that_the_server_quotes_is_not_told(postgres_dsn: str) -> None:
    """Here it is the name of a database, too."""
    url = postgres_dsn.replace("postgres@/postgres?", f"postgres:{SECRET}@/{SECRET}?")
    async with opened(url) as store:
        with pytest.raises(StoreUnreachable, match="does not exist") as unreachable:
            await store.prepare()
    assert SECRET not in str(unreachable.value)


async def test_a_wrong_name_of_a_database_is_said(postgres_dsn: str) -> None:
    async with opened(postgres_dsn.replace("/postgres?", "/nowhere?")) as store:
        with pytest.raises(StoreUnreachable, match='"nowhere" does not exist'):
            await store.prepare()


async def test_a_server_that_says_nothing_is_unreachable() -> None:
    """It accepts connections, as a frozen one does."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        async with opened(f"postgresql://u@127.0.0.1:{port}/db?connect_timeout=2") as store:
            async with asyncio.timeout(15):
                with pytest.raises(StoreUnreachable):
                    await store.prepare()


async def test_a_closed_store_says_so(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    await store.prepare()
    await store.close()
    await store.close()
    with pytest.raises(StoreUnreachable, match="closed"):
        await store.current_epoch()


async def test_writers_of_long_ago_are_forgotten(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        consensus = store.consensus(await store.raise_epoch())
        await consensus.compare_and_set_all([CompareAndSet(A, None, b"")])
    await rows(postgres_url, "UPDATE writers SET used_at = now() - interval '2 days' RETURNING 1")
    async with opened(postgres_url) as store:
        consensus = store.consensus(await store.current_epoch())
        await consensus.compare_and_set_all([CompareAndSet(A, 1, b"")])
    assert await rows(postgres_url, "SELECT count(*) FROM writers") == [(1,)]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_either_event_loop_will_do(postgres_url: str, run: Callable) -> None:
    """With values larger than any buffer on the way, both ways at once."""

    async def main() -> None:
        async with opened(postgres_url) as store:
            consensus = store.consensus(await store.raise_epoch())
            values = {ShardId(f"s{i}"): bytes([i]) * (4 * 1024**2) for i in range(6)}
            await asyncio.gather(
                *(
                    consensus.compare_and_set_all([CompareAndSet(shard_id, None, value)])
                    for shard_id, value in values.items()
                )
            )
            heads = await asyncio.gather(*map(consensus.head, values))
            assert heads == [Head(1, value) for value in values.values()]

    run(main())


def test_a_channel_belongs_to_a_schema_and_has_a_short_name() -> None:
    names = {channel_of(schema) for schema in ("a", "b", "A", "x" * 63, "x" * 62 + "y")}
    assert len(names) == 5
    assert all(len(name) < 64 for name in names)
