"""A managed profile has exactly the replicas that its properties say; others have those named."""

import pytest

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import (
    UNBILLED,
    AuditEvent,
    Cluster,
    ClusterProfile,
    Introspection,
    IntrospectionSourceIndex,
    ManagedCluster,
    UnmanagedCluster,
    object_key,
)
from evertide.catalog.ops import (
    AlterClusterProfileOp,
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    DropClusterOp,
    DropClusterProfileOp,
    DropClusterReplicaOp,
    NewReplica,
    Op,
    RenameObjectOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.controller.orchestrator import wanted_processes
from evertide.vocab.errors import SqlError
from tests.catalog.samples import DEFAULT, after, new_snapshot


def cluster(snapshot: Snapshot) -> Cluster:
    found = snapshot.cluster_named("c")
    assert found is not None
    return found


def profile(snapshot: Snapshot, name: str = "support") -> ClusterProfile:
    found = snapshot.profile_named(cluster(snapshot).cluster_id, name)
    assert found is not None
    return found


def replicas(snapshot: Snapshot) -> list[tuple[str, str | None]]:
    return [(r.name, r.size) for r in snapshot.replicas_of(cluster(snapshot).cluster_id)]


def with_cluster() -> Snapshot:
    variant = ManagedCluster(size="1", replication_factor=1)
    return after(new_snapshot(), CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant))


def create(
    snapshot: Snapshot,
    name: str = "support",
    *,
    size: str | None = "2",
    replication_factor: int | None = 2,
    replicas: tuple[NewReplica, ...] = (),
) -> Op:
    return CreateClusterProfileOp(
        cluster_id=cluster(snapshot).cluster_id,
        name=name,
        owner=DEFAULT_ROLE_ID,
        size=size,
        replication_factor=replication_factor,
        billed_as=UNBILLED,
        replicas=replicas,
    )


@pytest.fixture
def managed() -> Snapshot:
    snapshot = with_cluster()
    return after(snapshot, create(snapshot))


@pytest.fixture
def unmanaged() -> Snapshot:
    snapshot = with_cluster()
    named = (NewReplica(name="big", size="3xlarge"),)
    op = create(snapshot, size=None, replication_factor=None, replicas=named)
    return after(snapshot, op)


def test_a_managed_profile_makes_replicas_beside_those_of_its_cluster(managed: Snapshot) -> None:
    assert replicas(managed) == [("r1", "1"), ("support_r1", "2"), ("support_r2", "2")]


def test_replicas_that_still_fit_survive_a_change(managed: Snapshot) -> None:
    first = managed.replica_named(cluster(managed).cluster_id, "support_r1")
    fewer = AlterClusterProfileOp(
        profile_id=profile(managed).profile_id, size="2", replication_factor=1, billed_as=UNBILLED
    )
    snapshot = after(managed, fewer)
    assert replicas(snapshot) == [("r1", "1"), ("support_r1", "2")]
    assert snapshot.replica_named(cluster(snapshot).cluster_id, "support_r1") == first


def test_replicas_of_a_profile_are_watched_as_it_says(managed: Snapshot) -> None:
    """Goal: another interval is acted on, and is not worth a new replica."""
    seldom = Introspection(interval_ms=60_000)
    op = AlterClusterProfileOp(
        profile_id=profile(managed).profile_id,
        size="2",
        replication_factor=2,
        billed_as=UNBILLED,
        introspection=seldom,
    )
    snapshot = after(managed, op)
    assert snapshot.replicas.keys() == managed.replicas.keys()
    found = {r.name: r.introspection for r in snapshot.replicas_of(cluster(snapshot).cluster_id)}
    assert found == {"r1": Introspection(), "support_r1": seldom, "support_r2": seldom}
    specs = wanted_processes(snapshot).values()
    assert [s.introspection for s in specs] == [None, Introspection(), seldom, seldom]


def test_replicas_of_another_size_are_made_anew(managed: Snapshot) -> None:
    larger = AlterClusterProfileOp(
        profile_id=profile(managed).profile_id, size="4", replication_factor=3, billed_as=None
    )
    snapshot = after(managed, larger)
    assert replicas(snapshot) == [("r1", "1"), *((f"support_r{n}", "4") for n in (1, 2, 3))]
    assert profile(snapshot).billed_as is None


