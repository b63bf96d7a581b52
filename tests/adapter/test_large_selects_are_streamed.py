"""Goal: clients get the rows of a large query as they get those of a small one, whichever way they
ask for them, while the rows lie at the replica that computed them.

Method: an adapter whose replicas are sockets with the interpreter behind them, and real clients;
the same statements are interpreted in the adapter as well.
"""

import asyncio
import io
import random
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow

from evertide.adapter import dispatch
from evertide.adapter.client import StreamResponse
from evertide.adapter.connection import Connection
from evertide.adapter.reading import by_replica
from evertide.adapter.reading.question import Question
from evertide.adapter.reading.read import run_read
from evertide.adapter.reading.result_stream import drain
from evertide.adapter.transaction import ReadSet, Transaction, Writing
from evertide.adapter.writing.read_for_write import WriteRead, read_rows
from evertide.sql.plan.plans import SelectPlan
from tests.adapter.computing import Place, computing
from tests.pgwire.raw import query, startup

COUNT = 2_500
LARGE, SMALL = 1_000, 1_000_000
PATIENCE_S = 20


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(by_replica, "SPARK_RECORDS", LARGE)
    async with computing(tmp_path) as made:
        await made.world.run("CREATE TABLE big (n int, t text, x numeric)")
        rng = random.Random(3)
        texts = [None, "", "a\tb", 'say "x", y', "é" * 20]
        rows = [(n, rng.choice(texts), None) for n in range(COUNT)]
        await made.write("big", rows, [rng.choice([1, 1, 1, 2, 5]) for _ in rows])
        yield made


@pytest.fixture
async def client(place: Place) -> AsyncIterator[psycopg.AsyncConnection[TupleRow]]:
    connection = await place.psycopg()
    yield connection
    await connection.close()


async def both_ways(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    client: psycopg.AsyncConnection[TupleRow],
    text: str,
    *,
    binary: bool = False,
) -> tuple[list[TupleRow], list[TupleRow]]:
    """Computed by a replica, and interpreted in the adapter."""
    found: list[list[TupleRow]] = []
    for records in (LARGE, SMALL):
        monkeypatch.setattr(by_replica, "SPARK_RECORDS", records)
        cursor = await client.execute(text, binary=binary)
        assert cursor.statusmessage is not None
        found.append(await cursor.fetchall())
        assert cursor.statusmessage == f"SELECT {len(found[-1])}"
    return found[0], found[1]


async def forgotten(place: Place) -> None:
    """Until the replica was told that nobody wants the rest."""
    await asyncio.wait_for(place.replicas[0].forgotten.get(), PATIENCE_S)


