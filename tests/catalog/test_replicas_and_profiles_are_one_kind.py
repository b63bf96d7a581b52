"""Replicas and profiles are variants of one kind of object: one collection, one family of ids."""

import json
from collections.abc import Mapping

import pytest

from evertide.catalog.checks import faults_of
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.durable.codec import (
    CATALOG_VERSION,
    CorruptCatalog,
    decode_object,
    encode_object,
)
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.upgrade.steps import upgraded
from evertide.catalog.objects import (
    AuditEvent,
    CatalogUpdate,
    ClusterProfile,
    ClusterReplica,
    Comment,
    ObjectKind,
    UnmanagedCluster,
)
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateClusterProfileOp,
    CreateClusterReplicaOp,
    NewReplica,
)
from evertide.catalog.snapshot import Snapshot, all_objects
from evertide.vocab.errors import DuplicateObject
from evertide.vocab.ids import ClusterId, ProfileId, ReplicaId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import after, populated
from tests.catalog.test_old_catalogs_become_like_new_ones import new_of

CLUSTER = ClusterId("u2")


def profile(name: str) -> CreateClusterProfileOp:
    return CreateClusterProfileOp(cluster_id=CLUSTER, name=name, owner=DEFAULT_ROLE_ID)


def replica(name: str) -> CreateClusterReplicaOp:
    new = NewReplica(name=name, size="1")
    return CreateClusterReplicaOp(cluster_id=CLUSTER, owner=DEFAULT_ROLE_ID, replica=new)


@pytest.fixture
def mixed() -> Snapshot:
    cluster = CreateClusterOp(name="c", owner=DEFAULT_ROLE_ID, variant=UnmanagedCluster())
    return after(populated(), cluster, replica("a"), profile("p"), replica("b"), profile("q"))


def test_they_have_one_family_of_ids(mixed: Snapshot) -> None:
    names = {item_id: found.name for item_id, found in mixed.cluster_items.items()}
    assert names == {"u1": "r1", "u2": "a", "u3": "p", "u4": "b", "u5": "q"}
    assert mixed.next_numbers["cluster_item"] == 6


def test_each_variant_is_found_by_itself(mixed: Snapshot) -> None:
    assert [r.name for r in mixed.replicas.values()] == ["r1", "a", "b"]
    assert [p.name for p in mixed.profiles.values()] == ["p", "q"]
    assert (len(mixed.replicas), len(mixed.profiles)) == (3, 2)
    assert ReplicaId("u3") not in mixed.replicas
    assert mixed.profiles.get(ProfileId("u2")) is None
    assert mixed.replica_named(CLUSTER, "p") is None
    assert mixed.profile_named(CLUSTER, "a") is None
    assert [r.name for r in mixed.of_type(ClusterReplica)] == ["r1", "a", "b"]
    assert [p.name for p in mixed.profiles_of(CLUSTER)] == ["p", "q"]


def test_they_have_one_namespace(mixed: Snapshot) -> None:
    with pytest.raises(DuplicateObject):
        after(mixed, replica("p"))
    with pytest.raises(DuplicateObject):
        after(mixed, profile("a"))


def test_both_are_stored_as_one_kind_and_come_back(mixed: Snapshot) -> None:
    kept = [o for o in all_objects(mixed) if isinstance(o, ClusterReplica | ClusterProfile)]
    assert len(kept) == 5
    for found in kept:
        row = encode_object(found)
        assert row.kind == "cluster_item"
        assert json.loads(row.key) == {"cluster_item_id": found.cluster_item_id}
        wanted = "replica" if isinstance(found, ClusterReplica) else "profile"
        assert json.loads(row.value)["is"] == wanted
        assert decode_object(row) == found


@pytest.mark.parametrize("tag", [None, "planet"])
def test_a_row_that_does_not_say_which_it_is_is_refused(mixed: Snapshot, tag: str | None) -> None:
    row = encode_object(mixed.replicas[ReplicaId("u2")])
    fields = {name: field for name, field in json.loads(row.value).items() if name != "is"}
    value = json.dumps(fields if tag is None else {**fields, "is": tag})
    with pytest.raises(CorruptCatalog):
        decode_object(row._replace(value=value))


