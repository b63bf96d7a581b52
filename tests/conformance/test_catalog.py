"""What every durable catalog promises: writers, followers and restarts agree, once or never.

A savepoint is not among these: nobody else sees it. See test_catalog_copies.py.
"""

import asyncio

import pytest

from evertide.catalog.durable.protocol import Uninitialized
from evertide.catalog.objects import AuditEvent, CatalogObject, Item, TimelineTimestamp
from evertide.catalog.ops import DropItemsOp
from evertide.catalog.service import CatalogService, Change
from evertide.catalog.snapshot import Snapshot, all_objects
from evertide.catalog.transact import transact
from evertide.persist.faults import Fenced
from evertide.persist.handle import Appended, Refused
from evertide.persist.state import UpperMismatch, initial_state
from evertide.persist.state import create as create_shard
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import create_table, ids, item


def contents(snapshot: Snapshot) -> set[CatalogObject]:
    """All objects, but for what every opening notes: how far time has come."""
    objects = all_objects(snapshot)
    return {found for found in objects if not isinstance(found, TimelineTimestamp)}


async def test_a_new_environment_has_its_first_objects(environment: Environment) -> None:
    assert not await environment.openable().is_initialized()
    with pytest.raises(Uninitialized):
        await environment.openable().open_read_only()
    service = await environment.serve()
    snapshot = await service.current()
    cluster = snapshot.cluster_named("default")
    assert cluster is not None
    assert (cluster.cluster_id, cluster.is_virtual) == ("u1", True)
    assert snapshot.database_named("materialize") is not None
    assert snapshot.settings["environment_id"] == "test-environment"
    assert await environment.openable().is_initialized()


async def test_a_restart_finds_an_equal_snapshot_and_a_greater_epoch(
    environment: Environment,
) -> None:
    first = await environment.serve()
    before = await commit(first, create_table("t"))
    epoch = await environment.openable().current_epoch()
    second = await environment.serve()
    assert contents(await second.current()) == contents(before)
    assert await environment.openable().current_epoch() == epoch + 1
    assert contents(await environment.openable().check_open()) == contents(before)


async def test_a_follower_equals_the_writer(environment: Environment) -> None:
    writer = await environment.serve()
    follower = await environment.join()
    snapshot = await commit(writer, create_table("a"))
    snapshot = await commit(writer, create_table("b"), DropItemsOp(ids(item(snapshot, "a"))))
    assert await follower.snapshot_at(snapshot.catalog_ts) == snapshot
    assert await follower.current() == snapshot
    readable = await environment.openable().open_read_only()
    assert await readable.load() == snapshot


async def test_an_append_is_applied_in_the_oracle_with_it(environment: Environment) -> None:
    service = await environment.serve()
    snapshot = await commit(service, create_table("t"))
    oracle = environment.oracle(await environment.openable().current_epoch())
    assert await oracle.read_ts(Timeline.CATALOG) == snapshot.catalog_ts
    assert snapshot.upper == snapshot.catalog_ts + 1


async def test_a_lost_race_is_a_value_and_changes_nothing(environment: Environment) -> None:
    service, other = await environment.serve(), await environment.join()
    old = await service.current()
    updates = transact(old, [create_table("mine")], now_ms=1, user=None).updates
    new = await commit(other, create_table("theirs"))
    outcome = await service.compare_and_append(updates, expected_upper=old.upper)
    assert outcome == UpperMismatch(new.upper)
    assert await service.current() == new


async def test_data_shards_change_in_the_same_transaction(environment: Environment) -> None:
    service = await environment.serve()
    client = environment.client_for(await environment.openable().current_epoch())
    shard_id, initial = ShardId("item-u1"), initial_state(since=Timestamp(7))
    made = create_shard(shard_id, initial)
    snapshot = await service.current()
    updates = transact(snapshot, [create_table("t")], now_ms=1, user=None).updates
    outcome = await service.compare_and_append(
        updates, expected_upper=snapshot.upper, shard_changes=[made]
    )
    assert isinstance(outcome, Appended)
    assert (await client.state(shard_id)).since == 7
    snapshot = await service.current()
    again = transact(snapshot, [create_table("u")], now_ms=1, user=None).updates
    refused = await service.compare_and_append(
        again, expected_upper=snapshot.upper, shard_changes=[made]
    )
    assert isinstance(refused, Refused)
    assert refused.shard_id == shard_id
    assert await service.current() == snapshot


async def test_an_old_generation_is_fenced(environment: Environment) -> None:
    old = await environment.serve()
    snapshot = await old.current()
    updates = transact(snapshot, [create_table("t")], now_ms=1, user=None).updates
    old_epoch = await environment.openable().current_epoch()
    new = await environment.serve()
    with pytest.raises(Fenced):
        await old.compare_and_append(updates, expected_upper=snapshot.upper)
    with pytest.raises(Fenced):
        await environment.openable().join(old_epoch)
    with pytest.raises(Fenced):
        await environment.openable().join(Epoch(99))
    assert not (await new.current()).items


async def test_an_append_under_an_old_epoch_is_fenced_by_the_store_itself(
    environment: Environment,
) -> None:
    """The oracle would refuse the old process too; here only the append itself can."""
    catalog = await environment.openable().open()
    snapshot = await catalog.load()
    updates = transact(snapshot, [create_table("t")], now_ms=1, user=None).updates
    await environment.openable().open()
    with pytest.raises(Fenced):
        await catalog.compare_and_append(updates, expected_upper=snapshot.upper)
    with pytest.raises(Fenced):
        await catalog.confirm_leadership()


async def next_changes(service: CatalogService, at: Timestamp, count: int) -> list[Change]:
    found: list[Change] = []
    async for change in service.subscribe_at(at):
        found.append(change)
        if len(found) == count:
            break
    return found


async def test_a_subscription_tells_everything_then_each_transaction(
    environment: Environment,
) -> None:
    writer, follower = await environment.serve(), await environment.join()
    start = await commit(writer, create_table("a"))
    await follower.snapshot_at(start.catalog_ts)
    listening = asyncio.create_task(next_changes(follower, start.catalog_ts, 3))
    await asyncio.sleep(0)
    await commit(writer, create_table("b"))
    end = await commit(writer, create_table("c"))
    changes = await listening
    told = Snapshot()
    for change in changes:
        told = told.apply(change.updates, change.upper)
        assert told == change.snapshot
    assert told == end
    created = [[u.object.name for u in c.updates if isinstance(u.object, Item)] for c in changes]
    assert created == [["a"], ["b"], ["c"]]


async def test_audit_events_are_read_back_in_order(environment: Environment) -> None:
    service = await environment.serve()
    snapshot = await commit(service, create_table("t"))
    await commit(service, create_table("later"))
    events = await service.audit_events(snapshot.catalog_ts)
    assert all(isinstance(event, AuditEvent) for event in events)
    assert [event.event_id for event in events] == list(range(1, len(events) + 1))
    assert (events[0].object_type, events[0].user) == ("role", None)
    assert (events[-1].details["item"], events[-1].user) == ("t", "materialize")


async def test_a_dump_names_every_stored_object(environment: Environment) -> None:
    service = await environment.serve()
    await commit(service, create_table("t"))
    dump = await (await environment.openable().open_read_only()).dump()
    assert '{"kind": "cluster", "key": {"cluster_id": "u1"}' in dump
    assert '"key": {"item_id": "u1"}' in dump
