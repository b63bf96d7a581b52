"""Goal: old replicas go when new ones are as far as they are, or when the time is over as was said.

Method: the rules on snapshots and reports made by hand; then a keeper over a real catalog whose
replicas are scripted.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.faults import BrokenCatalog
from evertide.catalog.objects import (
    AuditEvent,
    Cluster,
    Ending,
    Index,
    ManagedCluster,
    ManagedTarget,
    OnTimeout,
    Reconfiguration,
)
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateClusterProfileOp,
    FinishReconfigurationOp,
    NewMaterializedView,
    StartReconfigurationOp,
)
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.controller.expiry import ExpiryKeeper
from evertide.controller.orchestrator import process_name
from evertide.controller.reconfiguration import (
    FRONTIERS,
    HYDRATION,
    LAG_MS,
    ReconfigurationKeeper,
    Told,
    is_caught_up,
    verdict,
)
from evertide.controller.statuses import Facts
from evertide.vocab.errors import DuplicateObject
from evertide.vocab.ids import ClusterId
from evertide.vocab.refresh import RefreshSchedule
from evertide.vocab.timestamp import Timestamp
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import create, create_index, create_table, item

DEADLINE_MS = 10_000


def pending(
    *, on_timeout: OnTimeout = OnTimeout.ROLLBACK, until_ready: bool = True
) -> Reconfiguration:
    return Reconfiguration(
        target=ManagedTarget(size="2", replication_factor=2),
        started_at_ms=0,
        deadline_ms=DEADLINE_MS,
        on_timeout=on_timeout,
        until_ready=until_ready,
    )


@pytest.mark.parametrize(
    ("asked", "caught_up", "now_ms", "expected"),
    [
        (pending(), False, DEADLINE_MS - 1, None),
        (pending(), True, 0, Ending.COMMITTED),
        (pending(), False, DEADLINE_MS, Ending.TIMED_OUT),
        (pending(on_timeout=OnTimeout.COMMIT), False, DEADLINE_MS, Ending.COMMITTED),
        (pending(until_ready=False, on_timeout=OnTimeout.COMMIT), True, DEADLINE_MS - 1, None),
        (
            pending(until_ready=False, on_timeout=OnTimeout.COMMIT),
            True,
            DEADLINE_MS,
            Ending.COMMITTED,
        ),
    ],
)
def test_it_ends_when_ready_or_when_its_time_is_over(
    asked: Reconfiguration, caught_up: bool, now_ms: int, expected: Ending | None
) -> None:
    assert verdict(asked, caught_up=caught_up, now_ms=now_ms) is expected


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    made = Environment()
    yield made
    await made.close()


async def reconfiguring(
    environment: Environment, asked: Reconfiguration
) -> tuple[CatalogService, ClusterId]:
    """A cluster of one replica with an index, on its way to two."""
    service = await environment.serve()
    variant = ManagedCluster(size="1", replication_factor=1)
    snapshot = await commit(
        service, CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant)
    )
    cluster_id = cluster(snapshot).cluster_id
    snapshot = await commit(service, create_table("t"))
    index = create_index("i", item(snapshot, "t"))
    assert isinstance(index.definition, Index)
    definition = msgspec.structs.replace(index.definition, cluster_id=cluster_id)
    await commit(service, replace(index, definition=definition))
    await commit(service, StartReconfigurationOp(cluster_id=cluster_id, pending=asked))
    return service, cluster_id


def cluster(snapshot: Snapshot) -> Cluster:
    found = snapshot.cluster_named("c")
    assert found is not None
    return found


class Replicas:
    """What replicas would report, by process."""

    def __init__(self, snapshot: Snapshot, cluster_id: ClusterId) -> None:
        replicas = snapshot.replicas_of(cluster_id)
        self.cluster_id = cluster_id
        self.old = [process_name(r) for r in replicas if not r.pending]
        self.new = [process_name(r) for r in replicas if r.pending]
        (self.index,) = [i.global_id for i in snapshot.items_in_cluster(cluster_id)]
        self.hydration: dict[str, Sequence[Facts]] = {}
        self.frontiers: dict[str, Sequence[Facts]] = {}
        for name in (*self.old, *self.new):
            self.say(name, upper=50_000)

    def say(self, name: str, *, upper: int | None, hydrated: bool = True) -> None:
        self.hydration[name] = [(self.index, self.cluster_id, hydrated, 1, 1, None)]
        self.frontiers[name] = [(self.index, self.cluster_id, upper, 0)]


async def test_every_new_replica_must_be_as_far_as_the_old_ones(environment: Environment) -> None:
    service, cluster_id = await reconfiguring(environment, pending())
    told = Replicas(service.newest, cluster_id)
    assert (len(told.old), len(told.new)) == (1, 2)

    def caught_up() -> bool:
        return is_caught_up(service.newest, cluster_id, told.hydration, told.frontiers)

    assert caught_up()
    told.say(told.new[1], upper=50_000, hydrated=False)
    assert not caught_up()
    told.say(told.new[1], upper=50_000 - LAG_MS - 1)
    assert not caught_up(), "hydrated, but behind"
    told.say(told.new[1], upper=50_000 - LAG_MS)
    assert caught_up()
    told.say(told.old[0], upper=None)
    assert not caught_up(), "the old one has finished"
    told.say(told.new[0], upper=None)
    told.say(told.new[1], upper=None)
    assert caught_up()
    del told.frontiers[told.old[0]]
    assert caught_up(), "an old one that is silent holds nobody back"
    del told.hydration[told.new[0]]
    assert not caught_up(), "a new one that is silent has not caught up"


async def test_a_first_refresh_that_is_to_come_is_not_waited_for(environment: Environment) -> None:
    """Neither by the view nor by what reads it: there is nothing for them to hydrate yet."""
    service, cluster_id = await reconfiguring(environment, pending())
    told = Replicas(service.newest, cluster_id)
    table = item(service.newest, "t")
    refresh = RefreshSchedule(at=(Timestamp(900),))
    late = NewMaterializedView(cluster_id=cluster_id, as_of=Timestamp(900), refresh=refresh)
    snapshot = await commit(service, create("late", late, table))
    above = NewMaterializedView(cluster_id=cluster_id, as_of=Timestamp(900))
    snapshot = await commit(service, create("above", above, item(snapshot, "late")))

    def caught_up(now_ms: int) -> bool:
        hydration, frontiers = told.hydration, told.frontiers
        return is_caught_up(snapshot, cluster_id, hydration, frontiers, now_ms=now_ms)

    assert caught_up(899)
    assert not caught_up(900), "from then on they have something to do"


class Scripted:
    """Replicas that report what the test says."""

    def __init__(self) -> None:
        self.told: Replicas | None = None

    async def introspect(self, _snapshot: Snapshot, relation: str, /) -> Told:
        assert relation in (HYDRATION, FRONTIERS)
        if self.told is None:
            return {}
        return self.told.hydration if relation == HYDRATION else self.told.frontiers


def shape(service: CatalogService) -> tuple[str, int, bool, list[tuple[str, str | None, bool]]]:
    found = cluster(service.newest)
    assert isinstance(found.variant, ManagedCluster)
    replicas = service.newest.replicas_of(found.cluster_id)
    variant = found.variant
    return (
        variant.size,
        variant.replication_factor,
        variant.pending is not None,
        sorted((r.name, r.size, r.pending) for r in replicas),
    )


OLD = ("1", 1, False, [("r1", "1", False)])
NEW = ("2", 2, False, [("r1", "2", False), ("r2", "2", False)])


@pytest.mark.parametrize("on_timeout", list(OnTimeout))
async def test_a_keeper_commits_what_has_caught_up(
    environment: Environment, on_timeout: OnTimeout
) -> None:
    far = environment.clock.now_ms() + 1_000_000
    asked = Reconfiguration(
        target=ManagedTarget(size="2", replication_factor=2),
        started_at_ms=0,
        deadline_ms=far,
        on_timeout=on_timeout,
    )
    service, cluster_id = await reconfiguring(environment, asked)
    before = {r.replica_id for r in service.newest.replicas_of(cluster_id) if r.pending}
    compute = Scripted()
    keeper = ReconfigurationKeeper(service, compute, environment.clock)
    await keeper.look()
    assert shape(service)[2], "nobody has caught up yet"
    compute.told = Replicas(service.newest, cluster_id)
    await keeper.look()
    assert shape(service) == NEW
    after = {r.replica_id for r in service.newest.replicas_of(cluster_id)}
    assert after == before, "replicas that caught up go on running"


@pytest.mark.parametrize(
    ("on_timeout", "expected"), [(OnTimeout.COMMIT, NEW), (OnTimeout.ROLLBACK, OLD)]
)
async def test_a_keeper_does_as_was_said_when_the_time_is_over(
    environment: Environment, on_timeout: OnTimeout, expected: object
) -> None:
    asked = Reconfiguration(
        target=ManagedTarget(size="2", replication_factor=2),
        started_at_ms=0,
        deadline_ms=environment.clock.now_ms() + 500,
        on_timeout=on_timeout,
    )
    service, _ = await reconfiguring(environment, asked)
    keeper = ReconfigurationKeeper(service, Scripted(), environment.clock)
    await keeper.look()
    assert shape(service)[2]
    environment.clock.advance(500)
    await keeper.look()
    assert shape(service) == expected


class Refusing:
    """A catalog that refuses to end reconfigurations of one cluster."""

    def __init__(self, fault: Exception, cluster_id: ClusterId) -> None:
        self._fault = fault
        self._cluster_id = cluster_id
        self.refuses_rollback = False
        # Whether each try was one to commit.
        self.tried: list[bool] = []

    def transact(self, snapshot: Snapshot, ops: Sequence[Any], **said: Any) -> Any:
        (op,) = ops
        assert isinstance(op, FinishReconfigurationOp)
        if op.cluster_id == self._cluster_id:
            commit = op.ending is Ending.COMMITTED
            self.tried.append(commit)
            if commit or self.refuses_rollback:
                raise self._fault
        return transact(snapshot, ops, **said)


REFUSALS = [BrokenCatalog(["two replicas with one name"]), DuplicateObject("there already")]


async def two_reconfiguring(
    environment: Environment, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> tuple[CatalogService, ReconfigurationKeeper, Refusing]:
    """Two clusters whose time is over; the first one's end is refused."""
    asked = pending(on_timeout=OnTimeout.COMMIT, until_ready=False)
    environment.clock.advance(DEADLINE_MS)
    service, cluster_id = await reconfiguring(environment, asked)
    variant = ManagedCluster(size="1", replication_factor=1)
    other = CreateClusterOp(name="other", owner=DEFAULT_ROLE_ID, variant=variant)
    found = (await commit(service, other)).cluster_named("other")
    assert found is not None
    await commit(service, StartReconfigurationOp(cluster_id=found.cluster_id, pending=asked))
    refusing = Refusing(fault, cluster_id)
    monkeypatch.setattr("evertide.controller.append.transact", refusing.transact)
    return service, ReconfigurationKeeper(service, Scripted(), environment.clock), refusing


