"""Goal: what was asked of a replacement happens though nobody waits for it, once, and not too soon.

Method: the rules on reports made by hand; then the keeper over a catalog and shards in memory.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from evertide.catalog.objects import MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.controller.orchestrator import process_name
from evertide.controller.readiness import (
    NOWHERE,
    Progress,
    Uppers,
    hindrance,
    progress_of,
    waits_for,
)
from evertide.controller.reconfiguration import Told
from evertide.controller.statuses import Facts
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.adapter.staged import PATIENCE_S, World, new_world
from tests.catalog.environment import Environment

STAGE = "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a + 1 AS a FROM t"
AUTOMATIC = STAGE.replace(" AS SELECT", " WITH (APPLY WHEN HYDRATED) AS SELECT")


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    environment = Environment()
    yield await new_world(environment)
    await environment.close()


def definition(world: World, name: str = "mv") -> MaterializedView:
    found = world.item(name).definition
    assert isinstance(found, MaterializedView)
    return found


async def events(world: World) -> list[tuple[str, object]]:
    """What became of views since r was staged, and why."""
    found = [e for e in await world.audited() if e.object_type == "materialized-view"]
    told = [(e.event_type, msgspec.to_builtins(e.details).get("reason")) for e in found]
    return told[1:]


@pytest.mark.parametrize(
    ("progress", "stored", "known", "as_of", "forward_time", "waits"),
    [
        (Progress(True, 100), 100, 100, 100, False, False),
        (Progress(True, float("inf")), 100, 100, 100, False, False),
        (NOWHERE, 100, 100, 0, False, True),
        (Progress(True, 100), 10, 100, 50, True, True),  # the target has no contents
        (Progress(True, 100), 11, 100, 50, True, False),
        (Progress(False, 100), 100, 100, 50, False, True),
        (Progress(True, 99), 100, 100, 50, False, True),
        (Progress(True, 200), 100, 140, 150, False, True),
        (Progress(True, 200), 100, 150, 150, False, False),
        (Progress(True, 200), 100, 140, 150, True, False),
        (Progress(False, 200), 100, 140, 150, True, True),
    ],
)
async def test_ready_is_what_has_caught_up_and_leaves_no_gap(
    world: World,
    progress: Progress,
    stored: int,
    known: int,
    as_of: int,
    forward_time: bool,
    waits: bool,
) -> None:
    await world.run(STAGE)
    found = definition(world, "r")
    changed = msgspec.structs.replace(found, as_of=Timestamp(as_of))
    item = msgspec.structs.replace(world.item("r"), definition=changed)
    target = Uppers(Timestamp(10), Timestamp(stored), Timestamp(known), Timestamp(0))
    assert (waits_for(item, progress, target, forward_time=forward_time) is not None) == waits


@pytest.mark.parametrize(
    ("asked", "forward_time", "waits"),
    [(99, False, False), (100, False, True), (100, True, False)],
)
async def test_a_target_that_stands_still_is_waited_for(
    world: World, asked: int, forward_time: bool, waits: bool
) -> None:
    await world.run(STAGE)
    target = Uppers(Timestamp(10), Timestamp(100), Timestamp(100), Timestamp(asked))
    found = waits_for(world.item("r"), Progress(True, 200), target, forward_time=forward_time)
    assert (found == "the target makes no progress") == waits


async def test_nothing_is_changed_while_the_old_definition_stands_still(world: World) -> None:
    """Its input has moved on, and it has not followed."""
    await world.run(AUTOMATIC)
    world.replicas.told["r"] = (True, 1_000)
    await world.change("t", 300)
    await world.keeper.look()
    await world.keeper.look()
    assert "r" in world.names()
    await world.change("t", 400)
    await world.write("mv", 300)
    await world.keeper.look()
    assert "r" not in world.names(), "it came to where reads were when it was asked for"


async def test_what_is_hydrated_between_two_looks_is_told_to_have_been(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas say so only when they are asked whether it may be applied."""
    await world.run(AUTOMATIC)
    introspect = world.replicas.introspect

    async def ready_later(snapshot: Snapshot, relation: str, /) -> Told:
        told = await introspect(snapshot, relation)
        if world.replicas.asked == 2:
            world.replicas.told["r"] = (True, 1_000)
        return told

    monkeypatch.setattr(world.replicas, "introspect", ready_later)
    await world.change("t", 300)
    await world.write("mv", 400)
    await world.keeper.look()
    assert "r" not in world.names()
    assert [kind for kind, _ in await events(world)] == ["create", "hydrated", "drop", "alter"]


