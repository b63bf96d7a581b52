"""Goal: APPLY REPLACEMENT answers when every later read sees the new definition, and not before.
Whatever happens meanwhile, it ends with a clear word.

Method: a catalog and shards in memory; what replicas would do is done by the test.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from evertide.adapter.ddl.staging import replacement_as_of
from evertide.catalog.objects import MaterializedView
from evertide.controller.readiness import cannot_change
from evertide.dataflow.description import Derived, Import, hold_owner
from evertide.vocab.errors import QueryCanceled, SqlError
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.adapter.staged import PATIENCE_S, World, new_world, until
from tests.catalog.environment import Environment

STAGE = "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a + 1 AS a FROM t"
APPLY = "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r"


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    environment = Environment()
    yield await new_world(environment)
    await environment.close()


def definition(world: World) -> MaterializedView:
    found = world.item("mv").definition
    assert isinstance(found, MaterializedView)
    return found


async def ended(task: "asyncio.Task[object]") -> None:
    await asyncio.wait_for(task, PATIENCE_S)


async def refused(task: "asyncio.Task[object]") -> SqlError:
    with pytest.raises(SqlError) as raised:
        await ended(task)
    return raised.value


async def test_it_waits_for_the_replacement_and_then_for_the_shard(world: World) -> None:
    await world.run(STAGE)
    staged = world.item("r")
    task = world.start(APPLY)
    await until(world, task)
    world.replicas.told["r"] = (False, 100)
    await until(world, task)
    world.replicas.told["r"] = (True, 99)
    await until(world, task)
    assert world.item("r") == staged, "neither hydrated nor caught up with the target"
    world.replicas.told["r"] = (True, 100)
    while "r" in world.names():
        await asyncio.sleep(0)
    assert definition(world).handing_over
    assert not task.done(), "the old version has the shard"
    await world.take("mv")
    await ended(task)
    assert not definition(world).handing_over
    assert world.item("mv").global_id == staged.global_id


async def test_reads_afterwards_are_at_a_time_that_has_the_change(world: World) -> None:
    await world.run(STAGE)
    world.replicas.told["r"] = (True, 100)
    task = world.start(APPLY)
    while "r" in world.names():
        await asyncio.sleep(0)
    await world.write("mv", 250)
    await world.take("mv")
    assert await world.oracle.read_ts(Timeline.EPOCH_MS) < 249
    await ended(task)
    assert await world.oracle.read_ts(Timeline.EPOCH_MS) >= 249


async def test_the_old_version_holds_nothing_back_afterwards(world: World) -> None:
    table = world.item("t").shard_id
    assert table is not None
    old = world.item("mv").global_id
    await world.run(STAGE)
    new = world.item("r").global_id

    async def holders() -> set[str]:
        return {hold.owner for hold in (await world.persist.state(table)).holds}

    assert await holders() == {hold_owner(old), hold_owner(new)}
    world.replicas.told["r"] = (True, 100)
    task = world.start(APPLY)
    while "r" in world.names():
        await asyncio.sleep(0)
    assert await holders() == {hold_owner(old), hold_owner(new)}
    await world.take("mv")
    await ended(task)
    assert await holders() == {hold_owner(new)}


@pytest.mark.parametrize(
    ("drop", "message"),
    [
        (
            "DROP MATERIALIZED VIEW mv CASCADE",
            'materialized view "mv" was dropped while its replacement waited to be applied',
        ),
        (
            "DROP MATERIALIZED VIEW r",
            'replacement materialized view "r" was dropped while it waited to be applied',
        ),
        (
            f"DROP MATERIALIZED VIEW r; {STAGE}",
            'replacement materialized view "r" was dropped while it waited to be applied',
        ),
    ],
)
async def test_dropping_either_ends_the_wait(world: World, drop: str, message: str) -> None:
    await world.run(STAGE)
    task = world.start(APPLY)
    await until(world, task)
    await world.run(drop)
    error = await refused(task)
    assert (error.code, error.message) == ("55000", message)


async def test_dropping_the_view_while_it_changes_hands_is_told(world: World) -> None:
    await world.run(STAGE)
    world.replicas.told["r"] = (True, 100)
    task = world.start(APPLY)
    while "r" in world.names():
        await asyncio.sleep(0)
    await world.run("DROP MATERIALIZED VIEW mv CASCADE")
    error = await refused(task)
    assert error.message == (
        'materialized view "mv" was dropped while its replacement was being applied'
    )


async def test_renaming_both_meanwhile_is_no_trouble(world: World) -> None:
    """The statement names what is gone by then, so it is told, and nothing is done."""
    await world.run(STAGE)
    task = world.start(APPLY)
    await until(world, task)
    await world.run("ALTER MATERIALIZED VIEW r RENAME TO q")
    world.replicas.told["q"] = (True, 100)
    error = await refused(task)
    assert error.message == "unknown catalog item 'r'"
    assert not definition(world).handing_over


async def test_two_who_apply_the_same_both_hear_of_it(world: World) -> None:
    await world.run(STAGE)
    tasks = [world.start(APPLY), world.start(APPLY)]
    for task in tasks:
        await until(world, task)
    world.replicas.told["r"] = (True, 100)
    while "r" in world.names():
        await asyncio.sleep(0)
    await world.take("mv")
    outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE_S)
    assert any(not isinstance(one, BaseException) for one in outcomes)
    for one in outcomes:
        if isinstance(one, BaseException):
            assert "applied by another statement" in str(one)
    assert len(world.item("mv").versions) == 2


async def test_the_next_one_is_staged_when_the_view_has_changed_hands(world: World) -> None:
    await world.run(STAGE)
    world.replicas.told["r"] = (True, 100)
    applying = world.start(APPLY)
    while "r" in world.names():
        await asyncio.sleep(0)
    staging = world.start(STAGE.replace("VIEW r", "VIEW q"))
    await world.run("CREATE TABLE other (a int)")
    assert not staging.done()
    assert "q" not in world.names()
    await world.take("mv")
    await ended(applying)
    await ended(staging)
    assert "q" in world.names()


async def test_a_view_that_does_not_change_hands_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evertide.adapter.ddl.staging.SETTLE_SECONDS", 0.01)
    await world.run(STAGE)
    world.replicas.told["r"] = (True, 100)
    applying = world.start(APPLY)
    while "r" in world.names():
        await asyncio.sleep(0)
    error = await refused(world.start(STAGE.replace("VIEW r", "VIEW q")))
    assert (error.code, error.message) == (
        "55000",
        'materialized view "mv" is still being handed over to its last replacement',
    )
    assert error.hint is not None
    assert 'cluster "default"' in error.hint
    assert "q" not in world.names()
    await world.take("mv")
    await ended(applying)
    await world.run(STAGE.replace("VIEW r", "VIEW q"))
    assert "q" in world.names()


async def test_a_cancel_before_the_change_leaves_everything(world: World) -> None:
    await world.run(STAGE)
    before = world.item("mv")
    connection = await world.connect()
    (prepared,) = connection.split(APPLY)
    task = asyncio.create_task(connection.execute(prepared, ()))
    asked = world.replicas.asked
    while world.replicas.asked < asked + 2:
        await asyncio.sleep(0)
    connection.cancel()
    with pytest.raises(QueryCanceled):
        await ended(task)
    assert world.item("mv") == before
    assert "r" in world.names()


async def test_a_cancel_after_it_stops_only_the_wait(world: World) -> None:
    await world.run(STAGE)
    world.replicas.told["r"] = (True, 100)
    connection = await world.connect()
    (prepared,) = connection.split(APPLY)
    task = asyncio.create_task(connection.execute(prepared, ()))
    while "r" in world.names():
        await asyncio.sleep(0)
    connection.cancel()
    with pytest.raises(QueryCanceled):
        await ended(task)
    (notice,) = connection.take_events().notices
    assert notice.message.startswith("the replacement has been applied")
    assert definition(world).handing_over
    await world.take("mv")
    await world.keeper.look()
    assert not definition(world).handing_over


async def test_the_timeout_of_statements_ends_the_wait(world: World) -> None:
    await world.run(STAGE)
    task = world.start(f"SET statement_timeout = '20ms'; {APPLY}")
    error = await refused(task)
    assert error.message == "canceling statement due to statement timeout"
    assert "mz_internal.mz_hydration_statuses" in str(error.hint)


@pytest.mark.parametrize("idle", ["mv", "r"])
async def test_clusters_without_replicas_are_told_at_once(world: World, idle: str) -> None:
    await world.run("CREATE CLUSTER idle REPLICAS ()")
    await world.run(STAGE)
    await world.run(f"ALTER MATERIALIZED VIEW {idle} SET CLUSTER idle")
    error = await refused(world.start(APPLY))
    assert (error.code, error.message) == (
        "55000",
        f'cannot apply replacement "r": materialized view "{idle}" makes no progress because'
        ' cluster "idle" has no replicas',
    )
    assert error.hint is not None
    assert ("FORWARD TIME" in error.hint) == (idle == "mv")


async def test_a_gap_is_left_only_if_that_is_said(world: World) -> None:
    """The target stands at 100, and its input's history begins at 200."""
    await world.time_is(300)
    await world.run("CREATE CLUSTER idle REPLICAS ()")
    await world.run(STAGE.replace(" AS SELECT", ' IN CLUSTER "default" AS SELECT'))
    await world.run("ALTER MATERIALIZED VIEW mv SET CLUSTER idle")
    world.replicas.told["r"] = (True, 300)
    with pytest.raises(SqlError, match="makes no progress"):
        await ended(world.start(APPLY))
    task = world.start(f"{APPLY} WITH (FORWARD TIME)")
    while "r" in world.names():
        await asyncio.sleep(0)
    assert definition(world).forward_time
    await world.take("mv")
    await ended(task)


