"""A cluster becomes what is asked for, at once or by pending replicas, and events tell it."""

import msgspec
import pytest

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import (
    AuditEvent,
    Cluster,
    ClusterVariant,
    EndedReconfiguration,
    Ending,
    Introspection,
    ManagedCluster,
    ManagedTarget,
    OnTimeout,
    Reconfiguration,
    UnmanagedCluster,
    VirtualCluster,
)
from evertide.catalog.ops import (
    AlterClusterOp,
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    DropClusterOp,
    FinishReconfigurationOp,
    NewReplica,
    Op,
    RecordReplicaRestartOp,
    StartReconfigurationOp,
    SwapClustersOp,
)
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ItemId, ReplicaId
from tests.catalog.samples import DEFAULT, after, create_index, create_table, item, new_snapshot

TWO_SMALL = ManagedCluster(size="1", replication_factor=2)
LARGER = Reconfiguration(
    target=ManagedTarget(
        size="4", replication_factor=1, introspection=Introspection(interval_ms=None)
    ),
    started_at_ms=2_000,
    deadline_ms=62_000,
    on_timeout=OnTimeout.ROLLBACK,
)


def with_cluster(variant: ClusterVariant = TWO_SMALL) -> Snapshot:
    op = CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=variant)
    return after(new_snapshot(), op)


def cluster(snapshot: Snapshot, name: str = "c") -> Cluster:
    found = snapshot.cluster_named(name)
    assert found is not None
    return found


def replicas(snapshot: Snapshot) -> dict[str, tuple[ReplicaId, str | None]]:
    found = snapshot.replicas_of(cluster(snapshot).cluster_id)
    return {replica.name: (replica.replica_id, replica.size) for replica in found}


def alter(snapshot: Snapshot, variant: ClusterVariant, workload: str | None = None) -> Op:
    return AlterClusterOp(
        cluster_id=cluster(snapshot).cluster_id, variant=variant, workload_class=workload
    )


def start(snapshot: Snapshot) -> Op:
    return StartReconfigurationOp(cluster_id=cluster(snapshot).cluster_id, pending=LARGER)


def ending(*, commit: bool) -> Ending:
    return Ending.COMMITTED if commit else Ending.TIMED_OUT


def ended(how: Ending) -> EndedReconfiguration:
    """By whoever runs the ops of these tests."""
    return EndedReconfiguration(
        target=LARGER.target, started_at_ms=LARGER.started_at_ms, ending=how, user="materialize"
    )


def finish(snapshot: Snapshot, *, commit: bool, pending: Reconfiguration = LARGER) -> Op:
    return FinishReconfigurationOp(
        cluster_id=cluster(snapshot).cluster_id, pending=pending, ending=ending(commit=commit)
    )


def events(snapshot: Snapshot, *ops: Op, user: str | None = "joe") -> list[AuditEvent]:
    result = transact(snapshot, ops, now_ms=5_000, user=user)
    return [u.object for u in result.updates if isinstance(u.object, AuditEvent)]


def test_replicas_that_still_fit_go_on_running() -> None:
    before = with_cluster()
    snapshot = after(before, alter(before, ManagedCluster(size="1", replication_factor=3)))
    assert list(replicas(snapshot)) == ["r1", "r2", "r3"]
    assert replicas(snapshot)["r1"] == replicas(before)["r1"]
    fewer = after(snapshot, alter(snapshot, ManagedCluster(size="1", replication_factor=0)))
    assert replicas(fewer) == {}


def test_replicas_of_another_size_are_made_anew() -> None:
    before = with_cluster()
    snapshot = after(before, alter(before, ManagedCluster(size="2", replication_factor=2)))
    assert {size for _, size in replicas(snapshot).values()} == {"2"}
    assert not set(replicas(snapshot).values()) & set(replicas(before).values())


def test_how_closely_replicas_are_watched_changes_without_new_ones() -> None:
    before = with_cluster()
    closely = Introspection(interval_ms=500, debugging=True)
    wanted = ManagedCluster(size="1", replication_factor=2, introspection=closely)
    snapshot = after(before, alter(before, wanted))
    assert replicas(snapshot) == replicas(before)
    found = snapshot.replicas_of(cluster(snapshot).cluster_id)
    assert {replica.introspection for replica in found} == {closely}


def test_a_virtual_cluster_gets_replicas_of_its_own_and_gives_them_back() -> None:
    virtual = with_cluster(VirtualCluster())
    managed = after(virtual, alter(virtual, TWO_SMALL))
    assert [size for _, size in replicas(managed).values()] == ["1", "1"]
    again = after(managed, alter(managed, VirtualCluster()))
    assert [size for _, size in replicas(again).values()] == [None]


def test_replicas_stay_when_their_cluster_is_no_longer_managed() -> None:
    before = with_cluster()
    snapshot = after(before, alter(before, UnmanagedCluster()))
    assert replicas(snapshot) == replicas(before)
    assert replicas(after(snapshot, alter(snapshot, TWO_SMALL))) == replicas(before)


