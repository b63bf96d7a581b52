"""Transactions and small changes, in every durable catalog and in a savepoint of each."""

import asyncio

import pytest

from evertide.catalog.draft import Allocator
from evertide.catalog.durable.protocol import Progress, WritableCatalog
from evertide.catalog.durable.targeted import (
    allocate_id,
    set_config,
    set_system_object_mappings,
)
from evertide.catalog.objects import AuditEvent, CatalogUpdate, Item, SystemObjectMapping
from evertide.catalog.snapshot import Snapshot
from evertide.persist.append import Appended
from evertide.persist.machine import Refused
from evertide.persist.state import UpperMismatch, create, initial_state
from evertide.vocab.errors import DuplicateTable
from evertide.vocab.ids import ItemId, ShardId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.environment import Environment
from tests.catalog.samples import PUBLIC, create_table


@pytest.fixture(params=["open", "savepoint"])
async def catalog(request: pytest.FixtureRequest, environment: Environment) -> WritableCatalog:
    opened = await environment.openable().open()
    return await environment.openable().open_savepoint() if request.param == "savepoint" else opened


async def commit_table(catalog: WritableCatalog, name: str) -> Timestamp:
    transaction = await catalog.transaction(user="materialize")
    transaction.apply(create_table(name))
    outcome = await catalog.commit_transaction(transaction)
    assert isinstance(outcome, Appended)
    return outcome.upper


async def test_a_transaction_is_seen_once_it_has_committed(catalog: WritableCatalog) -> None:
    transaction = await catalog.transaction(user="materialize")
    transaction.apply(create_table("t"))
    assert transaction.snapshot.item_named(PUBLIC, "t") is not None
    assert (await catalog.load()).item_named(PUBLIC, "t") is None
    outcome = await catalog.commit_transaction(transaction)
    after = await catalog.load()
    assert outcome == Appended(after.upper)
    assert after.item_named(PUBLIC, "t") is not None
    assert [found.name for found in await catalog.get(Item)] == ["t"]


async def test_what_is_not_possible_is_told_before_anything_is_written(
    catalog: WritableCatalog,
) -> None:
    upper = await commit_table(catalog, "t")
    transaction = await catalog.transaction()
    with pytest.raises(DuplicateTable):
        transaction.apply(create_table("t"))
    assert (await catalog.load()).upper == upper


async def test_of_two_transactions_on_one_snapshot_one_commits(catalog: WritableCatalog) -> None:
    first, second = await catalog.transaction(), await catalog.transaction()
    first.apply(create_table("a"))
    second.apply(create_table("b"))
    outcome = await catalog.commit_transaction(first)
    assert isinstance(outcome, Appended)
    assert await catalog.commit_transaction(second) == UpperMismatch(outcome.upper)
    names = {item.name for item in (await catalog.load()).items.values()}
    assert names == {"a"}


async def test_a_transaction_that_changes_nothing_leaves_no_trace(catalog: WritableCatalog) -> None:
    before = await catalog.load()
    outcome = await catalog.commit_transaction(await catalog.transaction())
    assert outcome == Appended(before.upper)
    assert await catalog.load() == before


async def test_nothing_of_a_transaction_is_done_if_a_shard_refuses(
    catalog: WritableCatalog,
) -> None:
    made = create(ShardId("mine"), initial_state())
    before = await catalog.transaction()
    before.apply(create_table("a"))
    assert isinstance(await catalog.commit_transaction(before, [made]), Appended)
    upper = (await catalog.load()).upper
    transaction = await catalog.transaction()
    transaction.apply(create_table("b"))
    refused = await catalog.commit_transaction(transaction, [made])
    assert isinstance(refused, Refused)
    assert refused.shard_id == "mine"
    after = await catalog.load()
    assert (after.upper, after.item_named(PUBLIC, "b")) == (upper, None)


async def test_followers_are_told_every_transaction_once_in_order(catalog: WritableCatalog) -> None:
    start = await catalog.load()
    told: list[Progress] = []

    async def listen() -> None:
        async for progress in catalog.follow(start.upper):
            told.append(progress)
            if len(told) == 10:
                return

    listening = asyncio.create_task(listen())
    uppers = [await commit_table(catalog, f"t{number}") for number in range(10)]
    await asyncio.wait_for(listening, 30)
    assert [progress.upper for progress in told] == uppers
    snapshot = start
    for progress in told:
        snapshot = snapshot.apply(progress.updates, progress.upper)
    assert snapshot == await catalog.load()


async def test_audit_events_are_read_from_the_store_and_never_kept(
    catalog: WritableCatalog,
) -> None:
    upper = await commit_table(catalog, "t")
    await commit_table(catalog, "later")
    events = await catalog.get(AuditEvent, Timestamp(upper - 1))
    assert [event.event_id for event in events] == list(range(1, len(events) + 1))
    assert (events[-1].details["item"], events[-1].user) == ("t", "materialize")
    assert len(await catalog.get(AuditEvent)) == len(events) + 1
    kept = await catalog.load()
    event = CatalogUpdate(events[-1], 1)
    assert kept.apply([event], kept.upper) == kept


async def test_numbers_are_given_once_however_many_ask(catalog: WritableCatalog) -> None:
    numbers = await asyncio.gather(*(allocate_id(catalog, Allocator.ROLE) for _ in range(8)))
    assert len(set(numbers)) == 8
    assert (await catalog.load()).next_numbers[Allocator.ROLE] == max(numbers) + 1


async def test_configs_and_mappings_are_set_and_set_again(catalog: WritableCatalog) -> None:
    for value in (3, 4, 4):
        await set_config(catalog, "answer", value)
        assert (await catalog.load()).configs["answer"] == value
    known = await catalog.get(SystemObjectMapping)
    changed = [SystemObjectMapping(
        schema=mapping.schema, object_type=mapping.object_type, name=mapping.name,
        object_id=mapping.object_id, fingerprint="changed",
    ) for mapping in known[:2]]  # fmt: skip
    added = SystemObjectMapping(
        schema="mz_catalog", object_type="view", name="mz_new",
        object_id=ItemId("s9999"), fingerprint="new",
    )  # fmt: skip
    await set_system_object_mappings(catalog, [*changed, added])
    found = await catalog.get(SystemObjectMapping)
    assert len(found) == len(known) + 1
    assert {m.name: m.fingerprint for m in found if m in [*changed, added]} == {
        **{m.name: "changed" for m in changed},
        "mz_new": "new",
    }


async def test_a_copy_that_is_brought_forward_equals_one_that_is_read_anew(
    environment: Environment,
) -> None:
    writer = await environment.openable().open()
    reader = await environment.openable().open_read_only()
    for number in range(3):
        await reader.load()
        await commit_table(writer, f"a{number}")
        await commit_table(writer, f"b{number}")
    anew: Snapshot = await (await environment.openable().open_read_only()).load()
    assert await reader.load() == anew == await writer.load()
