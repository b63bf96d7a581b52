"""Goal: what edits by hand may have left behind is told by a look at the whole catalog."""

from typing import Final

import msgspec
import pytest

from evertide.catalog.checks import faults_of
from evertide.catalog.draft import Allocator
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import (
    CatalogObject,
    CatalogUpdate,
    Cluster,
    Comment,
    Config,
    IdAllocator,
    IntrospectionSourceIndex,
    Item,
    ManagedCluster,
    ObjectKind,
    Role,
    Schema,
    Setting,
    TimelineTimestamp,
    UnmanagedCluster,
)
from evertide.catalog.references import numbers_of
from evertide.catalog.snapshot import Snapshot, all_objects
from evertide.vocab.ids import ClusterId, GlobalId, RoleId
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.catalog.samples import DEFAULT, item, populated


def cluster(cluster_id: str, name: str = "c") -> Cluster:
    return Cluster(
        cluster_id=ClusterId(cluster_id),
        name=name,
        owner=DEFAULT_ROLE_ID,
        variant=UnmanagedCluster(),
    )


def role(role_id: str, oid: int) -> Role:
    return Role(role_id=RoleId(role_id), oid=oid, name="r")


NONSENSE: Final[list[tuple[CatalogObject, str]]] = [
    (cluster(""), "has the id '', which is not u or s and a number"),
    (cluster("zz"), "has the id 'zz'"),
    (cluster("u01"), "has the id 'u01'"),
    (cluster("u1x"), "has the id 'u1x'"),
    (cluster("s9", ""), "cluster s9 has an empty name"),
    (role("s9", 0), "has the oid 0"),
    (role("s9", -5), "has the oid -5"),
    (role("s9", 2**32), "has the oid 4294967296"),
    (Setting(name="", value="x"), "has an empty name"),
    (Config(name="x", value=-1), "has the value -1"),
    (IdAllocator(name="x", next_number=0), "has the next number 0"),
    (TimelineTimestamp(timeline=Timeline.EPOCH_MS, ts=Timestamp(-1)), "has the timestamp -1"),
    (
        msgspec.structs.replace(
            cluster("s9"), variant=ManagedCluster(size="1", replication_factor=-1)
        ),
        "has the replication factor -1",
    ),
    (
        IntrospectionSourceIndex(cluster_id=DEFAULT, name="x", index_id=GlobalId("u1"), oid=9),
        "has the id 'u1', which is not si and a number",
    ),
    (
        Comment(
            object_kind=ObjectKind.SETTING, object_id="environment_id", sub_id=None, comment=""
        ),
        "must be on one of cluster, ",
    ),
]


def added(snapshot: Snapshot, *objects: CatalogObject) -> Snapshot:
    return snapshot.apply([CatalogUpdate(each, 1) for each in objects], snapshot.upper)


@pytest.mark.parametrize(("odd", "fault"), NONSENSE, ids=[fault for _, fault in NONSENSE])
def test_an_object_that_makes_no_sense_is_told(odd: CatalogObject, fault: str) -> None:
    assert [found for found in faults_of(added(populated(), odd)) if fault in found]


@pytest.mark.parametrize(
    ("taken", "fault"),
    [
        (cluster("u2"), "cluster u2 has the number 2, which id allocator cluster will give again"),
        (role("s9", 50_000), "role s9 has the number 50000, which id allocator oid"),
        (role("u9", 5), "role u9 has the number 9, which id allocator role"),
    ],
)
def test_a_number_that_would_be_given_again_is_told(taken: CatalogObject, fault: str) -> None:
    (found,) = faults_of(added(populated(), taken))
    assert fault in found


def test_an_item_needs_a_version_and_types_that_exist() -> None:
    snapshot = populated()
    table = item(snapshot, "t")
    (version,) = table.versions
    column = msgspec.structs.replace(
        version.columns[0], type=msgspec.structs.replace(version.columns[0].type, kind="planet")
    )
    odd_version = msgspec.structs.replace(version, columns=(column,))
    for versions, fault in (((), "has no version"), ((odd_version,), "of an unknown type")):
        odd = msgspec.structs.replace(table, versions=versions)
        updates = [CatalogUpdate(table, -1), CatalogUpdate(odd, 1)]
        found = faults_of(snapshot.apply(updates, snapshot.upper))
        assert [each for each in found if fault in each]


def test_what_the_system_needs_is_missed() -> None:
    snapshot = populated()
    needed = [
        each
        for each in all_objects(snapshot)
        if (isinstance(each, Setting) or (isinstance(each, Schema) and each.name == "pg_catalog"))
    ]
    gone = snapshot.apply([CatalogUpdate(each, -1) for each in needed], snapshot.upper)
    assert faults_of(gone) == [
        "there is no setting environment_id",
        "there is no system schema pg_catalog",
    ]


def test_every_number_is_of_an_allocator_that_there_is() -> None:
    found = {name for each in all_objects(populated()) for name, _ in numbers_of(each)}
    assert found <= set(Allocator)
    assert {Allocator.OID, Allocator.USER, Allocator.CLUSTER, Allocator.ROLE} <= found
    assert all(len(list(numbers_of(each))) == 3 for each in populated().of_type(Item))
