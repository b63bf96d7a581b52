"""A block that changes objects tries each statement once, and all again only on another catalog.

Method: count the changes that are applied to drafts.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from evertide.adapter import savepoints
from evertide.adapter.connection import Connection
from evertide.adapter.ddl import block
from evertide.catalog.draft import Draft
from evertide.catalog.ops import Op
from evertide.catalog.service import CatalogService
from evertide.catalog.transact import apply_op
from evertide.vocab.errors import SqlError
from tests.adapter.test_ddl_that_lost_a_race_is_planned_again import connect, run
from tests.catalog.environment import Environment

STEPS = 12


@dataclass
class Counted:
    one: Connection
    other: Connection
    catalog: CatalogService
    applied: list[Op] = field(default_factory=list)

    async def names(self) -> list[str]:
        """Of what is stored."""
        return sorted(item.name for item in (await self.catalog.current()).items.values())


@pytest.fixture
async def counted(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Counted]:
    environment = Environment()
    service = await environment.serve()
    one, other = await connect(environment, service), await connect(environment, service)
    found = Counted(one, other, service)

    def apply(draft: Draft, op: Op) -> object:
        found.applied.append(op)
        return apply_op(draft, op)

    monkeypatch.setattr(block, "apply_op", apply)
    yield found
    await environment.close()


async def make_views(counted: Counted, first: int, count: int) -> None:
    """Each reads the one before it."""
    for number in range(first, first + count):
        source = f"SELECT a FROM v{number - 1:02}" if number else "SELECT 1 AS a"
        await run(counted.one, f"CREATE VIEW v{number:02} AS {source}")


async def test_a_step_is_applied_once(counted: Counted) -> None:
    await run(counted.one, "BEGIN")
    await make_views(counted, 0, STEPS)
    await run(counted.one, "COMMIT")
    assert len(counted.applied) == STEPS
    assert await counted.names() == [f"v{number:02}" for number in range(STEPS)]


async def test_all_are_applied_again_where_another_has_changed_the_catalog(
    counted: Counted,
) -> None:
    await run(counted.one, "BEGIN")
    await make_views(counted, 0, 5)
    await run(counted.other, "CREATE VIEW w AS SELECT 1")
    await make_views(counted, 5, 3)
    assert len(counted.applied) == 5 + 5 + 3
    await run(counted.other, "CREATE VIEW x AS SELECT 1")
    await run(counted.one, "COMMIT")
    assert len(counted.applied) == 5 + 5 + 3 + 8
    assert await counted.names() == [*(f"v{number:02}" for number in range(8)), "w", "x"]


async def test_others_have_their_turn_while_all_are_applied_again(counted: Counted) -> None:
    await run(counted.one, "BEGIN")
    await make_views(counted, 0, 30)
    await run(counted.other, "CREATE VIEW w AS SELECT 1")
    counted.applied.clear()
    seen: list[int] = []

    async def watch() -> None:
        while True:
            seen.append(len(counted.applied))
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    await run(counted.one, "CREATE VIEW x AS SELECT 1")
    watching.cancel()
    assert [done for done in seen if 0 < done < 30], "nobody else ran"


async def test_what_failed_or_was_taken_back_is_not_committed(counted: Counted) -> None:
    await run(counted.one, "BEGIN")
    await make_views(counted, 0, 3)
    await run(counted.one, "SAVEPOINT s")
    await make_views(counted, 3, 2)
    with pytest.raises(SqlError, match="already exists"):
        await run(counted.one, "CREATE VIEW v01 AS SELECT 1")
    await run(counted.one, "ROLLBACK TO s")
    await run(counted.one, "CREATE VIEW v04 AS SELECT a FROM v02")
    await run(counted.one, "COMMIT")
    assert await counted.names() == ["v00", "v01", "v02", "v04"]


async def test_savepoints_are_bounded(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savepoints, "MOST_SAVEPOINTS", 3)
    await run(counted.one, "BEGIN")
    for _ in range(3):
        await run(counted.one, "SAVEPOINT s")
    with pytest.raises(SqlError, match="limited to 3 savepoints") as refused:
        await run(counted.one, "SAVEPOINT s")
    assert refused.value.code == "53000"
    await run(counted.one, "ROLLBACK TO s")
    await run(counted.one, "RELEASE s")
    await run(counted.one, "SAVEPOINT s")