@pytest.mark.parametrize(
    ("read_ts", "upper", "sinces", "expected"),
    [
        (100, 50, [10, 20], 49),  # where the target ends
        (100, 50, [10, 70], 70),  # not where an input's history is merged
        (30, 50, [10], 30),  # not in the future
        (100, 500, [], 100),
        (5, 0, [], 0),
    ],
)
def test_a_replacement_begins_where_its_target_ends(
    read_ts: int, upper: int, sinces: list[int], expected: int
) -> None:
    assert expected == replacement_as_of(
        read_ts=Timestamp(read_ts),
        target_upper=Timestamp(upper),
        sinces=[Timestamp(since) for since in sinces],
    )


async def test_it_does_not_begin_before_its_target_is_readable(world: World) -> None:
    """One that was never hydrated is readable from its as_of on, and its upper is that."""
    await world.time_is(500)
    await world.run("CREATE MATERIALIZED VIEW new AS SELECT a FROM t")
    await world.run(STAGE.replace("REPLACING mv", "REPLACING new"))
    target, staged = world.item("new").definition, world.item("r").definition
    assert isinstance(target, MaterializedView)
    assert isinstance(staged, MaterializedView)
    assert staged.as_of == target.as_of == 499


async def test_a_target_without_contents_is_not_replaced(world: World) -> None:
    """Not before it has some; and if it never will, that is told at once."""
    await world.time_is(500)
    await world.run("CREATE MATERIALIZED VIEW new AS SELECT a FROM t")
    await world.run(STAGE.replace("REPLACING mv", "REPLACING new"))
    world.replicas.told["r"] = (True, 1_000)
    apply = APPLY.replace("VIEW mv", "VIEW new") + " WITH (FORWARD TIME)"
    task = world.start(apply)
    await until(world, task)
    assert "r" in world.names()
    await world.run("CREATE CLUSTER idle REPLICAS ()")
    await world.run("ALTER MATERIALIZED VIEW new SET CLUSTER idle")
    error = await refused(task)
    assert error.message.startswith('materialized view "new" has never been hydrated')
    await world.write("new", 501)
    task = world.start(apply)
    while "r" in world.names():
        await asyncio.sleep(0)
    await world.take("new")
    await ended(task)


