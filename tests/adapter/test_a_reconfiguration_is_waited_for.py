"""ALTER CLUSTER ... WITH (WAIT ...) answers once the catalog says how it ended, and not before."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.catalog.objects import Cluster, Ending, ManagedCluster, OnTimeout, Reconfiguration
from evertide.catalog.ops import (
    AlterClusterOp,
    DropClusterOp,
    FinishReconfigurationOp,
    Op,
    StartReconfigurationOp,
)
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import SqlError
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import ENVIRONMENT

PATIENCE_S = 30
READY = "ALTER CLUSTER c SET (SIZE '2') WITH (WAIT UNTIL READY (TIMEOUT '1m', ON TIMEOUT COMMIT))"


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    made = Environment()
    yield made
    await made.close()


async def connect(
    environment: Environment, catalog: CatalogService, user: str = "materialize"
) -> Connection:
    """A session of an adapter that has a catalog, and nothing that clusters need not."""
    missing: Any = None
    env = AdapterEnvironment(
        environment_id=ENVIRONMENT,
        catalog=catalog,
        oracle=missing,
        storage=missing,
        txns=missing,
        writes=missing,
        compute=missing,
        clock=environment.clock,
    )
    connections = Connections(env, lambda _: None)
    return await connections.open_session({"user": user}, internal=False)


async def run(connection: Connection, text: str) -> None:
    for prepared in connection.split(text):
        await connection.execute(prepared, ())
        await connection.end_implicit(failed=False)


def cluster(snapshot: Snapshot) -> Cluster:
    found = snapshot.cluster_named("c")
    assert found is not None
    return found


def pending(snapshot: Snapshot) -> Reconfiguration | None:
    variant = cluster(snapshot).variant
    assert isinstance(variant, ManagedCluster)
    return variant.pending


async def started(catalog: CatalogService) -> Reconfiguration:
    """The reconfiguration, as soon as it is under way."""
    snapshot = await catalog.current()
    while (found := pending(snapshot)) is None:
        snapshot = await catalog.snapshot_at(snapshot.upper)
    return found


def finish(snapshot: Snapshot, ending: Ending = Ending.COMMITTED) -> Op:
    found = pending(snapshot)
    assert found is not None
    return FinishReconfigurationOp(
        cluster_id=cluster(snapshot).cluster_id,
        pending=found,
        ending=ending,
        fault="no room" if ending is Ending.FAILED else None,
    )


async def waiting(
    environment: Environment, statement: str
) -> tuple[CatalogService, "asyncio.Task[None]"]:
    """A catalog with a reconfiguration under way, and the statement that waits for it.

    Another change of the catalog meanwhile is none that it waits for.
    """
    catalog = await environment.serve()
    connection = await connect(environment, catalog)
    await run(connection, "CREATE CLUSTER c SIZE '1', REPLICATION FACTOR 2")
    task = asyncio.create_task(run(connection, statement))
    await started(catalog)
    other = await connect(environment, catalog)
    await run(other, "CREATE CLUSTER other SIZE '1', REPLICATION FACTOR 0; DROP CLUSTER other")
    assert not task.done()
    return catalog, task


async def test_the_answer_comes_with_the_commit(environment: Environment) -> None:
    catalog, task = await waiting(environment, READY)
    found = pending(catalog.newest)
    assert found is not None
    assert (found.target.size, found.target.replication_factor) == ("2", 2)
    assert found.deadline_ms - found.started_at_ms == 60_000
    assert (found.on_timeout, found.until_ready) == (OnTimeout.COMMIT, True)
    snapshot = await commit(catalog, finish(catalog.newest))
    await task
    assert pending(snapshot) is None
    assert [r.size for r in snapshot.replicas_of(cluster(snapshot).cluster_id)] == ["2", "2"]


async def test_a_wait_for_a_span_ends_in_a_commit(environment: Environment) -> None:
    statement = "ALTER CLUSTER c SET (SIZE '2', REPLICATION FACTOR 1) WITH (WAIT FOR '5s')"
    catalog, task = await waiting(environment, statement)
    found = pending(catalog.newest)
    assert found is not None
    assert (found.target.replication_factor, found.until_ready) == (1, False)
    assert (found.deadline_ms - found.started_at_ms, found.on_timeout) == (5_000, OnTimeout.COMMIT)
    await commit(catalog, finish(catalog.newest))
    await task


async def test_a_lapsed_timeout_is_told_with_what_became_of_the_replicas(
    environment: Environment,
) -> None:
    catalog, task = await waiting(environment, READY)
    await commit(catalog, finish(catalog.newest, Ending.TIMED_OUT))
    with pytest.raises(SqlError, match="canceling statement, provided timeout lapsed") as error:
        await task
    assert error.value.code == "57014"
    assert error.value.detail is not None
    assert "had not caught up" in error.value.detail
    assert "keeps its size '1'" in error.value.detail


async def test_a_rollback_for_a_fault_is_told_with_the_fault(environment: Environment) -> None:
    catalog, task = await waiting(environment, READY)
    await commit(catalog, finish(catalog.newest, Ending.FAILED))
    wanted = 'reconfiguration of cluster "c" could not be committed and was rolled back: no room'
    with pytest.raises(SqlError, match=wanted) as error:
        await task
    assert error.value.code == "55000"


async def test_a_change_right_after_the_commit_is_no_rollback(environment: Environment) -> None:
    """Goal: whoever waited learns of the commit even if the cluster is another one by then."""
    catalog, task = await waiting(environment, READY)
    found = pending(catalog.newest)
    assert found is not None
    variant = ManagedCluster(size="4", replication_factor=1)
    again = AlterClusterOp(
        cluster_id=cluster(catalog.newest).cluster_id, variant=variant, workload_class=None
    )
    snapshot = await commit(catalog, finish(catalog.newest), again)
    assert [r.size for r in snapshot.replicas_of(cluster(snapshot).cluster_id)] == ["4"]
    await asyncio.wait_for(task, PATIENCE_S)


async def test_another_reconfiguration_is_not_taken_for_one_s_own(
    environment: Environment,
) -> None:
    """Goal: the end of a later one says nothing about the one that was waited for."""
    catalog, task = await waiting(environment, READY)
    found = pending(catalog.newest)
    assert found is not None
    cluster_id = cluster(catalog.newest).cluster_id
    later = msgspec.structs.replace(found, started_at_ms=found.started_at_ms + 1)
    await commit(
        catalog,
        finish(catalog.newest, Ending.TIMED_OUT),
        StartReconfigurationOp(cluster_id=cluster_id, pending=later),
    )
    with pytest.raises(SqlError, match="provided timeout lapsed"):
        await asyncio.wait_for(task, PATIENCE_S)


async def test_a_cluster_dropped_meanwhile_is_told(environment: Environment) -> None:
    catalog, task = await waiting(environment, READY)
    await commit(catalog, DropClusterOp(cluster(catalog.newest).cluster_id))
    with pytest.raises(SqlError, match="dropped while it was reconfigured"):
        await task


async def test_whoever_stops_waiting_leaves_the_intent(environment: Environment) -> None:
    """Also for other sessions: a second change of shape is refused until the first has ended."""
    catalog = await environment.serve()
    connection = await connect(environment, catalog)
    await run(connection, "CREATE CLUSTER c SIZE '1'")
    task = asyncio.create_task(run(connection, READY))
    await started(catalog)
    connection.cancel()
    with pytest.raises(SqlError, match="canceling statement due to user request"):
        await asyncio.wait_for(task, PATIENCE_S)
    assert pending(catalog.newest) is not None
    other = await connect(environment, await environment.join())
    with pytest.raises(SqlError, match="with pending updates") as error:
        await run(other, "ALTER CLUSTER c SET (REPLICATION FACTOR 3)")
    assert error.value.code == "55006"
    await commit(catalog, finish(catalog.newest))
    await run(other, "ALTER CLUSTER c SET (REPLICATION FACTOR 3)")


async def test_whoever_asks_for_the_present_size_gives_the_other_one_up(
    environment: Environment,
) -> None:
    catalog, task = await waiting(environment, READY)
    other = await connect(environment, await environment.join())
    await run(other, "ALTER CLUSTER c SET (SIZE '1', REPLICATION FACTOR 3)")
    wanted = 'the reconfiguration of cluster "c" was given up by materialize'
    with pytest.raises(SqlError, match=wanted) as error:
        await asyncio.wait_for(task, PATIENCE_S)
    assert error.value.code == "57014"
    snapshot = await catalog.current()
    assert pending(snapshot) is None
    replicas = snapshot.replicas_of(cluster(snapshot).cluster_id)
    assert [(r.name, r.size) for r in replicas] == [("r1", "1"), ("r2", "1"), ("r3", "1")]


async def test_only_the_owner_gives_a_reconfiguration_up(environment: Environment) -> None:
    catalog, task = await waiting(environment, READY)
    owner = await connect(environment, catalog)
    await run(owner, "CREATE ROLE joe")
    joe = await connect(environment, catalog, "joe")
    with pytest.raises(SqlError, match="must be owner of CLUSTER c"):
        await run(joe, "ALTER CLUSTER c SET (SIZE '1')")
    assert pending(await catalog.current()) is not None
    await commit(catalog, finish(catalog.newest))
    await task


async def test_what_needs_no_new_size_waits_for_nothing(environment: Environment) -> None:
    catalog = await environment.serve()
    connection = await connect(environment, catalog)
    await run(connection, "CREATE CLUSTER c SIZE '1'")
    wait = "WITH (WAIT UNTIL READY (TIMEOUT '1h'))"
    await run(connection, f"ALTER CLUSTER c SET (REPLICATION FACTOR 2) {wait}")
    assert pending(catalog.newest) is None
    assert len(catalog.newest.replicas_of(cluster(catalog.newest).cluster_id)) == 2
