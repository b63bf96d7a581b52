"""A transaction is decided by its snapshot and its ops alone."""

import pytest

from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import AuditEvent, IdAllocator, ManagedCluster, UnmanagedCluster
from evertide.catalog.ops import (
    AllocateIdsOp,
    CreateClusterOp,
    CreateClusterReplicaOp,
    CreateDatabaseOp,
    DropClusterOp,
    DropClusterReplicaOp,
    DropItemsOp,
    NewReplica,
    RenameItemOp,
    SetSystemConfigurationOp,
)
from evertide.catalog.transact import transact
from evertide.vocab.errors import SqlError
from tests.catalog.samples import (
    after,
    create_table,
    create_view,
    ids,
    item,
    new_snapshot,
    populated,
)


def test_the_same_snapshot_and_ops_give_the_same_updates() -> None:
    snapshot = new_snapshot()
    ops = [create_table("a"), create_table("b")]
    first = transact(snapshot, ops, now_ms=7, user="u")
    assert transact(snapshot, ops, now_ms=7, user="u") == first
    assert snapshot == new_snapshot()


def test_item_and_first_version_share_a_number_and_numbers_are_never_used_twice() -> None:
    snapshot = after(new_snapshot(), create_table("a"), create_table("b"))
    assert [i.item_id for i in snapshot.items.values()] == ["u1", "u2"]
    assert [i.global_id for i in snapshot.items.values()] == ["u1", "u2"]
    snapshot = after(snapshot, DropItemsOp(ids(item(snapshot, "b"))))
    snapshot = after(snapshot, create_table("c"))
    assert item(snapshot, "c").item_id == "u3"
    assert item(snapshot, "c").shard_id == "item-u3"
    assert item(snapshot, "c").oid == item(snapshot, "a").oid + 2


def test_allocated_ids_are_reported_and_used_up() -> None:
    snapshot = new_snapshot()
    result = transact(snapshot, [AllocateIdsOp(2)], now_ms=1, user=None)
    assert result.allocated == ("u1", "u2")
    snapshot = after(after(snapshot, AllocateIdsOp(2)), create_table("t"))
    assert item(snapshot, "t").item_id == "u3"


def test_what_comes_and_goes_in_one_transaction_leaves_only_events_and_used_up_ids() -> None:
    snapshot = new_snapshot()
    probe = after(snapshot, create_table("t"))
    drop = DropItemsOp(ids(item(probe, "t")))
    result = transact(snapshot, [create_table("t"), drop], now_ms=1, user="u")
    assert {type(update.object) for update in result.updates} == {AuditEvent, IdAllocator}
    assert result.created_items == ()
    assert result.dropped_items == ()


def test_every_change_writes_its_audit_event_in_the_same_transaction() -> None:
    result = transact(new_snapshot(), [create_table("t")], now_ms=42, user="somebody")
    events = [u.object for u in result.updates if isinstance(u.object, AuditEvent)]
    assert [(e.event_type, e.object_type, e.user, e.occurred_at_ms) for e in events] == [
        ("create", "table", "somebody", 42)
    ]
    details = {"id": "u1", "database": "materialize", "schema": "public", "item": "t"}
    assert events[0].details == details


def test_rename_keeps_the_identity_and_rewrites_dependants() -> None:
    before = populated()
    table, view = item(before, "t"), item(before, "v")
    renamed = RenameItemOp(
        item_id=table.item_id,
        new_name="t2",
        create_sql="CREATE TABLE t2",
        dependants_sql=((view.item_id, "CREATE VIEW v AS SELECT * FROM t2"),),
    )
    snapshot = after(before, renamed)
    assert item(snapshot, "t2").item_id == table.item_id
    assert snapshot.item_named(table.schema_id, "t") is None
    assert item(snapshot, "v").create_sql.endswith("t2")
    assert snapshot.dependants(table.item_id) == [item(snapshot, "v"), item(snapshot, "i")]
    with pytest.raises(SqlError, match="catalog item 'v' already exists"):
        after(snapshot, RenameItemOp(item_id=table.item_id, new_name="v", create_sql=""))


def test_clusters_come_and_go_with_their_replicas() -> None:
    managed = ManagedCluster(size="1", replication_factor=2)
    snapshot = after(
        new_snapshot(),
        CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=managed),
        CreateClusterOp(
            name="by_hand",
            owner=DEFAULT_ROLE_ID,
            variant=UnmanagedCluster(),
            replicas=(NewReplica(name="x", size="2"),),
        ),
    )
    cluster = snapshot.cluster_named("c")
    by_hand = snapshot.cluster_named("by_hand")
    assert cluster is not None
    assert by_hand is not None
    replicas = snapshot.replicas_of(cluster.cluster_id)
    assert [(r.name, r.size) for r in replicas] == [("r1", "1"), ("r2", "1")]
    one_more = CreateClusterReplicaOp(
        cluster_id=by_hand.cluster_id,
        owner=DEFAULT_ROLE_ID,
        replica=NewReplica(name="y", size="4"),
    )
    snapshot = after(snapshot, one_more)
    with pytest.raises(SqlError, match="multiple replicas named 'y' on cluster 'by_hand'"):
        after(snapshot, one_more)
    x = snapshot.replica_named(by_hand.cluster_id, "x")
    assert x is not None
    snapshot = after(
        snapshot, DropClusterReplicaOp(x.replica_id), DropClusterOp(cluster.cluster_id)
    )
    assert [r.name for r in snapshot.replicas.values()] == ["r1", "y"]


def test_a_system_variable_is_set_and_reset() -> None:
    snapshot = after(new_snapshot(), SetSystemConfigurationOp("max_tables", "3"))
    snapshot = after(snapshot, SetSystemConfigurationOp("max_tables", "4"))
    assert snapshot.system_configurations == {"max_tables": "4"}
    snapshot = after(snapshot, SetSystemConfigurationOp("max_tables", None))
    assert snapshot.system_configurations == {}


def test_a_database_comes_with_its_public_schema() -> None:
    snapshot = after(new_snapshot(), CreateDatabaseOp(name="d", owner=DEFAULT_ROLE_ID))
    database = snapshot.database_named("d")
    assert database is not None
    assert snapshot.schema_named(database.database_id, "public") is not None


def test_later_ops_see_earlier_ones() -> None:
    snapshot = new_snapshot()
    probe = after(snapshot, create_table("t"))
    both = after(snapshot, create_table("t"), create_view("v", item(probe, "t")))
    assert both.dependants(item(both, "t").item_id) == [item(both, "v")]
