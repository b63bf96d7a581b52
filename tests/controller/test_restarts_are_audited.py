"""Goal: a replica that ended by itself is in the audit log with its reason, many ends as one.

Method: a keeper over a real catalog is told of ends.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import ManagedCluster
from evertide.catalog.ops import CreateClusterOp
from evertide.catalog.service import CatalogService
from evertide.controller.orchestrator import POOL, process_name
from evertide.controller.restarts import RestartKeeper
from evertide.controller.statuses import OUT_OF_MEMORY, exit_reason
from tests.catalog.environment import Environment, commit


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    made = Environment()
    yield made
    await made.close()


async def with_replica(environment: Environment) -> tuple[CatalogService, str]:
    service = await environment.serve()
    variant = ManagedCluster(size="1", replication_factor=1)
    await commit(service, CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant))
    (replica,) = [r for r in service.newest.replicas.values() if r.size is not None]
    return service, process_name(replica)


async def restarts(service: CatalogService) -> list[tuple[object, object, str | None]]:
    events = await service.audit_events(service.newest.catalog_ts)
    return [
        (e.details["replica_name"], e.details["reason"], e.user)
        for e in events
        if e.event_type == "restart"
    ]


async def noted(service: CatalogService, count: int) -> list[tuple[object, object, str | None]]:
    async with asyncio.timeout(20):
        while len(found := await restarts(service)) < count:
            await asyncio.sleep(0.01)
    return found


async def test_the_first_end_is_noted_at_once_and_later_ones_together(
    environment: Environment,
) -> None:
    service, process = await with_replica(environment)
    keeper = RestartKeeper(service, environment.clock, again_s=0.5)
    running = asyncio.create_task(keeper.run())
    try:
        keeper.ended(process, exit_reason(-9))
        first = await noted(service, 1)
        assert first == [("r1", "signal 9 (SIGKILL)", None)]
        for _ in range(20):
            keeper.ended(process, OUT_OF_MEMORY)
            await asyncio.sleep(0)
        assert (await noted(service, 2))[1:] == [("r1", "oom-killed, 20 times", None)]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_the_pools_end_is_that_of_every_virtual_replica(environment: Environment) -> None:
    service, process = await with_replica(environment)
    keeper = RestartKeeper(service, environment.clock)
    await keeper.note({POOL: ("exit code 1", 1), "replica-u9-u99": ("exit code 1", 1)})
    virtual = [r for r in service.newest.replicas.values() if process_name(r) == POOL]
    assert len(await restarts(service)) == len(virtual) == 1
    upper = service.newest.upper
    await keeper.note({"replica-u9-u99": ("exit code 1", 1)})
    assert service.newest.upper == upper, "nothing to say of one that is gone"
    assert process != POOL
