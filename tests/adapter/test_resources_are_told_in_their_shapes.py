"""Goal: what supervisors and the audit log tell becomes rows of the shapes that are promised.

Method: a supervisor that is scripted, over a real catalog.
"""

import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest
import pytest_asyncio

from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.adapter.introspection.resources import resource_rows
from evertide.catalog.builtin.registry import find_builtin
from evertide.catalog.builtin.resources import RESOURCES
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import ManagedCluster
from evertide.catalog.ops import CreateClusterOp
from evertide.catalog.service import CatalogService
from evertide.controller.orchestrator import POOL, process_name
from evertide.controller.sizes import Host, SizeTable
from evertide.controller.statuses import Facts
from evertide.vocab.datum import Row
from tests.catalog.environment import Environment, commit

AT_US = 5_000_000
GIB = 1 << 30


@dataclass
class Supervisor:
    """Answers for the pool and for one replica; None: it cannot be reached."""

    told: dict[str, Sequence[Facts]] | None

    async def told_by_supervisor(self, relation: str) -> Sequence[Facts] | None:
        return None if self.told is None else self.told.get(relation, ())

    async def answers(self, name: str) -> bool:
        return name == POOL


@pytest_asyncio.fixture
async def service() -> AsyncIterator[CatalogService]:
    made = Environment()
    serving = await made.serve()
    variant = ManagedCluster(size="2", replication_factor=1)
    await commit(serving, CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant))
    yield serving
    await made.close()


def environment(service: CatalogService, supervisor: Supervisor) -> AdapterEnvironment:
    """Only what these rows are made of."""
    made = SimpleNamespace(
        catalog=service,
        compute=supervisor,
        clock=SimpleNamespace(now_ms=lambda: 9_000),
        sizes=SizeTable({}, Host(4, 64 * 1_024)),
    )
    return cast("AdapterEnvironment", made)


def scripted(service: CatalogService) -> Supervisor:
    (own,) = [process_name(r) for r in service.newest.replicas.values() if r.size is not None]
    metrics = [(POOL, 100, 200, AT_US), (own, 500_000_000, GIB, AT_US)]
    gone = ("replica-u7-u70", 1, 2, AT_US)
    return Supervisor(
        {
            "mz_cluster_replica_statuses": [(own, "online", None, AT_US)],
            "mz_cluster_replica_status_history": [
                (own, "offline", "oom-killed", AT_US),
                ("replica-u7-u70", "offline", "dropped", AT_US),
            ],
            "mz_cluster_replica_metrics": metrics,
            "mz_cluster_replica_metrics_history": [*metrics, gone],
        }
    )


async def rows(service: CatalogService, relation: str, supervisor: Supervisor) -> Sequence[Row]:
    return await resource_rows(relation, environment(service, supervisor), service.newest)


@pytest.mark.parametrize("relation", [relation.name for relation in RESOURCES])
async def test_every_row_has_all_columns(service: CatalogService, relation: str) -> None:
    builtin = find_builtin("mz_internal", relation)
    assert builtin is not None
    found = await rows(service, relation, scripted(service))
    assert found
    for row in found:
        assert len(row) == builtin.desc.arity
        for value, column in zip(row, builtin.desc.columns, strict=True):
            assert value is not None or column.nullable, column.name


@pytest.mark.parametrize(
    ("relation", "made_by"),
    [
        ("mz_cluster_usage", "usage_rows"),
        ("mz_cluster_replica_history", "replica_history_rows"),
    ],
)
async def test_bills_are_made_beside_the_loop(
    service: CatalogService, monkeypatch: pytest.MonkeyPatch, relation: str, made_by: str
) -> None:
    """Years of them take seconds, in which everybody else would wait."""
    threads: list[int] = []

    def made(*_: object) -> list[Row]:
        threads.append(threading.get_ident())
        return []

    monkeypatch.setattr(f"evertide.adapter.introspection.resources.{made_by}", made)
    await rows(service, relation, scripted(service))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_measurements_are_set_against_the_size(service: CatalogService) -> None:
    utilization = await rows(service, "mz_cluster_replica_utilization", scripted(service))
    (own,) = [r for r in service.newest.replicas.values() if r.size is not None]
    known = {row[0]: row[2:] for row in utilization}
    assert known[own.replica_id] == (25.0, 25.0, None, 25.0)
    cpu = {
        row[0]: row[1:] for row in await rows(service, "mz_cluster_cpu_usage", scripted(service))
    }
    assert cpu[own.cluster_id] == (500_000_000, 25.0)
    (virtual,) = [c.cluster_id for c in service.newest.clusters.values() if c.is_virtual]
    assert cpu[virtual] == (100, None)


async def test_a_replica_nobody_told_of_yet_is_starting(service: CatalogService) -> None:
    statuses = await rows(service, "mz_cluster_replica_statuses", scripted(service))
    (pooled,) = [r for r in service.newest.replicas.values() if r.size is None]
    known = {row[0]: row[2:] for row in statuses}
    assert known[pooled.replica_id] == ("offline", "starting", 9_000_000)


async def test_history_keeps_what_was_dropped(service: CatalogService) -> None:
    history = await rows(service, "mz_cluster_replica_status_history", scripted(service))
    assert ("u70", 0, "offline", "dropped", AT_US) in history


async def test_without_a_supervisor_replicas_are_asked_themselves(service: CatalogService) -> None:
    alone = Supervisor(None)
    statuses = {row[0]: row[2] for row in await rows(service, "mz_cluster_replica_statuses", alone)}
    assert sorted(str(status) for status in statuses.values()) == ["offline", "online"]
    assert not await rows(service, "mz_cluster_replica_metrics", alone)


async def test_every_listed_size_is_shown(service: CatalogService) -> None:
    shown = {row[0]: row[1:] for row in await rows(
        service, "mz_cluster_replica_sizes", scripted(service)
    )}  # fmt: skip
    assert {"1", "3xsmall", "scale=1,workers=2"} <= shown.keys()
    assert shown["2"][:4] == (1, 2, 2_000_000_000, 4 * GIB)