async def test_a_target_that_became_sealed_is_given_up(world: World) -> None:
    """It reads a view that has become a constant."""
    await world.run("CREATE MATERIALIZED VIEW below AS SELECT a FROM t")
    await world.run("CREATE MATERIALIZED VIEW top AS SELECT a FROM below")
    for name in ("below", "top"):
        await world.write(name, 100)
    await world.run(AUTOMATIC.replace("REPLACING mv", "REPLACING top"))
    await world.run("CREATE MATERIALIZED VIEW q REPLACING below AS SELECT NULL::int AS a")
    world.replicas.told["q"] = (True, None)
    task = world.start("ALTER MATERIALIZED VIEW below APPLY REPLACEMENT q")
    while "q" in world.names():
        await asyncio.sleep(0)
    await world.take("below")
    await asyncio.wait_for(task, PATIENCE_S)
    world.replicas.told["r"] = (True, 1_000)
    await world.keeper.look()
    assert not definition(world, "top").handing_over
    replacement = world.item("r").replacement
    assert replacement is not None
    assert not replacement.apply_when_ready
    failed = [reason for kind, reason in await events(world) if kind == "failed"]
    assert failed == ["materialized view top is sealed and thus cannot be replaced"]


async def test_it_is_given_up_where_its_owner_does_not_own_the_view(world: World) -> None:
    await world.run("CREATE ROLE joe; CREATE ROLE ann")
    await world.run(STAGE)
    await world.run("ALTER MATERIALIZED VIEW mv OWNER TO joe")
    await world.run("ALTER MATERIALIZED VIEW r OWNER TO ann")
    await world.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WHEN READY")
    world.replicas.told["r"] = (True, 100)
    await world.keeper.look()
    replacement = world.item("r").replacement
    assert replacement is not None
    assert not replacement.apply_when_ready
    failed = [reason for kind, reason in await events(world) if kind == "failed"]
    assert failed == ["the owner of replacement r does not own materialized view mv"]


async def test_a_change_of_owner_ends_an_automatic_apply(world: World) -> None:
    await world.run("CREATE ROLE joe")
    await world.run(AUTOMATIC)
    await world.run("ALTER MATERIALIZED VIEW mv OWNER TO joe")
    world.replicas.told["r"] = (True, 100)
    await world.keeper.look()
    assert "r" in world.names()
    assert world.item("r").owner == world.item("mv").owner


async def test_reads_have_the_change_when_the_catalog_says_it_is_over(world: World) -> None:
    await world.run(AUTOMATIC)
    world.replicas.told["r"] = (True, 100)
    await world.keeper.look()
    await world.write("mv", 250)
    await world.take("mv")
    assert await world.oracle.read_ts(Timeline.EPOCH_MS) < 249
    await world.keeper.look()
    assert not definition(world).handing_over
    assert await world.oracle.read_ts(Timeline.EPOCH_MS) >= 249


async def test_the_replica_that_is_furthest_counts(world: World) -> None:
    await world.run("CREATE CLUSTER c REPLICAS (x (SIZE '1'), y (SIZE '1'))")
    await world.run(STAGE.replace(" AS SELECT", " IN CLUSTER c AS SELECT"))
    item, snapshot = world.item("r"), world.catalog.newest
    assert item.cluster_id is not None
    x, y = (process_name(replica) for replica in snapshot.replicas_of(item.cluster_id))
    own = (item.global_id, item.cluster_id)
    hydration: dict[str, list[Facts]] = {x: [(*own, True)], y: [(*own, False)]}
    frontiers: dict[str, list[Facts]] = {x: [(*own, 7, 0)], y: [(*own, 9, 0)]}
    assert progress_of(item, snapshot, hydration, frontiers) == Progress(True, 7)
    hydration[y] = [(*own, True)]
    assert progress_of(item, snapshot, hydration, frontiers) == Progress(True, 9)
    frontiers[x] = [(*own, None, 0)]
    assert progress_of(item, snapshot, hydration, frontiers) == Progress(True, float("inf"))
    other: dict[str, list[Facts]] = {
        x: [("u99", item.cluster_id, True), (item.global_id, "u99", True)]
    }
    assert progress_of(item, snapshot, other, {}) == NOWHERE


