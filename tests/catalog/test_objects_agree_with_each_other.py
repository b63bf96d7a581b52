"""Doubled names and references to nothing are found, and no transaction leaves one behind."""

import msgspec
import pytest

from evertide.catalog.checks import faults_of
from evertide.catalog.draft import Draft
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.faults import BrokenCatalog
from evertide.catalog.objects import (
    CatalogObject,
    CatalogUpdate,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    Comment,
    Database,
    DefaultPrivilege,
    IdAllocator,
    ObjectKind,
    Role,
    RoleMembership,
    Secret,
    SystemPrivilege,
    UnmanagedCluster,
)
from evertide.catalog.snapshot import Snapshot, all_objects
from evertide.vocab.ids import (
    ClusterId,
    DatabaseId,
    ItemId,
    ProfileId,
    ReplicaId,
    RoleId,
    SchemaId,
)
from tests.catalog.samples import DEFAULT, PUBLIC, item, new_snapshot, populated

NOBODY = RoleId("u99")


def cluster(number: int, name: str, owner: RoleId = DEFAULT_ROLE_ID) -> Cluster:
    return Cluster(
        cluster_id=ClusterId(f"u{number}"), name=name, owner=owner, variant=UnmanagedCluster()
    )


def profile(name: str, cluster_id: ClusterId = DEFAULT) -> ClusterProfile:
    return ClusterProfile(
        profile_id=ProfileId("u5"),
        cluster_id=cluster_id,
        name=name,
        owner=DEFAULT_ROLE_ID,
        size=None,
        replication_factor=None,
    )


def comment(object_id: str, sub_id: int | None = None) -> Comment:
    return Comment(object_kind=ObjectKind.ITEM, object_id=object_id, sub_id=sub_id, comment="c")


REPLICA = ClusterReplica(
    replica_id=ReplicaId("u9"),
    cluster_id=DEFAULT,
    profile_id=ProfileId("u8"),
    name="x",
    size="1",
    owner=DEFAULT_ROLE_ID,
)
SECRET = Secret(
    secret_id=ItemId("u50"), oid=50_000, schema_id=PUBLIC, name="t", owner=DEFAULT_ROLE_ID
)
BROKEN: list[tuple[CatalogObject, str]] = [
    (cluster(7, "default"), "cluster name 'default' is that of cluster u1 and cluster u7"),
    (cluster(7, "c", NOBODY), "cluster u7 refers to role u99, which does not exist"),
    (profile("r1"), "name in cluster 'u1.r1' is that of cluster item u1 and cluster item u5"),
    (
        profile("p", ClusterId("u8")),
        "cluster item u5 refers to cluster u8, which does not exist",
    ),
    (REPLICA, "cluster item u9 refers to cluster item u8, which does not exist"),
    (
        msgspec.structs.replace(REPLICA, profile_id=ProfileId("u1")),
        "cluster item u9 is in cluster item u1, which is no profile",
    ),
    (SECRET, "name in schema 'u1.t' is that of item u1 and secret u50"),
    (
        Database(database_id=DatabaseId("u7"), oid=1, name="materialize", owner=DEFAULT_ROLE_ID),
        "database name 'materialize' is that of database u1 and database u7",
    ),
    (
        Role(role_id=RoleId("u7"), oid=20_001, name="r"),
        "oid '20001' is that of database u1 and role u7",
    ),
    (
        Secret(secret_id=ItemId("u51"), oid=11, schema_id=PUBLIC, name="x", owner=DEFAULT_ROLE_ID),
        "oid '11' is that of schema s2 and secret u51",
    ),
    (comment("u77"), "comment item/u77/- refers to item u77, which does not exist"),
    (comment("u1", 3), "comment item/u1/3 is about a column that does not exist"),
    (
        RoleMembership(role_id=DEFAULT_ROLE_ID, member_id=NOBODY, grantor=DEFAULT_ROLE_ID),
        "role membership u1/u99 refers to role u99, which does not exist",
    ),
    (
        SystemPrivilege(grantee=NOBODY, grantor=DEFAULT_ROLE_ID, privileges="R"),
        "system privilege u99/u1 refers to role u99, which does not exist",
    ),
    (
        DefaultPrivilege(
            role_id=RoleId("p"),
            database_id=None,
            schema_id=SchemaId("u77"),
            object_type="table",
            grantee=RoleId("p"),
            privileges="r",
        ),
        "default privilege p/-/u77/table/p refers to schema u77, which does not exist",
    ),
]


def roomy(snapshot: Snapshot) -> Snapshot:
    """With all numbers below 100000 used up, so that objects may have any of them."""
    allocators = list(snapshot.of_type(IdAllocator))
    raised = [msgspec.structs.replace(each, next_number=100_000) for each in allocators]
    gone = [CatalogUpdate(each, -1) for each in allocators]
    return snapshot.apply([*gone, *(CatalogUpdate(each, 1) for each in raised)], snapshot.upper)


def test_a_catalog_that_ops_made_has_no_fault() -> None:
    assert faults_of(new_snapshot()) == []
    assert faults_of(populated()) == []


@pytest.mark.parametrize(("added", "fault"), BROKEN, ids=[fault for _, fault in BROKEN])
def test_a_fault_is_named_wherever_it_is_met(added: CatalogObject, fault: str) -> None:
    """Goal: a look at the whole catalog and the end of a transaction find the same."""
    snapshot = roomy(populated())
    assert faults_of(snapshot.apply([CatalogUpdate(added, 1)], snapshot.upper)) == [fault]
    draft = Draft(snapshot, now_ms=1, user=None)
    draft.create(added)
    with pytest.raises(BrokenCatalog) as broken:
        draft.updates()
    assert broken.value.faults == (fault,)


def test_what_others_refer_to_cannot_go() -> None:
    snapshot = populated()
    draft = Draft(snapshot, now_ms=1, user=None)
    draft.remove(item(snapshot, "t"))
    with pytest.raises(BrokenCatalog, match="item u2 refers to item u1, which does not exist"):
        draft.updates()


def test_a_removed_object_may_come_back_in_the_same_transaction() -> None:
    snapshot = populated()
    table = item(snapshot, "t")
    draft = Draft(snapshot, now_ms=1, user=None)
    draft.remove(table)
    draft.create(msgspec.structs.replace(table, name="t2"))
    assert [update.diff for update in draft.updates()] == [-1, 1]


def without(snapshot: Snapshot, kind: ObjectKind) -> Snapshot:
    kept = [CatalogUpdate(o, 1) for o in all_objects(snapshot) if o.KIND is not kind]
    return Snapshot().apply(kept, snapshot.upper)


@pytest.mark.parametrize(
    "kind", [ObjectKind.ROLE, ObjectKind.DATABASE, ObjectKind.SCHEMA, ObjectKind.CLUSTER]
)
def test_every_reference_to_a_missing_kind_is_found(kind: ObjectKind) -> None:
    assert any(
        f"refers to {kind.value} " in fault for fault in faults_of(without(populated(), kind))
    )


def test_two_objects_with_one_key_are_refused() -> None:
    snapshot = new_snapshot()
    with pytest.raises(BrokenCatalog, match="two objects with one key"):
        snapshot.apply([CatalogUpdate(cluster(1, "other"), 1)], snapshot.upper)
    with pytest.raises(BrokenCatalog, match="retraction of what is not there"):
        snapshot.apply([CatalogUpdate(cluster(9, "other"), -1)], snapshot.upper)
