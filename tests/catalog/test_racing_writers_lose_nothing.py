"""Two writers over one catalog: every acknowledged change stays, whatever the interleaving."""

import asyncio
import random

import pytest

from evertide.catalog.durable.place import CatalogKind
from evertide.catalog.ops import CreateItemOp, DropItemsOp, Op
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.persist.store.protocol import (
    Consensus,
)
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import Epoch
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import PUBLIC, create_table, create_view
from tests.support.jitter import JitteryConsensus


class WaveringEnvironment(Environment):
    def __init__(self, seed: int) -> None:
        super().__init__(list(CatalogKind)[seed % len(CatalogKind)])
        self._chance = random.Random(seed)

    def consensus(self, epoch: Epoch) -> Consensus:
        return JitteryConsensus(super().consensus(epoch), self._chance)


async def create_tables(service: CatalogService, prefix: str, count: int) -> list[str]:
    names = [f"{prefix}{number}" for number in range(count)]
    for name in names:
        await commit(service, create_table(name))
    return names


def table_names(snapshot: Snapshot) -> list[str]:
    return sorted(i.name for i in snapshot.items.values())


@pytest.mark.parametrize("seed", range(42))
async def test_two_writers_never_lose_an_update(seed: int) -> None:
    """Goal: no acknowledged table vanishes and no id is given twice; followers agree."""
    environment = WaveringEnvironment(seed)
    first, second = await environment.serve(), await environment.join()
    follower = await environment.join()
    created = await asyncio.gather(create_tables(first, "a", 8), create_tables(second, "b", 8))
    end = await first.current()
    assert table_names(end) == sorted(created[0] + created[1])
    assert len({i.oid for i in end.items.values()}) == 16
    assert await second.current() == end
    assert await follower.current() == end
    events = await follower.audit_events(end.catalog_ts)
    assert len({e.event_id for e in events}) == len(events)
    assert sum(e.object_type == "table" for e in events) == 16
    await environment.close()


async def outcome(service: CatalogService, *ops: Op) -> str:
    try:
        await commit(service, *ops)
    except SqlError as refused:
        return refused.code
    return "done"


@pytest.mark.parametrize("seed", range(42))
async def test_of_two_equal_names_one_wins_and_the_other_is_told(seed: int) -> None:
    environment = WaveringEnvironment(seed)
    first, second = await environment.serve(), await environment.join()
    outcomes = await asyncio.gather(
        outcome(first, create_table("t")), outcome(second, create_table("t"))
    )
    assert sorted(outcomes) == ["42P07", "done"]
    assert table_names(await first.current()) == ["t"]
    await environment.close()


@pytest.mark.parametrize("seed", range(42))
async def test_a_view_never_outlives_the_table_it_names(seed: int) -> None:
    """Method: one writer drops the table while the other creates a view on it."""
    environment = WaveringEnvironment(seed)
    first, second = await environment.serve(), await environment.join()
    snapshot = await commit(first, create_table("t"))
    table = snapshot.item_named(PUBLIC, "t")
    assert table is not None
    view: CreateItemOp = create_view("v", table)
    outcomes = await asyncio.gather(
        outcome(first, DropItemsOp((table.item_id,))), outcome(second, view)
    )
    left = table_names(await second.current())
    assert (tuple(outcomes), left) in [(("done", "42P01"), []), (("2BP01", "done"), ["t", "v"])]
    await environment.close()
