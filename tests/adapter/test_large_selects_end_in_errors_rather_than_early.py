"""Goal: whatever becomes of the replica that computes a large query, its client gets all rows or an
error; another replica is asked where that can help, and the adapter interprets no more than it can
hold. Nobody who has left keeps a job or a result at a replica.

Method: an adapter whose replicas are sockets with the interpreter behind them, and real clients.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from psycopg.rows import TupleRow

from evertide.adapter.client import StreamResponse
from evertide.adapter.reading import by_replica
from evertide.vocab.errors import SqlError
from tests.adapter.computing import ComputingReplica, Place, computing

COUNT = 500
PATIENCE_S = 20
QUERY = "SELECT n FROM big ORDER BY n"


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(by_replica, "SPARK_RECORDS", 100)
    monkeypatch.setattr(by_replica, "_FIRST_RETRY_S", 0.001)
    async with computing(tmp_path) as made:
        await made.world.run("CREATE TABLE big (n int, t text)")
        await made.write("big", [(n, "t") for n in range(COUNT)], [1] * COUNT)
        yield made


@pytest.fixture
async def client(place: Place) -> AsyncIterator[psycopg.AsyncConnection[TupleRow]]:
    connection = await place.psycopg()
    yield connection
    await connection.close()


Client = psycopg.AsyncConnection[TupleRow]


async def values(client: Client, text: str = QUERY) -> list[object]:
    return [row[0] for row in await (await client.execute(text)).fetchall()]


async def follow(client: Client, found: list[TupleRow]) -> None:
    """Each row as it comes."""
    async for row in client.cursor().stream(QUERY):
        found.append(row)


async def asked(replica: ComputingReplica) -> int:
    return (await asyncio.wait_for(replica.asked.get(), PATIENCE_S)).request_id


async def forgotten(replica: ComputingReplica) -> int:
    return await asyncio.wait_for(replica.forgotten.get(), PATIENCE_S)


async def test_a_replica_that_dies_between_batches_is_an_error(
    place: Place, client: Client
) -> None:
    """One is asked that is alive when somebody asks again."""
    place.replicas[0].dies_after = 2
    with pytest.raises(psycopg.errors.IoError, match="went away") as caught:
        await client.execute(QUERY)
    assert caught.value.diag.message_hint == "Run the query again."
    place.replicas[0].dies_after = None
    assert await values(client) == list(range(COUNT))


async def test_rows_that_came_before_it_died_are_told_before_the_error(place: Place) -> None:
    place.replicas[0].dies_after = 2
    client = await place.psycopg()
    found: list[TupleRow] = []
    with pytest.raises(psycopg.errors.IoError):
        await follow(client, found)
    assert found == [(n,) for n in range(200)]
    await client.close()


@pytest.mark.parametrize("options", ["", " (FORMAT csv)", " (FORMAT binary)"])
async def test_a_copy_fails_with_its_replica(place: Place, client: Client, options: str) -> None:
    async def copied() -> None:
        async with client.cursor().copy(f"COPY ({QUERY}) TO STDOUT{options}") as copy:
            async for _ in copy:
                pass

    place.replicas[0].dies_after = 2
    with pytest.raises(psycopg.errors.IoError):
        await copied()


async def test_a_cursor_fails_with_its_replica_and_its_block_with_it(
    place: Place, client: Client
) -> None:
    place.replicas[0].dies_after = 2
    await client.execute("BEGIN")
    await client.execute(f"DECLARE c CURSOR FOR {QUERY}")
    assert await values(client, "FETCH 150 c") == list(range(150))
    with pytest.raises(psycopg.errors.IoError):
        await client.execute("FETCH 150 c")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        await client.execute("SELECT 1")
    await client.execute("ROLLBACK")


async def test_a_portal_fails_with_its_replica(place: Place) -> None:
    place.replicas[0].dies_after = 2
    client = await place.asyncpg()
    transaction = client.transaction()
    await transaction.start()
    cursor = await client.cursor(QUERY)
    assert len(await cursor.fetch(150)) == 150
    with pytest.raises(asyncpg.PostgresError, match="went away"):
        await cursor.fetch(150)
    await transaction.rollback()
    assert await client.fetchval("SELECT 1") == 1
    await client.close()


async def test_one_that_refuses_has_another_asked(place: Place, client: Client) -> None:
    one, other = place.replicas
    one.refuses = True
    assert await values(client) == list(range(COUNT))
    assert (one.asked.qsize(), other.told) == (1, 5)


async def test_one_that_dies_while_it_computes_has_another_asked(
    place: Place, client: Client
) -> None:
    one, other = place.replicas
    one.let.clear()
    running = asyncio.create_task(values(client))
    await asked(one)
    for writer in one.writers:
        writer.close()
    assert await asyncio.wait_for(running, PATIENCE_S) == list(range(COUNT))
    assert other.told == 5


async def test_nobody_else_has_a_result_that_was_announced(place: Place, client: Client) -> None:
    one, other = place.replicas
    one.dies_after = 0
    with pytest.raises(psycopg.errors.IoError, match="went away"):
        await client.execute(QUERY)
    assert other.asked.empty()


async def test_the_error_of_a_query_is_its_answer(place: Place, client: Client) -> None:
    one, other = place.replicas
    with pytest.raises(psycopg.errors.DivisionByZero) as caught:
        await client.execute("SELECT 1 / n FROM big")
    assert caught.value.diag.message_hint == "of the replica"
    assert one.asked.qsize() == 1
    assert other.asked.empty()


async def test_a_cancel_ends_the_job(place: Place, client: Client) -> None:
    one, _ = place.replicas
    one.let.clear()
    running = asyncio.create_task(client.execute(QUERY))
    request_id = await asked(one)
    await client.cancel_safe()
    with pytest.raises(psycopg.errors.QueryCanceled):
        await asyncio.wait_for(running, PATIENCE_S)
    assert await forgotten(one) == request_id
    one.let.set()
    assert len(await values(client)) == COUNT


async def test_a_timeout_ends_the_job(place: Place, client: Client) -> None:
    one, _ = place.replicas
    one.let.clear()
    await client.execute("SET statement_timeout = '1s'")
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        await client.execute(QUERY)
    assert await forgotten(one) == await asked(one)


async def test_a_client_that_leaves_while_it_is_computed_ends_the_job(place: Place) -> None:
    one, _ = place.replicas
    one.let.clear()
    client = await place.psycopg()
    running = asyncio.create_task(client.execute(QUERY))
    request_id = await asked(one)
    running.cancel()
    await asyncio.wait([running])
    await client.close()
    assert await forgotten(one) == request_id


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "CLOSE ALL", "ROLLBACK TO s"])
async def test_whoever_stops_reading_lets_the_replica_forget(
    place: Place, client: Client, end: str
) -> None:
    one, _ = place.replicas
    await client.execute("BEGIN")
    await client.execute("SAVEPOINT s")
    await client.execute(f"DECLARE c CURSOR FOR {QUERY}")
    await client.execute("FETCH 10 c")
    assert one.forgotten.empty()
    await client.execute(end)
    assert await forgotten(one) == await asked(one)
    (telling,) = one.results.values()
    assert telling.told == 2


async def test_few_records_are_interpreted_where_no_replica_answers(
    place: Place, client: Client
) -> None:
    for replica in place.replicas:
        replica.refuses = True
    assert await values(client) == list(range(COUNT))
    assert [replica.asked.qsize() for replica in place.replicas] == [1, 1]


async def test_many_records_wait_for_a_replica(
    place: Place, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_replica, "INTERPRETED_RECORDS", COUNT - 1)
    for replica in place.replicas:
        replica.refuses = True
    running = asyncio.create_task(values(client))
    for _ in range(3):
        await asked(place.replicas[0])
    place.replicas[1].refuses = False
    assert await asyncio.wait_for(running, PATIENCE_S) == list(range(COUNT))
    place.replicas[1].refuses = True
    await client.execute("SET statement_timeout = '200ms'")
    with pytest.raises(psycopg.errors.QueryCanceled) as caught:
        await client.execute(QUERY)
    hint = caught.value.diag.message_hint
    assert hint is not None
    assert "mz_cluster_replica_statuses" in hint


async def test_nobody_waits_for_replicas_of_which_there_are_none(
    place: Place, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_replica, "INTERPRETED_RECORDS", COUNT - 1)
    for replica in place.replicas:
        replica.refuses = True
    running = asyncio.create_task(values(client))
    for _ in range(2):
        await asked(place.replicas[0])
    await place.world.run("ALTER CLUSTER two SET (REPLICATION FACTOR 0)")
    with pytest.raises(psycopg.Error, match='cluster "two" has no replica') as caught:
        await asyncio.wait_for(running, PATIENCE_S)
    assert caught.value.sqlstate == "55000"


async def test_a_result_that_is_too_large_is_refused_before_its_first_row(
    place: Place, client: Client
) -> None:
    one, _ = place.replicas
    await client.execute("SET max_query_result_size = '10kB'")
    found: list[TupleRow] = []
    with pytest.raises(psycopg.Error, match="result exceeds max size") as caught:
        await follow(client, found)
    assert (caught.value.sqlstate, found) == ("53000", [])
    assert await forgotten(one) == await asked(one)
    assert await values(client, f"{QUERY} LIMIT 5") == list(range(5))


async def test_a_result_that_lost_its_transaction_is_not_at_its_end(place: Place) -> None:
    """As where a pipeline's transaction had to end between two statements."""
    connection = await place.world.connect()
    (prepared,) = connection.split(QUERY)
    response = await connection.execute(prepared, ())
    assert isinstance(response, StreamResponse)
    assert len(await response.rows.take(10) or ()) == 10
    await connection.end_implicit(failed=False)
    with pytest.raises(SqlError, match="given up"):
        await response.rows.take(10)
    await connection.close()
