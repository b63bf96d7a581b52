"""Goal: a process that cannot read the catalog for a while follows it afterwards, all of it.

One that never can again says so to everyone who waits.
"""

import asyncio

import pytest

from evertide.catalog.durable.codec import CorruptCatalog
from evertide.catalog.durable.log import RowChange
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.service import CatalogService, Change
from evertide.persist.append import Appended
from evertide.persist.faults import Fenced, StoreFailing, StoreUnreachable
from evertide.persist.store.memory import MemoryConsensus
from evertide.vocab.timestamp import Timestamp
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import create_table, item


async def test_what_came_while_the_store_failed_is_seen_later(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, follower = await environment.serve(), await environment.join()
    asked = asyncio.Event()

    async def failing(*_: object) -> None:
        asked.set()
        raise StoreFailing("EIO")

    with monkeypatch.context() as broken:
        broken.setattr(MemoryConsensus, "head", failing)
        environment.notifier.tell(None)
        await asked.wait()
    snapshot = await commit(writer, create_table("t"))
    followed = await asyncio.wait_for(follower.snapshot_at(snapshot.catalog_ts), 30)
    assert item(followed, "t") == item(snapshot, "t")


async def next_changes(service: CatalogService, count: int) -> list[Change]:
    found: list[Change] = []
    async for change in service.subscribe_at(Timestamp(0)):
        found.append(change)
        if len(found) == count:
            break
    return found


async def test_a_failure_to_follow_reaches_everyone_who_waits(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await environment.serve()
    waiting = asyncio.create_task(service.snapshot_at(Timestamp(99)))
    listening = asyncio.create_task(next_changes(service, 2))
    await asyncio.sleep(0)

    async def unreachable(*_: object) -> None:
        raise StoreUnreachable("the disk is gone")

    monkeypatch.setattr(MemoryConsensus, "head", unreachable)
    environment.notifier.tell(None)
    for task in (waiting, listening):
        with pytest.raises(StoreUnreachable):
            await task
    assert isinstance(await service.wait_failed(), StoreUnreachable)
    with pytest.raises(StoreUnreachable):
        await service.snapshot_at(Timestamp(99))
    with pytest.raises(StoreUnreachable):
        await next_changes(service, 1)


async def test_what_a_newer_generation_wrote_need_not_be_understood(
    environment: Environment,
) -> None:
    """Its program may be a newer one; the older process ends because it was fenced."""
    service = await environment.serve()
    log = environment.log(await environment.store.current_epoch())
    strange = RowChange(StoredRow("kind_of_tomorrow", "{}", "{}"), 1)
    upper = (await service.current()).upper
    outcome = await log.append([strange], expected_upper=upper, raises_epoch=True)
    assert isinstance(outcome, Appended)
    assert isinstance(await asyncio.wait_for(service.wait_failed(), 30), Fenced)


async def test_what_the_own_generation_wrote_must_be_understood(environment: Environment) -> None:
    service = await environment.serve()
    log = environment.log(await environment.store.current_epoch())
    strange = RowChange(StoredRow("kind_of_tomorrow", "{}", "{}"), 1)
    await log.append([strange], expected_upper=(await service.current()).upper)
    assert isinstance(await asyncio.wait_for(service.wait_failed(), 30), CorruptCatalog)
