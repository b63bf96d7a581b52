"""Goal: an item whose text does not plan is set aside and shown with the reason; all others run,
and so does it once it plans."""

from collections.abc import AsyncIterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from evertide.catalog.objects import CatalogUpdate
from evertide.catalog.snapshot import Snapshot
from evertide.cli.replica import CatalogFollower
from evertide.controller.follow import Follower
from evertide.controller.orchestrator import wanted_processes
from evertide.dataflow.description import DataflowDescription
from evertide.spark.reports import Reports
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.timestamp import Timestamp
from tests.controller.replaced import item, two_clusters
from tests.sql.database import Database

DEFAULT = ClusterId("u1")


def spoiled(database: Database, name: str) -> Snapshot:
    """The catalog with a text for one item that names what there is not."""
    good = item(database, name)
    text = (
        "CREATE MATERIALIZED VIEW materialize.public.m AS SELECT a, b FROM materialize.public.gone"
    )
    bad = msgspec.structs.replace(good, create_sql=text)
    changes = [CatalogUpdate(good, -1), CatalogUpdate(bad, 1)]
    return database.snapshot.apply(changes, Timestamp(database.snapshot.upper + 1))


def test_it_is_set_aside_until_it_plans() -> None:
    database, follower = two_clusters(), Follower()
    bad = spoiled(database, "m")
    m = item(database, "m").global_id
    all_of_them = Follower().dataflows(database.snapshot, [DEFAULT])
    assert len(all_of_them) == 3
    for _ in range(2):
        found = follower.dataflows(bad, [DEFAULT])
        assert found == {g: d for g, d in all_of_them.items() if g != m}
        assert list(follower.set_aside) == [(m, DEFAULT)]
        assert "gone" in follower.set_aside[m, DEFAULT]
    assert follower.dataflows(database.snapshot, [DEFAULT]) == all_of_them
    assert not follower.set_aside


async def test_a_replica_runs_the_others_and_shows_why_it_does_not_run_that_one() -> None:
    database = two_clusters()
    bad = spoiled(database, "m")
    wanted: list[Mapping[GlobalId, DataflowDescription]] = []

    async def subscribe_at(_: Timestamp) -> AsyncIterator[object]:
        yield SimpleNamespace(snapshot=bad)

    async def set_dataflows(given: Mapping[GlobalId, DataflowDescription]) -> None:
        wanted.append(given)

    async def set_wanted(*_: Sequence[object]) -> None:
        pass

    catalog = SimpleNamespace(newest=SimpleNamespace(catalog_ts=0), subscribe_at=subscribe_at)
    worker: Any = SimpleNamespace(set_dataflows=set_dataflows, dataflows=list)
    external = SimpleNamespace(set_wanted=set_wanted, statuses=lambda relation: [(relation,)])
    (process,) = (n for n, spec in wanted_processes(bad).items() if DEFAULT in spec.cluster_ids)
    stand_ins: tuple[Any, ...] = (catalog, worker, external, None)
    follower = CatalogFollower(process, *stand_ins)
    await follower.run()
    m = item(database, "m").global_id
    assert len(wanted) == 1
    assert len(wanted[0]) == 2
    assert m not in wanted[0]
    told = await Reports(worker, follower.statuses).response(1, "mz_hydration_statuses")
    ((object_id, cluster_id, hydrated, *_, why),) = told.rows
    assert (object_id, cluster_id, hydrated) == (m, DEFAULT, False)
    assert "gone" in str(why)
    assert follower.statuses("mz_sink_statuses") == [("mz_sink_statuses",)], "as ever"