def test_lent_replicas_are_none_of_the_managed_ones() -> None:
    before = with_cluster()
    lent = CreateClusterReplicaOp(
        cluster_id=cluster(before).cluster_id,
        owner=DEFAULT_ROLE_ID,
        replica=NewReplica(name="lent", size="8", internal=True, billed_as="free"),
    )
    snapshot = after(before, lent)
    none = after(snapshot, alter(snapshot, ManagedCluster(size="1", replication_factor=0)))
    assert list(replicas(none)) == ["lent"]
    with pytest.raises(SqlError, match="it has profiles or internal replicas"):
        after(snapshot, alter(snapshot, VirtualCluster()))


def test_a_reconfiguration_leaves_the_old_replicas_for_now() -> None:
    before = with_cluster()
    snapshot = after(before, start(before))
    assert list(replicas(snapshot)) == ["r1", "r1-pending", "r2"]
    assert replicas(snapshot)["r1"] == replicas(before)["r1"]
    variant = cluster(snapshot).variant
    assert isinstance(variant, ManagedCluster)
    assert (variant.size, variant.pending) == ("1", LARGER)


def test_one_change_of_shape_at_a_time() -> None:
    snapshot = with_cluster()
    snapshot = after(snapshot, start(snapshot))
    for op in (alter(snapshot, TWO_SMALL), alter(snapshot, VirtualCluster()), start(snapshot)):
        with pytest.raises(SqlError, match="cannot alter cluster c with pending updates") as error:
            after(snapshot, op)
        assert error.value.code == "55006"


def test_a_committed_reconfiguration_keeps_the_very_replicas_that_caught_up() -> None:
    snapshot = with_cluster()
    waiting = after(snapshot, start(snapshot))
    done = after(waiting, finish(waiting, commit=True))
    assert replicas(done) == {"r1": replicas(waiting)["r1-pending"]}
    assert not any(r.pending for r in done.replicas_of(cluster(done).cluster_id))
    assert cluster(done).variant == ManagedCluster(
        size="4",
        replication_factor=1,
        introspection=LARGER.target.introspection,
        ended=ended(Ending.COMMITTED),
    )


def test_a_rolled_back_reconfiguration_leaves_nothing() -> None:
    before = with_cluster()
    waiting = after(before, start(before))
    done = after(waiting, finish(waiting, commit=False))
    assert replicas(done) == replicas(before)
    variant = msgspec.structs.replace(TWO_SMALL, ended=ended(Ending.TIMED_OUT))
    assert cluster(done) == msgspec.structs.replace(cluster(before), variant=variant)


def test_how_the_last_one_ended_is_kept_whatever_the_cluster_becomes() -> None:
    before = with_cluster()
    waiting = after(before, start(before))
    failed = FinishReconfigurationOp(
        cluster_id=cluster(before).cluster_id, pending=LARGER, ending=Ending.FAILED, fault="no room"
    )
    (event, *_) = events(waiting, failed, user=None)
    assert (event.details["ending"], event.details["fault"]) == ("failed", "no room")
    done = after(waiting, failed)
    wanted = msgspec.structs.replace(ended(Ending.FAILED), fault="no room")
    for variant in (ManagedCluster(size="1", replication_factor=3), TWO_SMALL):
        done = after(done, alter(done, variant))
        assert cluster(done).variant == msgspec.structs.replace(variant, ended=wanted)


def test_whoever_comes_second_to_finish_changes_nothing() -> None:
    snapshot = with_cluster()
    waiting = after(snapshot, start(snapshot))
    done = after(waiting, finish(waiting, commit=True))
    assert transact(done, [finish(waiting, commit=False)], now_ms=1, user=None).updates == ()
    gone = after(waiting, DropClusterOp(cluster(waiting).cluster_id))
    assert transact(gone, [finish(waiting, commit=True)], now_ms=1, user=None).updates == ()
    another = Reconfiguration(
        target=LARGER.target, started_at_ms=9, deadline_ms=9, on_timeout=OnTimeout.COMMIT
    )
    late = finish(waiting, commit=True, pending=another)
    assert transact(waiting, [late], now_ms=1, user=None).updates == ()


def test_events_of_a_reconfiguration_say_why_and_what_it_costs() -> None:
    snapshot = with_cluster()
    started = events(snapshot, start(snapshot))
    assert [(e.event_type, e.object_type, e.user) for e in started] == [
        ("alter", "cluster", "joe"),
        ("create", "cluster-replica", "joe"),
    ]
    assert started[0].details["pending_size"] == "4"
    assert started[1].details["logical_size"] == "4"
    waiting = after(snapshot, start(snapshot))
    finished = events(waiting, finish(waiting, commit=True), user=None)
    told = [(e.event_type, e.details.get("replica_name")) for e in finished]
    assert told == [("alter", None), ("drop", "r1"), ("drop", "r2"), ("alter", "r1")]
    assert {e.details["reason"] for e in (*started, *finished)} == {"reconfiguration"}


