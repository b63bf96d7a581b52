"""Goal: a prepared lookup in a materialized view gives what the view holds at a timestamp at which
everything acknowledged before can be seen, whether its shard has it or a replica tells it.

Method: an adapter over a store in memory, replicas that the test speaks for. A view changes at
random; its shard lags behind as far as chance will have it. Then each way in which a replica must
not be believed, or does not answer.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from evertide.adapter.client import Prepared
from evertide.adapter.connection import Connection
from evertide.adapter.short_way import rounds as rounds_module
from evertide.adapter.short_way import views as views_module
from evertide.controller import near
from evertide.controller.compute import Unanswered
from evertide.dataflow.protocol import RefusedResponse, Response, RowsResponse
from evertide.persist.coding.inline import encode_inline
from evertide.persist.handle import Appended
from evertide.persist.txn import Committed, TableWrite
from evertide.vocab.datum import Datum, Row
from evertide.vocab.timestamp import Timeline, Timestamp
from evertide.vocab.update import Update
from tests.adapter.staged import World, new_world
from tests.catalog.environment import Environment

BY_A = "SELECT * FROM v WHERE a = $1"
BY_AB = "SELECT c, a FROM v WHERE b = $2 AND a = $1"
BY_B = "SELECT a FROM v WHERE b = $1"
ERROR = '["22012","division by zero"]'


class Site:
    """A view v over a table s, what it is computed to hold, and a session that asks."""

    def __init__(self, world: World, connection: Connection) -> None:
        self.world = world
        self.connection = connection
        self.now = 200
        self.held: Counter[Row] = Counter()
        # Computed, and not in the shard yet.
        self.unstored: list[Update] = []
        self.asked = 0
        self.prepared: dict[str, Prepared] = {}
        replicas: Any = world.replicas
        replicas.ask_changes = self.ask_changes

    def ask_changes(self, *asked: Any) -> "list[asyncio.Future[Response]]":
        """One replica that answers a little later."""
        _, _, _, beyond, as_of = asked
        self.asked += 1
        told = [update for update in self.unstored if beyond < update.ts <= as_of]
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(self.answer, future, told)
        return [future]

    def answer(self, future: "asyncio.Future[Response]", told: Sequence[Update]) -> None:
        if not future.done():
            future.set_result(RowsResponse(1, encode_inline(told) if told else b""))

    async def change(self, *changes: tuple[Row, int]) -> None:
        """What the view holds from now on; the table below it has changed as well."""
        self.now += 10
        at, item = Timestamp(self.now), self.world.item("s")
        assert item.shard_id is not None
        written = {item.shard_id: TableWrite(item.desc, [((1, "x", 1), 1)])}
        assert isinstance(await self.world.txns.commit(written, at=at), Committed)
        await self.world.oracle.apply_write(Timeline.EPOCH_MS, at)
        for row, diff in changes:
            self.unstored.append(Update(row, at, diff))
            self.held[row] += diff

    async def store(self) -> None:
        """The shard gets all that was computed."""
        item = self.world.item("v")
        assert item.shard_id is not None
        state = await self.world.persist.state(item.shard_id)
        outcome = await self.world.persist.compare_and_append(
            item.shard_id, item.desc, self.unstored, state.upper, Timestamp(self.now + 1),
            item.global_id,
        )  # fmt: skip
        assert isinstance(outcome, Appended), outcome
        self.unstored = []

    async def ask(self, text: str, *parameters: Datum) -> Sequence[Row] | None:
        """The rows; None where the ordinary way is to be taken."""
        if text not in self.prepared:
            self.prepared[text] = await self.connection.prepare(text, ())
        recipe = self.connection.lookups.recognise(self.prepared[text])
        assert recipe is not None
        return await self.ask_by(recipe, *parameters)

    async def ask_by(self, recipe: object, *parameters: Datum) -> Sequence[Row] | None:
        told: asyncio.Future[Sequence[Row] | None] = asyncio.get_running_loop().create_future()
        self.connection.lookups.ask(recipe, parameters, lambda rows, _: told.set_result(rows))
        return await told


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes nobody go another way."""
    monkeypatch.setattr(rounds_module, "PATIENCE_S", 60.0)
    monkeypatch.setattr(views_module, "PATIENCE_S", 60.0)
    monkeypatch.setattr(views_module, "_REPLICA_PATIENCE_S", 60.0)


