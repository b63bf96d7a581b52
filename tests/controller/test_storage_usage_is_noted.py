"""Sizes of collections are noted in the catalog, and old notes go."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from evertide.catalog.objects import CatalogUpdate, stored_columns
from evertide.catalog.service import CatalogService
from evertide.controller.storage_usage import RETENTION_MS, StorageUsageKeeper
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import UpperMismatch
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import TWO_COLUMNS, create_table, create_view, item
from tests.catalog.undropping import drop


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    made = Environment()
    yield made
    await made.close()


async def filled(environment: Environment) -> tuple[CatalogService, PersistClient]:
    """A table with a row, a table without a shard yet, and a view, which has none at all."""
    service = await environment.serve()
    client = environment.client_for(await environment.store.current_epoch())
    snapshot = await commit(service, create_table("t"), create_table("empty"), create_view("v"))
    table = item(snapshot, "t")
    assert table.shard_id is not None
    assert table.columns == stored_columns(TWO_COLUMNS)
    await client.create_shard(ShardId(table.shard_id))
    rows = [Update((1, "one"), Timestamp(1), 1)]
    await client.compare_and_append(table.shard_id, table.desc, rows, Timestamp(0), Timestamp(2))
    return service, client


async def test_each_stored_collection_has_its_size(environment: Environment) -> None:
    service, client = await filled(environment)
    await StorageUsageKeeper(service, client, environment.clock).measure()
    snapshot = await service.current()
    noted = await service.storage_usage(snapshot.catalog_ts)
    assert [usage.object_id for usage in noted] == [item(snapshot, "t").item_id]
    assert noted[0].size_bytes > 0
    assert noted[0].collected_at_ms == environment.clock.now_ms()


async def test_what_is_dropped_and_kept_takes_its_room(environment: Environment) -> None:
    service, client = await filled(environment)
    dropped = item(service.newest, "t")
    await commit(service, drop(service.newest, dropped))
    await StorageUsageKeeper(service, client, environment.clock).measure()
    noted = await service.storage_usage((await service.current()).catalog_ts)
    assert [usage.object_id for usage in noted] == [dropped.item_id]
    assert noted[0].size_bytes > 0


async def test_a_size_that_stays_the_same_is_noted_once(environment: Environment) -> None:
    service, client = await filled(environment)
    keeper = StorageUsageKeeper(service, client, environment.clock)
    await keeper.measure()
    upper = (await service.current()).upper
    environment.clock.advance(RETENTION_MS + 1)
    await keeper.measure()
    assert (await service.current()).upper == upper
    assert len(await service.storage_usage(service.newest.catalog_ts)) == 1


async def test_what_is_past_its_retention_goes(environment: Environment) -> None:
    service, client = await filled(environment)
    keeper = StorageUsageKeeper(service, client, environment.clock)
    await keeper.measure()
    environment.clock.advance(RETENTION_MS)
    await grow(service, client, 2)
    await keeper.measure()
    assert len(await service.storage_usage(service.newest.catalog_ts)) == 2
    environment.clock.advance(1)
    await grow(service, client, 3)
    await keeper.measure()
    times = [u.collected_at_ms for u in await service.storage_usage(service.newest.catalog_ts)]
    now_ms = environment.clock.now_ms()
    assert times == [now_ms - 1, now_ms]


async def grow(service: CatalogService, client: PersistClient, at: int) -> None:
    table = item(service.newest, "t")
    assert table.shard_id is not None
    rows = [Update((at, "more"), Timestamp(at), 1)]
    bounds = Timestamp(at), Timestamp(at + 1)
    outcome = await client.compare_and_append(table.shard_id, table.desc, rows, *bounds)
    assert isinstance(outcome, Appended)


async def test_a_change_made_meanwhile_goes_first(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, client = await filled(environment)
    other = await environment.join()
    append, outcomes = service.compare_and_append, list[object]()

    async def append_second(
        updates: Sequence[CatalogUpdate], *, expected_upper: Timestamp
    ) -> object:
        if not outcomes:
            await commit(other, create_table("meanwhile"))
        outcomes.append(await append(updates, expected_upper=expected_upper))
        return outcomes[-1]

    monkeypatch.setattr(service, "compare_and_append", append_second)
    await StorageUsageKeeper(service, client, environment.clock).measure()
    assert [type(outcome) for outcome in outcomes] == [UpperMismatch, Appended]
    final = await service.current()
    assert item(final, "meanwhile").name == "meanwhile"
    assert len(await service.storage_usage(final.catalog_ts)) == 1
