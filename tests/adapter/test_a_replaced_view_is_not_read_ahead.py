"""Goal: a replica is believed ahead of the shard only while its definition of the view holds.

Method: one view, one replica that answers at once, an oracle and a catalog that the test speaks
for. The catalog switches at every moment of a read.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from evertide.adapter.reading.ahead import changes, look_ahead, look_early
from evertide.catalog.objects import Item, ItemVersion, MaterializedView
from evertide.controller.stillness import Look
from evertide.dataflow.description import Import
from evertide.dataflow.protocol import RowsResponse
from evertide.persist.coding.inline import encode_inline
from evertide.persist.state import ShardState
from evertide.vocab.ids import ClusterId, GlobalId, ItemId, RoleId, SchemaId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4
from evertide.vocab.timestamp import Timeline, Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", INT4))
VIEW = Import(GlobalId("u1"), ShardId("v"), DESC, is_table=False)
ITEM = Item(
    item_id=ItemId("u1"),
    oid=20_000,
    schema_id=SchemaId("u3"),
    name="mv",
    owner=RoleId("u1"),
    create_sql="",
    versions=(ItemVersion(global_id=GlobalId("u1"), columns=()),),
    definition=MaterializedView(
        shard_id=ShardId("v"), cluster_id=ClusterId("c"), as_of=Timestamp(1)
    ),
)
HANDING_OVER = msgspec.structs.replace(
    ITEM, definition=msgspec.structs.replace(ITEM.definition, handing_over=True)
)
REPLACED = msgspec.structs.replace(
    ITEM, versions=(*ITEM.versions, ItemVersion(global_id=GlobalId("u2"), columns=()))
)


@dataclass
class Catalog:
    """What it says of the view, now."""

    item: Item | None = ITEM

    @property
    def items(self) -> dict[ItemId, Item]:
        return {} if self.item is None else {self.item.item_id: self.item}

    def item_of(self, _: GlobalId) -> Item | None:
        return self.item

    async def current(self) -> "Catalog":
        return Catalog(self.item)


@dataclass
class World:
    """An environment: the shard is complete below 10, and the replica has computed more."""

    catalog: Catalog = field(default_factory=Catalog)
    read_ts: int = 15
    since: int = 1
    asked: list[GlobalId] = field(default_factory=list)
    # What the catalog says from when the oracle has been asked on.
    then: Item | None = ITEM

    def __post_init__(self) -> None:
        self.oracle = self.storage = self.following = self.compute = self

    async def read_ts_of(self) -> int:
        self.catalog.item = self.then
        return self.read_ts

    async def noted_upper(self, _: Import) -> int:
        return 10

    async def look(self, _: object) -> Look:
        state = ShardState(since=Timestamp(self.since), upper=Timestamp(10), since_lag=0)
        return Look({VIEW.shard_id: state}, Timestamp(20))

    async def wait_for_upper(self, *_: object) -> int:
        raise AssertionError("the replica answers at once")

    def ask_changes(self, *asked: Any) -> "list[asyncio.Future[RowsResponse]]":
        self.asked.append(asked[2])
        told: asyncio.Future[RowsResponse] = asyncio.get_running_loop().create_future()
        told.set_result(RowsResponse(1, encode_inline([Update((7,), Timestamp(12), 1)])))
        return [told]


class Oracle:
    """Tells the world's read timestamp."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def read_ts(self, timeline: Timeline) -> int:
        assert timeline is Timeline.EPOCH_MS
        return await self._world.read_ts_of()


async def told(world: World, as_of: int, *, early: bool = False) -> object:
    """What a read at as_of believes of what the shard lacks; None: it waits for the shard.

    `early`: it was asked before the read was worked out.
    """
    world.oracle = Oracle(world)  # type: ignore[assignment]
    env: Any = world
    snapshot: Any = await world.catalog.current()
    at = Timestamp(as_of)
    if early:
        looked = await look_early(VIEW, snapshot, env, at)
        ahead = None if looked is None else looked.ahead
    else:
        ahead = await look_ahead(VIEW, snapshot, env, at)
    if ahead is None:
        return None
    with ahead:
        return await changes(ahead, env, at)


@pytest.mark.parametrize("early", [False, True])
async def test_a_replica_is_believed_while_nothing_is_replaced(early: bool) -> None:
    world = World()
    assert await told(world, 15, early=early) == [((7,), 1)]
    assert world.asked == ["u1"]


async def test_nobody_is_asked_about_a_time_that_was_forgotten() -> None:
    world = World(since=16)
    assert await told(world, 15, early=True) is None
    assert world.asked == []


async def test_what_was_asked_early_is_let_go_with_the_read() -> None:
    """A replica that does not answer must not go on for a read that has ended."""
    world = World()
    unanswered: asyncio.Future[RowsResponse] = asyncio.get_running_loop().create_future()
    world.ask_changes = lambda *_: [unanswered]  # type: ignore[method-assign]
    env: Any = world
    snapshot: Any = await world.catalog.current()
    early = await look_early(VIEW, snapshot, env, Timestamp(15))
    assert early is not None
    assert early.ahead is not None
    with early.ahead:
        assert not unanswered.done()
    assert unanswered.cancelled()


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("item", [HANDING_OVER, REPLACED, None])
async def test_not_if_the_catalog_switched_after_the_timestamp_was_chosen(
    item: Item | None, early: bool
) -> None:
    world = World(then=item)
    assert await told(world, 15, early=early) is None
    assert world.asked == ["u1"], "it was asked, and computed meanwhile"


async def test_nobody_is_asked_about_a_view_that_changes_hands() -> None:
    world = World(catalog=Catalog(HANDING_OVER))
    assert await told(world, 15) is None
    assert world.asked == []


async def test_after_that_the_new_version_is_asked() -> None:
    """Also by who was planned with the columns of the older one."""
    world = World(catalog=Catalog(REPLACED), then=REPLACED)
    assert await told(world, 15) == [((7,), 1)]
    assert world.asked == ["u2"]


async def test_not_for_a_timestamp_that_is_yet_to_come() -> None:
    """By then the catalog may have switched, and nobody would have been asked to wait for it."""
    world = World(read_ts=14)
    assert await told(world, 15) is None