def test_a_managed_profile_takes_its_replicas_along(managed: Snapshot) -> None:
    snapshot = after(managed, DropClusterProfileOp(profile(managed).profile_id))
    assert replicas(snapshot) == [("r1", "1")]
    assert not snapshot.profiles


def test_an_unmanaged_profile_goes_after_its_replicas(unmanaged: Snapshot) -> None:
    drop = DropClusterProfileOp(profile(unmanaged).profile_id)
    with pytest.raises(SqlError, match=r"Cluster profile c\.support has objects") as refused:
        after(unmanaged, drop)
    assert refused.value.code == "2BP01"
    big = unmanaged.replica_named(cluster(unmanaged).cluster_id, "big")
    assert big is not None
    assert replicas(after(unmanaged, DropClusterReplicaOp(big.replica_id), drop)) == [("r1", "1")]


def test_a_replica_is_added_to_an_unmanaged_profile_of_a_managed_cluster(
    unmanaged: Snapshot,
) -> None:
    op = CreateClusterReplicaOp(
        cluster_id=cluster(unmanaged).cluster_id,
        owner=DEFAULT_ROLE_ID,
        replica=NewReplica(name="more", size="2"),
        profile_id=profile(unmanaged).profile_id,
    )
    snapshot = after(unmanaged, op)
    more = snapshot.replica_named(cluster(snapshot).cluster_id, "more")
    assert more is not None
    assert more.profile_id == profile(snapshot).profile_id


def test_a_renamed_managed_profile_renames_its_replicas(managed: Snapshot) -> None:
    op = RenameObjectOp(target=object_key(profile(managed)), new_name="help")
    names = [name for name, _ in replicas(after(managed, op))]
    assert names == ["help_r1", "help_r2", "r1"]


def test_a_dropped_cluster_takes_profiles_and_reports_along(managed: Snapshot) -> None:
    snapshot = after(managed, DropClusterOp(cluster(managed).cluster_id))
    assert not snapshot.profiles
    assert {i.cluster_id for i in snapshot.of_type(IntrospectionSourceIndex)} == {DEFAULT}


def test_events_say_that_replicas_are_unbilled() -> None:
    snapshot = with_cluster()
    result = transact(snapshot, [create(snapshot)], now_ms=1, user="mz_system")
    events = [u.object for u in result.updates if isinstance(u.object, AuditEvent)]
    assert [(e.object_type, e.details["billed_as"]) for e in events] == [
        ("cluster-profile", "unbilled"),
        ("cluster-replica", "unbilled"),
        ("cluster-replica", "unbilled"),
    ]


@pytest.mark.parametrize(("user", "reason"), [("materialize", "manual"), (None, "system")])
def test_events_say_who_wanted_replicas(user: str | None, reason: str) -> None:
    cluster_op = CreateClusterOp(
        name="asked",
        owner=DEFAULT_ROLE_ID,
        variant=ManagedCluster(size="1", replication_factor=1),
    )
    snapshot = with_cluster()
    drop = DropClusterOp(cluster(snapshot).cluster_id)
    result = transact(snapshot, [cluster_op, create(snapshot), drop], now_ms=1, user=user)
    events = [u.object for u in result.updates if isinstance(u.object, AuditEvent)]
    replica_events = [e for e in events if e.object_type == "cluster-replica"]
    assert {e.event_type for e in replica_events} == {"create", "drop"}
    assert {e.details["reason"] for e in replica_events} == {reason}


def test_a_profile_that_cannot_be_is_refused() -> None:
    snapshot = with_cluster()
    with pytest.raises(SqlError, match=r"cluster profile 'c\.r1' already exists"):
        after(snapshot, create(snapshot, "r1"))
    with pytest.raises(SqlError, match="both SIZE and REPLICATION FACTOR, or neither"):
        after(snapshot, create(snapshot, replication_factor=None))


def test_a_virtual_cluster_has_no_profiles() -> None:
    op = CreateClusterProfileOp(cluster_id=DEFAULT, name="p", owner=DEFAULT_ROLE_ID)
    with pytest.raises(SqlError, match="cannot modify virtual cluster default"):
        after(new_snapshot(), op)


def test_an_unmanaged_cluster_has_only_the_replicas_that_were_named() -> None:
    op = CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=UnmanagedCluster())
    assert replicas(after(new_snapshot(), op)) == []