def test_a_restart_is_told_and_changes_nothing_else() -> None:
    snapshot = with_cluster()
    replica_id, _ = replicas(snapshot)["r1"]
    op = RecordReplicaRestartOp(replica_id=replica_id, reason="killed by signal 9")
    (event,) = events(snapshot, op, user=None)
    assert (event.event_type, event.object_type) == ("restart", "cluster-replica")
    assert (event.details["reason"], event.details["logical_size"]) == ("killed by signal 9", "1")
    assert replicas(after(snapshot, op)) == replicas(snapshot)


def test_swapped_clusters_keep_what_they_run() -> None:
    snapshot = after(with_cluster(), create_table("t"))
    snapshot = after(snapshot, create_index("i", item(snapshot, "t")))
    index = item(snapshot, "i")
    text = index.create_sql.replace('"default"', '"c"')
    op = SwapClustersOp(
        cluster_id=DEFAULT,
        other_id=cluster(snapshot).cluster_id,
        items_sql=((ItemId(index.item_id), text),),
    )
    swapped = after(snapshot, op)
    assert cluster(swapped, "c").cluster_id == DEFAULT
    assert cluster(swapped, "default").cluster_id == cluster(snapshot).cluster_id
    assert item(swapped, "i").create_sql == text
    assert item(swapped, "i").cluster_id == DEFAULT
    names = [(e.details["old_name"], e.details["new_name"]) for e in events(snapshot, op)]
    assert names == [("default", "c"), ("c", "default")]


def test_a_derived_replica_makes_way_for_one_that_is_named() -> None:
    before = with_cluster()
    named = CreateClusterProfileOp(
        cluster_id=cluster(before).cluster_id,
        name="p1",
        owner=DEFAULT_ROLE_ID,
        replicas=(NewReplica(name="r1", size="large"),),
    )
    snapshot = after(before, named)
    assert {name: size for name, (_, size) in replicas(snapshot).items()} == {
        "default_r1": "1",
        "r1": "large",
        "r2": "1",
    }
    assert replicas(snapshot)["default_r1"] == replicas(before)["r1"]
    more = after(snapshot, alter(snapshot, ManagedCluster(size="1", replication_factor=3)))
    assert list(replicas(more)) == ["default_r1", "r1", "r2", "r3"]
    assert replicas(more)["default_r1"] == replicas(before)["r1"]
    anew = after(snapshot, alter(snapshot, ManagedCluster(size="2", replication_factor=1)))
    assert {n: s for n, (_, s) in replicas(anew).items()} == {"default_r1": "2", "r1": "large"}


def named_by_somebody(snapshot: Snapshot, which: str) -> list[Op]:
    cluster_id = cluster(snapshot).cluster_id
    lent = [
        CreateClusterReplicaOp(
            cluster_id=cluster_id,
            owner=DEFAULT_ROLE_ID,
            replica=NewReplica(name=name, size="8", internal=True),
        )
        for name in (("r3", "default_r3") if which == "two internal replicas" else ("r3",))
    ]
    if "internal" in which:
        return [*lent]
    named = CreateClusterProfileOp(
        cluster_id=cluster_id,
        name="r3" if which == "a profile" else "p",
        owner=DEFAULT_ROLE_ID,
        replicas=() if which == "a profile" else (NewReplica(name="r1", size="8"),),
    )
    return [named]


@pytest.mark.parametrize("first", [True, False], ids=["before", "meanwhile"])
@pytest.mark.parametrize(
    ("which", "names"),
    [
        ("an internal replica", {"r1", "r2", "default_r3"}),
        ("two internal replicas", {"r1", "r2", "r4"}),
        ("a profile", {"r1", "r2", "default_r3"}),
        ("a profile's replica", {"default_r1", "r2", "r3"}),
    ],
)
def test_new_replicas_take_names_that_are_free(which: str, names: set[str], first: bool) -> None:
    snapshot = with_cluster()
    target = ManagedTarget(size="4", replication_factor=3)
    three = msgspec.structs.replace(LARGER, target=target)
    if first:
        snapshot = after(snapshot, *named_by_somebody(snapshot, which))
    begin = StartReconfigurationOp(cluster_id=cluster(snapshot).cluster_id, pending=three)
    snapshot = after(snapshot, begin)
    if not first:
        snapshot = after(snapshot, *named_by_somebody(snapshot, which))
    waiting = {
        replica_id
        for name, (replica_id, _) in replicas(snapshot).items()
        if name.endswith("-pending")
    }
    others = {n: r for n, r in replicas(snapshot).items() if r[1] == "8"}
    done = after(snapshot, finish(snapshot, commit=True, pending=three))
    assert {name for name, (_, size) in replicas(done).items() if size == "4"} == names
    assert {replica_id for replica_id, size in replicas(done).values() if size == "4"} == waiting
    assert {n: r for n, r in replicas(done).items() if r[1] == "8"} == others
