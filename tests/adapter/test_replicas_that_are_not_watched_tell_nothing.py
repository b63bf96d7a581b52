"""With an INTROSPECTION INTERVAL of zero replicas tell what is needed to run them, and no more."""

from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import cast

import pytest
import pytest_asyncio

from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.adapter.introspection.reports import reported
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import Introspection, ManagedCluster
from evertide.catalog.ops import CreateClusterOp
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.orchestrator import process_name
from evertide.controller.statuses import Facts
from tests.catalog.environment import Environment, commit


@pytest_asyncio.fixture
async def service() -> AsyncIterator[CatalogService]:
    """One cluster that is watched, and one that is not."""
    made = Environment()
    serving = await made.serve()
    for name, interval_ms in (("watched", 1_000), ("not", None)):
        variant = ManagedCluster(
            size="2", replication_factor=1, introspection=Introspection(interval_ms=interval_ms)
        )
        await commit(serving, CreateClusterOp(name=name, owner=DEFAULT_ROLE_ID, variant=variant))
    yield serving
    await made.close()


class Replicas:
    """Each tells one row of one object."""

    async def introspect(self, snapshot: Snapshot, _relation: str) -> dict[str, Sequence[Facts]]:
        return {
            process_name(r): [("s1", r.cluster_id, 1, 2, 3)] for r in snapshot.replicas.values()
        }


@pytest.mark.parametrize(
    ("relation", "told_by"),
    [
        ("mz_tick_records", {"default", "watched"}),
        ("mz_arrangement_sizes", {"default", "watched"}),
        ("mz_cluster_replica_frontiers", {"default", "watched", "not"}),
    ],
)
async def test_who_tells(service: CatalogService, relation: str, told_by: set[str]) -> None:
    env = cast("AdapterEnvironment", SimpleNamespace(compute=Replicas()))
    snapshot = service.newest
    clusters = {r.replica_id: r.cluster_id for r in snapshot.replicas.values()}
    rows = await reported(relation, env, snapshot)
    names = {snapshot.clusters[c].name for i, c in clusters.items() if i in {r[1] for r in rows}}
    assert names == told_by