async def test_a_view_of_constants_is_sealed(world: World) -> None:
    await world.run("CREATE MATERIALIZED VIEW one AS SELECT NULL::int AS a")
    await world.run("CREATE MATERIALIZED VIEW also AS SELECT a FROM one")
    for name in ("one", "also"):
        error = await refused(world.start(STAGE.replace("REPLACING mv", f"REPLACING {name}")))
        assert (error.code, error.message) == (
            "55000",
            f"materialized view {name} is sealed and thus cannot be replaced",
        )
    assert "r" not in world.names()


def test_only_what_nothing_changes_cannot_change() -> None:
    def collection(*inputs: Import, derived: bool = True, by_time: bool = False) -> Import:
        made = Derived(inputs, Timestamp(0), GlobalId("u1"), by_time) if derived else None
        return Import(GlobalId("u1"), ShardId("s"), RelationDesc(()), not derived, made)

    table = collection(derived=False)
    assert not cannot_change(table)
    assert cannot_change(collection())
    assert not cannot_change(collection(by_time=True))
    assert not cannot_change(collection(table))
    assert cannot_change(collection(collection()))
    assert not cannot_change(collection(collection(), collection(table)))


async def test_of_two_who_stage_one_is_told_of_the_other(world: World) -> None:
    outcomes = await asyncio.gather(
        world.start(STAGE),
        world.start(STAGE.replace("VIEW r", "VIEW q")),
        return_exceptions=True,
    )
    (refused_one,) = [one for one in outcomes if isinstance(one, SqlError)]
    assert refused_one.message.startswith(
        "cannot replace mv because it already has a replacement: "
    )
    assert len({"r", "q"} & world.names()) == 1