def sizes(service: CatalogService) -> dict[str, tuple[str, bool]]:
    """Of each cluster that has one, and whether it is to become something else."""
    variants = {c.name: c.variant for c in service.newest.clusters.values()}
    return {
        name: (variant.size, variant.pending is not None)
        for name, variant in variants.items()
        if isinstance(variant, ManagedCluster)
    }


@pytest.mark.parametrize("fault", REFUSALS, ids=lambda fault: type(fault).__name__)
async def test_one_that_cannot_be_committed_is_rolled_back_alone(
    environment: Environment, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, keeper, refusing = await two_reconfiguring(environment, fault, monkeypatch)
    await keeper.look()
    assert sizes(service) == {"c": ("1", False), "other": ("2", False)}
    assert refusing.tried == [True, False]
    ended = {c.name: ended_of(c) for c in service.newest.clusters.values()}
    assert ended["c"] == (Ending.FAILED, str(fault))
    assert ended["other"] == (Ending.COMMITTED, None)


def ended_of(found: Cluster) -> tuple[Ending, str | None] | None:
    """How its last reconfiguration ended, and why so."""
    last = found.variant.ended if isinstance(found.variant, ManagedCluster) else None
    return None if last is None else (last.ending, last.fault)


@pytest.mark.parametrize("fault", REFUSALS, ids=lambda fault: type(fault).__name__)
async def test_one_that_cannot_even_be_rolled_back_is_left_for_a_while(
    environment: Environment, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, keeper, refusing = await two_reconfiguring(environment, fault, monkeypatch)
    refusing.refuses_rollback = True
    now_s = 100.0
    monkeypatch.setattr("evertide.persist.trouble._now_s", lambda: now_s)
    for _ in range(5):
        await keeper.look()
    assert sizes(service) == {"c": ("1", True), "other": ("2", False)}
    assert refusing.tried == [True, False], "not again at once"
    refusing.refuses_rollback = False
    now_s += 10.0
    await keeper.look()
    assert sizes(service)["c"] == ("1", False)
    assert refusing.tried == [True, False, False]


async def test_a_profile_ends_when_its_time_is_over(environment: Environment) -> None:
    service = await environment.serve()
    variant = ManagedCluster(size="1", replication_factor=1)
    snapshot = await commit(
        service, CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant)
    )
    now_ms = environment.clock.now_ms()
    for name, expires_at_ms in (("soon", now_ms + 500), ("never", None)):
        await commit(
            service,
            CreateClusterProfileOp(
                cluster_id=cluster(snapshot).cluster_id,
                name=name,
                owner=DEFAULT_ROLE_ID,
                size="1",
                replication_factor=1,
                expires_at_ms=expires_at_ms,
            ),
        )
    keeper = ExpiryKeeper(service, environment.clock)
    await keeper.end()
    assert len(service.newest.profiles) == 2
    environment.clock.advance(500)
    await keeper.end()
    assert [p.name for p in service.newest.profiles.values()] == ["never"]
    names = {r.name for r in service.newest.replicas.values()}
    assert "never_r1" in names
    assert "soon_r1" not in names
    events: list[AuditEvent] = await service.audit_events(service.newest.catalog_ts)
    ended = [(e.event_type, e.object_type, e.details["reason"], e.user) for e in events[-2:]]
    assert sorted(ended) == [
        ("drop", "cluster-profile", "expired", None),
        ("drop", "cluster-replica", "expired", None),
    ]
