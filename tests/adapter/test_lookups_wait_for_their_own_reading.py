"""Goal: a lookup sees every write that was acknowledged before it came, whoever else looks up rows.

Method: the oracle's answer to one round of lookups is held back until a write is acknowledged and
another lookup has come. The first may be answered by the older reading, the second may not. And
sessions over the same catalog: what a statement was recognised by is changed between two runs.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from evertide.adapter.client import Prepared
from evertide.adapter.connection import Connection, Connections
from evertide.adapter.short_way import rounds as rounds_module
from evertide.adapter.short_way.asked import Asked
from evertide.adapter.short_way.rounds import Rounds
from evertide.persist.faults import StoreFailing
from evertide.persist.txn import Committed, TableWrite
from evertide.vocab.datum import Datum, Row
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.adapter.staged import World, new_world
from tests.catalog.environment import Environment

TEXT = "SELECT v FROM k WHERE id = $1"


class HeldOracle:
    """Reads when it is asked and answers when it is let: `asked` is set by the former."""

    def __init__(self, world: World) -> None:
        self._oracle = world.oracle
        self.asked = asyncio.Event()
        self.let = asyncio.Event()
        self.failure: Exception | None = None

    async def read_ts(self, timeline: Timeline) -> Timestamp:
        read_ts = await self._oracle.read_ts(timeline)
        if timeline is Timeline.EPOCH_MS:
            self.asked.set()
            await self.let.wait()
        if self.failure is not None:
            raise self.failure
        return read_ts


class Site:
    """A table k with an index, sessions over it, and rounds whose oracle can be held back."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = 200
        self.oracle = HeldOracle(world)
        self.oracle.let.set()
        env = world._env
        held: Any = self.oracle
        self.rounds = Rounds(world.catalog, held, env.storage, env.compute)
        object.__setattr__(env, "lookups", self.rounds)

    async def write(self, *changes: tuple[Row, int]) -> None:
        """Acknowledged when this returns."""
        self.now += 10
        item = self.world.item("k")
        assert item.shard_id is not None
        written = {item.shard_id: TableWrite(item.desc, list(changes))}
        outcome = await self.world.txns.commit(written, at=Timestamp(self.now))
        assert isinstance(outcome, Committed)
        await self.world.oracle.apply_write(Timeline.EPOCH_MS, Timestamp(self.now))

    def ask(
        self, connection: Connection, prepared: Prepared, *parameters: Datum
    ) -> "asyncio.Future[Sequence[Row] | None]":
        """The rows; None where the ordinary way is to be taken."""
        told: asyncio.Future[Sequence[Row] | None] = asyncio.get_running_loop().create_future()
        recipe = connection.lookups.recognise(prepared)
        if recipe is None:
            told.set_result(None)
        else:
            connection.lookups.ask(recipe, parameters, lambda rows, _: told.set_result(rows))
        return told

    async def warm(self, connection: Connection, prepared: Prepared) -> None:
        """Until there is a copy."""
        while await self.ask(connection, prepared, 1) is None:
            await asyncio.gather(*self.rounds.copies.under_way())


@pytest.fixture
async def site() -> Site:
    world = await new_world(Environment())
    await world.run("CREATE TABLE k (id int, v text); CREATE INDEX k_id ON k (id)")
    made = Site(world)
    await made.write(((1, "old"), 1), ((2, "two"), 1))
    return made


async def test_a_reading_that_had_begun_is_not_shared(site: Site) -> None:
    one, other = await site.world.connect(), await site.world.connect()
    prepared, again = await one.prepare(TEXT, ()), await other.prepare(TEXT, ())
    await site.warm(one, prepared)
    site.oracle.asked.clear()
    site.oracle.let.clear()
    first = site.ask(one, prepared, 1)
    await site.oracle.asked.wait()
    await site.write(((1, "old"), -1), ((1, "new"), 1))
    second = site.ask(other, again, 1)
    site.oracle.let.set()
    assert await first in ([("old",)], [("new",)])
    assert await second == [("new",)]


async def test_all_that_wait_share_one_reading(site: Site) -> None:
    sessions = [await site.world.connect() for _ in range(5)]
    statements = [await session.prepare(TEXT, ()) for session in sessions]
    await site.warm(sessions[0], statements[0])
    read_ts, reads = site.world.oracle.read_ts, []

    async def counted(timeline: Timeline) -> Timestamp:
        reads.append(timeline)
        return await read_ts(timeline)

    site.world.oracle.read_ts = counted  # type: ignore[method-assign]
    asked = [
        site.ask(session, statement, number % 3)
        for number, (session, statement) in enumerate(zip(sessions, statements, strict=True))
    ]
    found = await asyncio.gather(*asked)
    assert [list(rows or ()) for rows in found] == [[], [("old",)], [("two",)], [], [("old",)]]
    assert reads.count(Timeline.EPOCH_MS) == 1