def test_a_field_of_the_other_variant_is_refused(mixed: Snapshot) -> None:
    row = encode_object(mixed.profiles[ProfileId("u3")])
    value = json.dumps({**json.loads(row.value), "internal": True})
    with pytest.raises(CorruptCatalog):
        decode_object(row._replace(value=value))


def stored(kind: str, key: Mapping[str, object], value: Mapping[str, object]) -> StoredRow:
    return StoredRow(kind, json.dumps(key), json.dumps(value))


def of_version_2() -> list[StoredRow]:
    """Five replicas were made and one profile dropped; both families of ids begin with 1."""
    counters = {"cluster_replica": 6, "cluster_profile": 3, "cluster": 3, "audit_event": 9}
    kept = [
        row
        for row in new_of(2)
        if row.kind != "id_allocator" or json.loads(row.key)["name"] not in counters
    ]
    cluster = {"name": "c", "owner": "u1", "variant": {"is": "unmanaged"}}
    owned = {"cluster_id": "u2", "owner": "u1"}
    gone = {"profile_id": "u1", "profile_name": "gone", "cluster_id": "u2"}
    event = {"event_type": "drop", "occurred_at_ms": 1, "user": None}
    renamed = {**event, "event_type": "alter", "object_type": "cluster-profile"}
    made = {**event, "event_type": "create", "object_type": "cluster-replica"}
    in_profile = {"profile_id": "u2", "replica_id": "u5", "logical_size": "1"}
    sizes = {"size": None, "replication_factor": None}
    return [
        *kept,
        *(stored("id_allocator", {"name": n}, {"next_number": k}) for n, k in counters.items()),
        stored("cluster", {"cluster_id": "u2"}, cluster),
        stored(
            "cluster_profile",
            {"profile_id": "u2"},
            {**owned, "name": "p", "billed": False, **sizes},
        ),
        stored(
            "cluster_replica",
            {"replica_id": "u5"},
            {**owned, "name": "a", "size": "1", "profile_id": "u2"},
        ),
        stored(
            "comment",
            {"object_kind": "cluster_profile", "object_id": "u2", "sub_id": None},
            {"comment": "lent"},
        ),
        stored(
            "comment",
            {"object_kind": "cluster_replica", "object_id": "u5", "sub_id": None},
            {"comment": "large"},
        ),
        stored(
            "audit_event",
            {"event_id": 6},
            {**event, "object_type": "cluster-profile", "details": gone},
        ),
        stored(
            "audit_event", {"event_id": 7}, {**renamed, "details": {"id": "u2", "new_name": "p"}}
        ),
        stored("audit_event", {"event_id": 8}, {**made, "details": in_profile}),
    ]


def test_ids_of_an_old_catalog_s_profiles_go_on_after_its_replicas() -> None:
    rows = upgraded(of_version_2(), stored=2, wanted=CATALOG_VERSION)
    objects = [decode_object(row) for row in rows]
    snapshot = Snapshot().apply([CatalogUpdate(found, 1) for found in objects], Timestamp(2))
    assert faults_of(snapshot) == []
    assert {i: found.name for i, found in snapshot.cluster_items.items()} == {
        "u1": "r1",
        "u5": "a",
        "u7": "p",
    }
    assert snapshot.replicas[ReplicaId("u5")].profile_id == "u7"
    assert snapshot.profiles[ProfileId("u7")].billed_as == "unbilled"
    assert snapshot.next_numbers["cluster_item"] == 8
    assert not {"cluster_replica", "cluster_profile"} & snapshot.next_numbers.keys()
    comments = [found for found in objects if isinstance(found, Comment)]
    assert {(c.object_kind, c.object_id, c.comment) for c in comments} == {
        (ObjectKind.CLUSTER_ITEM, "u7", "lent"),
        (ObjectKind.CLUSTER_ITEM, "u5", "large"),
    }


def test_the_audit_log_calls_profiles_by_their_new_ids() -> None:
    """Goal: bills that are made from the log by profile do not take two for one."""
    rows = upgraded(of_version_2(), stored=2, wanted=CATALOG_VERSION)
    objects = [decode_object(row) for row in rows]
    events = {e.event_id: e.details for e in objects if isinstance(e, AuditEvent)}
    assert events[6]["profile_id"] == "u6"
    assert events[7]["id"] == "u7"
    assert (events[8]["profile_id"], events[8]["replica_id"]) == ("u7", "u5")
