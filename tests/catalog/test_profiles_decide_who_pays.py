"""What a customer pays for does not become free unnoticed; events say who pays from when on."""

import pytest

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import (
    UNBILLED,
    AuditEvent,
    ClusterProfile,
    ManagedCluster,
    UnmanagedCluster,
)
from evertide.catalog.ops import (
    AlterClusterProfileOp,
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    DropClusterProfileOp,
    MoveReplicaOp,
    NewReplica,
    Op,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ReplicaId
from tests.catalog.samples import after, new_snapshot


def profile(snapshot: Snapshot, name: str) -> ClusterProfile:
    cluster = snapshot.cluster_named("c")
    assert cluster is not None
    found = snapshot.profile_named(cluster.cluster_id, name)
    assert found is not None
    return found


def replica_id(snapshot: Snapshot, name: str) -> ReplicaId:
    cluster = snapshot.cluster_named("c")
    assert cluster is not None
    found = snapshot.replica_named(cluster.cluster_id, name)
    assert found is not None
    return found.replica_id


@pytest.fixture
def snapshot() -> Snapshot:
    """Cluster c with profiles `paid` (replica a), `lent` (replica b), and a replica `own`."""
    op = CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=UnmanagedCluster())
    found = after(new_snapshot(), op)
    cluster = found.cluster_named("c")
    assert cluster is not None
    own = CreateClusterReplicaOp(
        cluster_id=cluster.cluster_id,
        owner=DEFAULT_ROLE_ID,
        replica=NewReplica(name="own", size="1"),
    )
    profiles = [
        CreateClusterProfileOp(
            cluster_id=cluster.cluster_id,
            name=name,
            owner=DEFAULT_ROLE_ID,
            billed_as=billed_as,
            replicas=(NewReplica(name=replica, size="2"),),
        )
        for name, billed_as, replica in (("paid", None, "a"), ("lent", UNBILLED, "b"))
    ]
    return after(found, own, *profiles)


def move(snapshot: Snapshot, replica: str, target: str | None) -> Op:
    wanted = None if target is None else profile(snapshot, target).profile_id
    return MoveReplicaOp(replica_id=replica_id(snapshot, replica), profile_id=wanted)


def events(snapshot: Snapshot, *ops: Op) -> list[AuditEvent]:
    result = transact(snapshot, ops, now_ms=5_000, user="mz_system")
    return [u.object for u in result.updates if isinstance(u.object, AuditEvent)]


@pytest.mark.parametrize("replica", ["own", "a"])
def test_a_billed_replica_does_not_become_free(snapshot: Snapshot, replica: str) -> None:
    with pytest.raises(SqlError, match=r"^Cannot move billed replica to unbilled profile\.$"):
        after(snapshot, move(snapshot, replica, "lent"))


@pytest.mark.parametrize("target", ["paid", None])
def test_a_lent_replica_may_be_taken_over(snapshot: Snapshot, target: str | None) -> None:
    op = move(snapshot, "b", target)
    (event,) = events(snapshot, op)
    assert (event.event_type, event.object_type) == ("alter", "cluster-replica")
    assert (event.details["billed_as"], event.details["logical_size"]) == (None, "2")
    assert event.details.get("profile_name") == target
    assert replica_id(after(snapshot, op), "b") == replica_id(snapshot, "b")


def test_a_replica_does_not_move_into_what_a_size_decides(snapshot: Snapshot) -> None:
    cluster = snapshot.cluster_named("c")
    assert cluster is not None
    managed = CreateClusterProfileOp(
        cluster_id=cluster.cluster_id,
        name="sized",
        owner=DEFAULT_ROLE_ID,
        size="1",
        replication_factor=1,
    )
    found = after(snapshot, managed)
    with pytest.raises(SqlError, match=r"cannot modify managed profile c\.sized"):
        after(found, move(found, "a", "sized"))
    with pytest.raises(SqlError, match=r"cannot modify managed profile c\.sized"):
        after(found, move(found, "sized_r1", "paid"))


def changed(snapshot: Snapshot, name: str, billed_as: str | None) -> Op:
    return AlterClusterProfileOp(
        profile_id=profile(snapshot, name).profile_id,
        size=None,
        replication_factor=None,
        billed_as=billed_as,
    )


def test_a_profile_with_billed_replicas_does_not_become_free(snapshot: Snapshot) -> None:
    with pytest.raises(SqlError, match="Cannot move billed replica to unbilled profile"):
        after(snapshot, changed(snapshot, "paid", UNBILLED))


def test_replicas_of_a_profile_that_is_paid_from_now_on_say_so(snapshot: Snapshot) -> None:
    found = events(snapshot, changed(snapshot, "lent", None))
    assert [(e.object_type, e.details["billed_as"]) for e in found] == [
        ("cluster-profile", None),
        ("cluster-replica", None),
    ]
    assert found[1].details["replica_name"] == "b"


def test_an_expired_profile_takes_named_replicas_along_and_says_why(snapshot: Snapshot) -> None:
    op = DropClusterProfileOp(profile(snapshot, "lent").profile_id, cascade=True, reason="expired")
    found = events(snapshot, op)
    assert [(e.event_type, e.object_type) for e in found] == [
        ("drop", "cluster-replica"),
        ("drop", "cluster-profile"),
    ]
    assert {e.details["reason"] for e in found} == {"expired"}
    assert found[0].details["billed_as"] == UNBILLED
    assert found[0].details["profile_name"] == "lent"


def test_a_lent_replica_of_a_managed_cluster_names_its_payer() -> None:
    variant = ManagedCluster(size="1", replication_factor=1)
    op = CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant)
    found = after(new_snapshot(), op)
    cluster = found.cluster_named("c")
    assert cluster is not None
    lent = CreateClusterReplicaOp(
        cluster_id=cluster.cluster_id,
        owner=DEFAULT_ROLE_ID,
        replica=NewReplica(name="x", size="8", internal=True, billed_as="free"),
    )
    (event,) = events(found, lent)
    assert event.details == {
        "cluster_id": cluster.cluster_id,
        "cluster_name": "c",
        "replica_id": "u3",
        "replica_name": "x",
        "logical_size": "8",
        "billed_as": "free",
        "internal": True,
        "reason": "manual",
    }