async def test_that_it_is_hydrated_is_noted_once(world: World) -> None:
    await world.run(STAGE)
    await world.keeper.look()
    assert await events(world) == [("create", None)]
    world.replicas.told["r"] = (True, 50)
    await world.keeper.look()
    await world.keeper.look()
    assert await events(world) == [("create", None), ("hydrated", None)]
    asked = world.replicas.asked
    await world.keeper.look()
    assert world.replicas.asked == asked, "there is nothing left to be found out"


async def test_what_is_to_apply_itself_is_applied_when_it_can_be(world: World) -> None:
    await world.run(AUTOMATIC)
    staged = world.item("r")
    world.replicas.told["r"] = (True, 99)
    await world.keeper.look()
    assert "r" in world.names(), "it has not caught up"
    world.replicas.told["r"] = (True, 100)
    await world.keeper.look()
    assert "r" not in world.names()
    assert definition(world).handing_over
    await world.keeper.look()
    assert definition(world).handing_over, "the old version has the shard"
    await world.take("mv")
    await world.keeper.look()
    assert not definition(world).handing_over
    assert world.item("mv").global_id == staged.global_id
    assert await events(world) == [
        ("create", None),
        ("hydrated", None),
        ("drop", "applied"),
        ("alter", None),
    ]


async def test_it_may_be_said_later(world: World) -> None:
    await world.run(STAGE)
    world.replicas.told["r"] = (True, 100)
    await world.keeper.look()
    assert "r" in world.names()
    await world.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (FORWARD TIME) WHEN READY")
    await world.keeper.look()
    assert "r" not in world.names()
    assert definition(world).forward_time


async def test_what_cannot_go_on_is_not_begun(world: World) -> None:
    """The old definition must be able to reach the time of the change."""
    await world.run("CREATE CLUSTER idle REPLICAS ()")
    await world.run(AUTOMATIC)
    await world.run("ALTER MATERIALIZED VIEW mv SET CLUSTER idle")
    world.replicas.told["r"] = (True, 100)
    await world.keeper.look()
    assert "r" in world.names()
    snapshot = world.catalog.newest
    assert hindrance(world.item("r"), snapshot, forward_time=False) is not None
    assert hindrance(world.item("r"), snapshot, forward_time=True) is None
    await world.run("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (FORWARD TIME) WHEN READY")
    await world.keeper.look()
    assert "r" not in world.names()


async def test_what_is_refused_is_given_up_and_stays_staged(world: World) -> None:
    """What r reads is made to depend on mv, which r is to replace."""
    await world.run("CREATE MATERIALIZED VIEW other AS SELECT a FROM t")
    await world.write("other", 100)
    await world.run(AUTOMATIC.replace("FROM t", "FROM other"))
    await world.run("CREATE MATERIALIZED VIEW q REPLACING other AS SELECT a FROM mv")
    world.replicas.told["q"] = (True, 100)
    task = world.start("ALTER MATERIALIZED VIEW other APPLY REPLACEMENT q")
    while "q" in world.names():
        await asyncio.sleep(0)
    await world.take("other")
    await asyncio.wait_for(task, PATIENCE_S)
    world.replicas.told["r"] = (True, 1_000)
    await world.keeper.look()
    replacement = world.item("r").replacement
    assert replacement is not None
    assert not replacement.apply_when_ready
    assert not definition(world).handing_over
    failed = [reason for kind, reason in await events(world) if kind == "failed"]
    assert failed == ["replacement would cause mv to depend on itself"]
    await world.keeper.look()
    assert len([kind for kind, _ in await events(world) if kind == "failed"]) == 1


async def test_what_was_dropped_is_nobodys_trouble(world: World) -> None:
    await world.run(AUTOMATIC)
    world.replicas.told["r"] = (True, 100)
    await world.run("DROP MATERIALIZED VIEW mv CASCADE")
    await world.keeper.look()
    assert world.names() == {"t"}