@pytest.fixture
async def site() -> Site:
    world = await new_world(Environment())
    await world.run("CREATE TABLE s (a int, b text, c int)")
    await world.run("CREATE MATERIALIZED VIEW v AS SELECT a, b, c FROM s")
    made = Site(world, await world.connect())
    await made.change(((1, "one", 10), 1), ((2, "two", 20), 1))
    await made.store()
    return made


@pytest.mark.parametrize("seed", range(20))
async def test_rows_are_those_that_the_view_holds(
    site: Site, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Random(seed)
    if seed % 2:
        monkeypatch.setattr(near, "_FEW_ROWS", 0)  # rows are searched for in columns
    monkeypatch.setattr(near, "MOST_CHANGES", draw.choice([3, 20, 5_000]))
    for _ in range(40):
        there = list(site.held.elements())
        gone = Counter(draw.sample(there, min(len(there), draw.randrange(3))))
        come = Counter(
            (draw.randrange(4), draw.choice("xyz"), draw.randrange(2))
            for _ in range(draw.randrange(4))
        )
        changes = [*gone.items()], [*come.items()]
        await site.change(*[(r, -n) for r, n in changes[0]], *[(r, n) for r, n in changes[1]])
        if draw.random() < 0.4:
            await site.store()
        a, b = draw.randrange(4), draw.choice("xyz")
        expected = [row for row in site.held.elements() if row[0] == a]
        found = await site.ask(BY_A, a)
        assert found is not None
        assert Counter(found) == Counter(expected)
        found = await site.ask(BY_AB, a, b)
        assert found is not None
        assert Counter(found) == Counter((c, a) for _, other, c in expected if other == b)
    assert site.asked > 20, "the shard lagged behind"


async def test_a_view_that_stands_still_is_not_asked_about(site: Site) -> None:
    await site.world.time_is(1_000)  # and no input of the view changed
    assert await site.ask(BY_A, 1) == [(1, "one", 10)]
    assert await site.ask(BY_A, None) == ()
    assert site.asked == 0


async def test_large_ones_are_only_searched_by_numbers(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await site.ask(BY_B, "one") == [(1,)]
    monkeypatch.setattr(near, "_FEW_ROWS", 0)
    assert await site.ask(BY_B, "one") is None
    assert await site.ask(BY_A, 1) == [(1, "one", 10)]


async def test_rows_that_were_not_there_are_for_others_to_tell(site: Site) -> None:
    await site.change(((1, "other", 1), -1))
    assert await site.ask(BY_A, 1) is None
    assert await site.ask(BY_A, 2) == [(2, "two", 20)]


async def test_errors_are_for_others_to_tell(site: Site) -> None:
    await site.change(((1, "more", 1), 1))
    site.unstored.append(Update((), Timestamp(site.now), 1, ERROR))
    assert await site.ask(BY_A, 1) is None
    await site.store()
    assert await site.ask(BY_A, 1) is None


@pytest.mark.parametrize("how", ["silent", "refuses", "goes", "is not there"])
async def test_without_an_answer_the_shard_is_waited_for(
    site: Site, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the ordinary way."""
    monkeypatch.setattr(views_module, "_REPLICA_PATIENCE_S", 0.01)
    waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    if how == "refuses":
        waiting.set_result(RefusedResponse(1, "not here"))
    if how == "goes":
        waiting.set_exception(Unanswered("it went away"))
    replicas: Any = site.world.replicas
    replicas.ask_changes = lambda *_: [] if how == "is not there" else [waiting]
    await site.change(((1, "more", 1), 1))
    assert await site.ask(BY_A, 1) is None
    if how == "silent":
        assert waiting.cancelled(), "nobody waits for it any more"


async def test_the_first_replica_that_tells_counts(site: Site) -> None:
    replicas: Any = site.world.replicas
    loop = asyncio.get_running_loop()

    def two(*asked: Any) -> "list[asyncio.Future[Response]]":
        lost: asyncio.Future[Response] = loop.create_future()
        loop.call_soon(lost.set_result, RefusedResponse(1, "not here"))
        return [lost, *site.ask_changes(*asked), loop.create_future()]

    replicas.ask_changes = two
    await site.change(((1, "more", 1), 1))
    assert sorted(await site.ask(BY_A, 1) or ()) == [(1, "more", 1), (1, "one", 10)]


async def test_who_waits_too_long_goes_the_ordinary_way(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "PATIENCE_S", 0.0)
    monkeypatch.setattr(views_module, "_REPLICA_PATIENCE_S", 30.0)
    replicas: Any = site.world.replicas
    silent: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    replicas.ask_changes = lambda *_: [silent]
    await site.change(((1, "more", 1), 1))
    assert await site.ask(BY_A, 1) is None
    silent.set_result(RowsResponse(1, b""))  # too late to be told to anybody


async def test_a_definition_is_looked_at_after_its_timestamp(site: Site) -> None:
    """A new definition begins beyond what could be read when the catalog switched to it. So one
    that was looked at earlier than the timestamp may not be the one that holds there."""
    assert await site.ask(BY_A, 1) == [(1, "one", 10)]
    recipe = site.connection.lookups.recognise(site.prepared[BY_A])
    read_ts = site.world.oracle.read_ts

    async def switching(timeline: Timeline) -> Timestamp:
        if timeline is Timeline.EPOCH_MS:
            site.world.oracle.read_ts = read_ts  # type: ignore[method-assign]
            await site.world.run("CREATE TABLE meanwhile (a int)")
            await site.change(((1, "new", 1), 1))
        return await read_ts(timeline)

    site.world.oracle.read_ts = switching  # type: ignore[method-assign]
    assert await site.ask_by(recipe, 1) is None
    assert site.asked == 0


async def test_sessions_of_several_clusters_are_all_answered(site: Site) -> None:
    """What is a lookup by an index to one of them is one in a view to another."""
    await site.world.run("CREATE CLUSTER other SIZE '1'")
    await site.world.run("CREATE INDEX v_a ON v (a)")
    elsewhere = await site.world.connect()
    for prepared in elsewhere.split("SET cluster = other"):
        await elsewhere.execute(prepared, ())
        await elsewhere.end_implicit(failed=False)
    elsewhere.take_events()
    await site.change(((1, "more", 1), 1))
    told: list[Sequence[Row] | None] = []
    for connection in (site.connection, elsewhere, site.connection):
        recipe = connection.lookups.recognise(await connection.prepare(BY_A, ()))
        assert recipe is not None
        assert recipe.is_view is (connection is elsewhere)
        connection.lookups.ask(recipe, (1,), lambda rows, _: told.append(rows))
    async with asyncio.timeout(30):
        while len(told) < 3:
            await asyncio.sleep(0.001)
    assert sorted(next(rows for rows in told if rows is not None)) == [
        (1, "more", 1),
        (1, "one", 10),
    ]


async def test_rows_that_are_there_very_often_are_for_others(site: Site) -> None:
    await site.change(((3, "three", 1), 1_000), ((4, "four", 1), 1_001))
    assert await site.ask(BY_A, 3) == [(3, "three", 1)] * 1_000
    assert await site.ask(BY_A, 4) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM v WHERE a = $1 LIMIT 1",
        "SELECT a FROM v WHERE a > $1",
        "SELECT a FROM v WHERE a = $1 ORDER BY b",
        "SELECT count(*) FROM v WHERE a = $1",
        "SELECT a FROM refreshed WHERE a = $1",
        "SELECT a FROM s WHERE a = $1",
    ],
)
async def test_other_statements_are_not_for_here(site: Site, text: str) -> None:
    await site.world.run(
        "CREATE MATERIALIZED VIEW refreshed WITH (REFRESH EVERY '1 day') AS SELECT a FROM s"
    )
    prepared = await site.connection.prepare(text, ())
    assert site.connection.lookups.recognise(prepared) is None