async def test_every_write_is_seen_by_who_asks_after_it(site: Site) -> None:
    connection = await site.world.connect()
    prepared = await connection.prepare(TEXT, ())
    await site.warm(connection, prepared)
    last = "old"
    for number in range(30):
        await site.write(((1, last), -1), ((1, f"v{number}"), 1))
        last = f"v{number}"
        assert await site.ask(connection, prepared, 1) == [(last,)], "few changes keep the copy"


async def test_who_waits_too_long_goes_the_ordinary_way(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = await site.world.connect()
    prepared = await connection.prepare(TEXT, ())
    await site.warm(connection, prepared)
    monkeypatch.setattr(rounds_module, "PATIENCE_S", 0.0)
    site.oracle.asked.clear()
    site.oracle.let.clear()
    first = site.ask(connection, prepared, 1)
    await site.oracle.asked.wait()
    assert await first is None
    # Who comes while the oracle still does not answer does not wait for it either.
    assert await site.ask(connection, prepared, 1) is None
    monkeypatch.undo()
    site.oracle.let.set()
    while await site.ask(connection, prepared, 1) is None:
        await asyncio.sleep(0)


async def test_a_failing_store_leaves_it_to_the_ordinary_way(site: Site) -> None:
    connection = await site.world.connect()
    prepared = await connection.prepare(TEXT, ())
    await site.warm(connection, prepared)
    site.oracle.failure = StoreFailing("for a test")
    assert await site.ask(connection, prepared, 1) is None
    site.oracle.failure = None
    assert await site.ask(connection, prepared, 1) == [("old",)]


async def test_nobody_is_told_twice(site: Site) -> None:
    told: list[object] = []
    recipe: Any = None
    asked = Asked(recipe, (), lambda rows, _: told.append(rows))
    asked.answer([], Timestamp(1))
    asked.answer(None, Timestamp(1))
    forgotten = Asked(recipe, (), lambda rows, _: told.append(rows))
    forgotten.forget()
    forgotten.answer([], Timestamp(1))
    assert told == [[]]


@pytest.mark.parametrize(
    "change",
    [
        "DROP INDEX k_id",
        "ALTER TABLE k RENAME TO l",
        "DROP TABLE k CASCADE",
        "CREATE TABLE unrelated (a int)",
    ],
)
async def test_another_catalog_is_looked_at_anew(site: Site, change: str) -> None:
    connection = await site.world.connect()
    prepared = await connection.prepare(TEXT, ())
    await site.warm(connection, prepared)
    recipe = connection.lookups.recognise(prepared)
    assert recipe is not None
    # What was recognised before the change comes to nothing if it is asked for after it.
    await site.world.run(change)
    told: asyncio.Future[Sequence[Row] | None] = asyncio.get_running_loop().create_future()
    connection.lookups.ask(recipe, (1,), lambda rows, _: told.set_result(rows))
    assert await told is None
    again = connection.lookups.recognise(prepared)
    assert (again is not None) == (change == "CREATE TABLE unrelated (a int)")


@pytest.mark.parametrize(
    ("setting", "stays"),
    [
        ("SET search_path = elsewhere", False),
        ("SET cluster = nowhere", False),
        ("SET transaction_isolation = 'serializable'", False),
        ("SET statement_timeout = '500 ms'", False),
        ("SET max_query_result_size = '1kB'", False),
        ("SET application_name = 'x'", True),
        ("SET statement_timeout = '5 s'", True),
    ],
)
async def test_other_settings_are_looked_at_anew(site: Site, setting: str, stays: bool) -> None:
    connection = await site.world.connect()
    prepared = await connection.prepare(TEXT, ())
    assert connection.lookups.recognise(prepared) is not None
    await _run(connection, setting)
    connection.take_events()
    assert (connection.lookups.recognise(prepared) is not None) is stays
    await _run(connection, "RESET ALL")
    connection.take_events()
    assert connection.lookups.recognise(prepared) is not None


async def test_blocks_and_temporary_tables_go_the_ordinary_way(site: Site) -> None:
    connection = await site.world.connect()
    prepared = await connection.prepare(TEXT, ())
    assert connection.lookups.recognise(prepared) is not None
    await _run(connection, "BEGIN")
    assert connection.lookups.recognise(prepared) is None
    await _run(connection, "ROLLBACK")
    assert connection.lookups.recognise(prepared) is not None
    await _run(connection, "CREATE TEMPORARY TABLE k (id int, v text)")
    connection.take_events()
    assert connection.lookups.recognise(prepared) is None


async def test_a_right_that_was_taken_away_is_gone(site: Site) -> None:
    await site.world.run("CREATE ROLE joe; GRANT SELECT ON k TO joe")
    env = site.world._env
    sessions = Connections(env, lambda _: None)
    from_joe = await sessions.open_session({"user": "joe"}, internal=False)
    prepared = await from_joe.prepare(TEXT, ())
    recipe = from_joe.lookups.recognise(prepared)
    assert recipe is not None
    await site.world.run("REVOKE SELECT ON k FROM joe")
    assert from_joe.lookups.recognise(prepared) is None


async def _run(connection: Connection, text: str) -> None:
    for prepared in connection.split(text):
        await connection.execute(prepared, ())
        await connection.end_implicit(failed=False)
