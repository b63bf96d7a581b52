"""Goal: a process that cannot read the catalog for a while follows it afterwards, all of it."""

import asyncio

import pytest

from evertide.persist.faults import StoreFailing
from evertide.persist.store.memory import MemoryConsensus
from tests.catalog.environment import Environment, commit, create_table, item


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