@pytest.mark.parametrize("seed", range(4))
async def test_any_query_has_the_rows_that_the_interpreter_finds(
    place: Place,
    client: psycopg.AsyncConnection[TupleRow],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    rng = random.Random(seed)
    for number in range(10):
        place.replicas[0].batch_rows = rng.choice([1, 7, 100, 5_000])
        columns = rng.choice(["n, t", "t", "n", "t || n, n + 1", "*", "x, t, n", ""])
        order = rng.choice(["ORDER BY n DESC, t", "ORDER BY t NULLS FIRST, n DESC", "ORDER BY n"])
        limit = rng.choice(["", "LIMIT 0", "LIMIT 1", f"LIMIT {rng.randrange(6_000)}"])
        offset = rng.choice(["", f"OFFSET {rng.randrange(6_000)}"])
        text = f"SELECT {columns} FROM big {order} {limit} {offset}"
        asked = place.replicas[0].asked.qsize()
        streamed, interpreted = await both_ways(
            place, monkeypatch, client, text, binary=rng.random() < 0.5
        )
        assert streamed == interpreted, (number, text)
        assert place.replicas[0].asked.qsize() == asked + 1
        assert place.replicas[1].asked.empty()


async def test_a_result_without_rows_has_none(
    place: Place, client: psycopg.AsyncConnection[TupleRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT n FROM big WHERE n + 0 < 0"
    assert await both_ways(place, monkeypatch, client, text) == ([], [])


@pytest.mark.parametrize("options", ["", " (FORMAT csv)", " (FORMAT binary)"])
async def test_copies_have_the_same_bytes(
    place: Place, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    found: list[bytes] = []
    client = await place.psycopg()
    for records in (LARGE, SMALL):
        monkeypatch.setattr(by_replica, "SPARK_RECORDS", records)
        cursor = client.cursor()
        written = io.BytesIO()
        text = f"COPY (SELECT n, t FROM big ORDER BY n) TO STDOUT{options}"
        async with cursor.copy(text) as copy:
            async for part in copy:
                written.write(part)
        found.append(written.getvalue())
    await client.close()
    assert found[0] == found[1]
    assert place.replicas[0].told == 25
    await forgotten(place)


async def test_a_cursor_gives_exactly_what_is_fetched(
    place: Place, client: psycopg.AsyncConnection[TupleRow]
) -> None:
    place.replicas[0].batch_rows = 7
    rows = await (await client.execute("SELECT n, t FROM big ORDER BY n")).fetchall()
    async with client.transaction():
        await client.execute("DECLARE c CURSOR FOR SELECT n, t FROM big ORDER BY n")
        at = 0
        for count in (10, 0, 1, 10, 3_000):
            cursor = await client.execute(f"FETCH {count} c")
            fetched = await cursor.fetchall()
            assert cursor.statusmessage == f"FETCH {count}"
            assert fetched == rows[at : at + count]
            at += count
        assert (
            await (await client.execute("FETCH ALL c WITH (timeout = '0s')")).fetchall()
            == rows[at:]
        )
        assert await (await client.execute("FETCH 10 c")).fetchall() == []
        await client.execute("DECLARE d CURSOR FOR SELECT n FROM big")
        await client.execute("FETCH 1 d")
        await forgotten(place)  # of the select, which was told to its end
        await forgotten(place)  # of the first cursor
        await client.execute("CLOSE d")
        await forgotten(place)


async def test_drivers_fetch_from_cursors(
    place: Place, client: psycopg.AsyncConnection[TupleRow]
) -> None:
    rows = await (await client.execute("SELECT n FROM big ORDER BY n")).fetchall()
    async with client.transaction(), client.cursor("named") as cursor:
        cursor.itersize = 777
        await cursor.execute("SELECT n FROM big ORDER BY n")
        assert [row async for row in cursor] == rows


async def test_a_portal_gives_some_at_a_time(place: Place) -> None:
    client = await place.asyncpg()
    rows = await client.fetch("SELECT n, t FROM big ORDER BY n")
    async with client.transaction():
        cursor = await client.cursor("SELECT n, t FROM big ORDER BY n")
        found = [row for _ in range(5) for row in await cursor.fetch(300)]
        assert found == rows[:1_500]
        # Two batches at most are on this side of what was asked for.
        (_, telling) = place.replicas[0].results.values()
        assert telling.told < len(telling.batches)
        assert await cursor.fetch(100_000) == rows[1_500:]
        other = await client.cursor("SELECT n FROM big")
        await other.fetch(10)
        for _ in range(2):
            await forgotten(place)
    await forgotten(place)  # the last of them with its transaction
    await client.close()


async def test_a_row_is_sent_as_often_as_it_is_there(
    place: Place, client: psycopg.AsyncConnection[TupleRow]
) -> None:
    await place.write("big", [(-1, "often", None)], [1_000_000_000])
    text = "SELECT n, t FROM big WHERE n + 0 < 1 ORDER BY n, t LIMIT 3 OFFSET 500000000"

    async with client.transaction():
        await client.execute(f"DECLARE c CURSOR FOR {text}")
        assert await (await client.execute("FETCH 10 c")).fetchall() == [(-1, "often")] * 3


async def test_two_at_once_do_not_mix(place: Place) -> None:
    clients = [await place.asyncpg() for _ in range(3)]
    found = await asyncio.gather(
        *[
            one.fetch(f"SELECT n + {number} FROM big ORDER BY n")
            for number, one in enumerate(clients)
        ]
    )
    for number, rows in enumerate(found):
        assert [row[0] - number for row in rows] == [row[0] for row in found[0]]
    for one in clients:
        await one.close()


async def test_what_is_sent_behind_it_is_answered_behind_it(
    place: Place, client: psycopg.AsyncConnection[TupleRow]
) -> None:
    async with client.pipeline():
        first = await client.execute("SELECT n FROM big WHERE n + 0 < 2000")
        second = await client.execute("SELECT 1")
        assert await second.fetchall() == [(1,)]
        assert len(await first.fetchall()) > 2_000
    both = await client.execute("SELECT n FROM big; SELECT 2")
    assert both.statusmessage is not None
    assert len(await both.fetchall()) > COUNT
    assert both.nextset()
    assert await both.fetchall() == [(2,)]


async def test_names_are_told_in_streams_too(
    place: Place, client: psycopg.AsyncConnection[TupleRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT 'big'::regclass, n FROM big ORDER BY n LIMIT 2"
    streamed, interpreted = await both_ways(place, monkeypatch, client, text)
    assert streamed == interpreted
    assert streamed[0][0] == "big"
    assert place.replicas[0].told


async def selected(place: Place, text: str) -> tuple[Connection, SelectPlan]:
    connection = await place.world.connect()
    (prepared,) = connection.split(text)
    request = await connection._request(prepared, ())
    assert isinstance(request.plan, SelectPlan)
    connection._session.transaction = Transaction()
    return connection, request.plan


async def test_words_are_told_in_streams_too(place: Place) -> None:
    connection, plan = await selected(place, "SELECT array[n, 7] FROM big ORDER BY n LIMIT 2")
    response = await dispatch._select(
        replace(plan, vectors=(0,)),
        (),
        connection._session,
        connection._env,
        await connection._env.catalog.current(),
    )
    assert isinstance(response, StreamResponse)
    assert (await drain(response.rows))[0] == ("0 7",)


async def test_who_needs_all_rows_gets_them(place: Place) -> None:
    """As statements do that write what they read."""
    connection, plan = await selected(place, "SELECT n FROM big ORDER BY n OFFSET 5")
    session, env = connection._session, connection._env
    snapshot = await env.catalog.current()
    question = Question(plan.relation, plan.finishing)
    rows = await run_read(question, session, env, snapshot)
    upper = await place.world.txns.upper()
    how = WriteRead(session, env, snapshot, Writing(read_set=ReadSet(upper)), in_block=False)
    assert await read_rows(question, how) == rows
    assert len(rows) > COUNT
    assert place.replicas[0].asked.qsize() == 2


async def test_what_was_read_may_be_merged_once_the_result_is_there(place: Place) -> None:
    replica = place.replicas[0]
    replica.let.clear()
    shard_id = place.world.item("big").shard_id
    assert shard_id is not None

    def readers() -> int:
        return place.world.persist.leases._leases[shard_id].readers.total()

    connection = await place.world.connect()
    (prepared,) = connection.split("SELECT n FROM big")
    running = asyncio.create_task(connection.execute(prepared, ()))
    await asyncio.wait_for(replica.asked.get(), PATIENCE_S)
    assert readers() == 1
    replica.let.set()
    response = await asyncio.wait_for(running, PATIENCE_S)
    assert isinstance(response, StreamResponse)
    assert readers() == 0
    assert replica.told == 1
    await connection.close()
    await forgotten(place)


async def test_a_client_that_does_not_read_holds_up_its_own_result_alone(place: Place) -> None:
    """Rows wait at the replica, and when the client leaves nobody keeps them."""
    silent = socket.socket()
    silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    silent.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(silent, ("127.0.0.1", place.port))
    await loop.sock_sendall(silent, startup(user="materialize", database="materialize"))
    await loop.sock_sendall(silent, query("SELECT repeat('x', 10000) || n FROM big"))
    replica, seen = place.replicas[0], -1
    while seen != replica.told or not seen:
        seen = replica.told
        await asyncio.sleep(0.3)
    (telling,) = replica.results.values()
    client = await place.asyncpg()
    assert await client.fetchval("SELECT n FROM big ORDER BY n LIMIT 1") == 0
    await client.close()
    # What fits into the network's buffers and the adapter's, of 25 MB and more.
    assert telling.told < 15
    assert telling.acknowledged == telling.told - 1
    assert not telling.cancelled
    await forgotten(place)
    silent.close()
    await forgotten(place)
