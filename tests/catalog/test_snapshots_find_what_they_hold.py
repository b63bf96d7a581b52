"""Indexes of a snapshot say the same as looking at every object."""

import random

import pytest

from evertide.catalog.drop import with_dependants
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import (
    CatalogUpdate,
    Comment,
    ItemKind,
    ObjectKind,
    UnmanagedCluster,
    object_key,
)
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateDatabaseOp,
    CreateSchemaOp,
    DropItemsOp,
    NewReplica,
    Op,
    SetCommentOp,
)
from evertide.catalog.snapshot import Snapshot, all_objects
from evertide.vocab.ids import DatabaseId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.samples import (
    after,
    create_index,
    create_mv,
    create_table,
    create_view,
    new_snapshot,
)


def random_op(snapshot: Snapshot, number: int, chance: random.Random) -> Op:
    items = list(snapshot.items.values())
    relations = [i for i in items if i.kind is not ItemKind.INDEX]
    if not relations or chance.random() < 0.3:
        return create_table(f"t{number}")
    chosen = chance.choice(relations)
    match chance.randrange(7):
        case 0:
            return create_view(f"v{number}", chosen)
        case 1:
            return create_mv(f"m{number}", chosen)
        case 2:
            return create_index(f"i{number}", chosen)
        case 3:
            return DropItemsOp(with_dependants(snapshot, [chosen.item_id]))
        case 4:
            return SetCommentOp(target=object_key(chosen), comment=f"c{number}")
        case 5:
            replicas = (NewReplica(name="a", size="1"), NewReplica(name="b", size="1"))
            variant = UnmanagedCluster()
            return CreateClusterOp(
                name=f"c{number}", owner=DEFAULT_ROLE_ID, variant=variant, replicas=replicas
            )
        case _:
            return CreateDatabaseOp(name=f"d{number}", owner=DEFAULT_ROLE_ID)


def history(seed: int) -> list[Snapshot]:
    chance = random.Random(seed)
    snapshots = [new_snapshot()]
    for number in range(80):
        snapshots.append(after(snapshots[-1], random_op(snapshots[-1], number, chance)))
    return snapshots


def assert_indexes_agree(snapshot: Snapshot) -> None:
    for item in snapshot.items.values():
        assert snapshot.item_named(item.schema_id, item.name) == item
        assert snapshot.item_of(item.global_id) == item
        dependants = [i for i in snapshot.items.values() if item.item_id in i.depends_on]
        assert {i.item_id for i in snapshot.dependants(item.item_id)} == {
            i.item_id for i in dependants
        }
        comments = [c for c in snapshot.of_type(Comment) if c.object_id == item.item_id]
        assert snapshot.comments_on(ObjectKind.ITEM, item.item_id) == comments
    for cluster in snapshot.clusters.values():
        here = cluster.cluster_id
        replicas = {r.name for r in snapshot.replicas.values() if r.cluster_id == here}
        assert {r.name for r in snapshot.replicas_of(here)} == replicas
        items = {i.name for i in snapshot.items.values() if i.cluster_id == here}
        assert {i.name for i in snapshot.items_in_cluster(here)} == items
    for schema in snapshot.schemas.values():
        items = {i.name for i in snapshot.items.values() if i.schema_id == schema.schema_id}
        assert {i.name for i in snapshot.items_in_schema(schema.schema_id)} == items
    for database in snapshot.databases.values():
        schemas = {
            s.name for s in snapshot.schemas.values() if s.database_id == database.database_id
        }
        assert {s.name for s in snapshot.schemas_in(database.database_id)} == schemas


@pytest.mark.parametrize("seed", range(10))
def test_indexes_say_what_a_look_at_every_object_says(seed: int) -> None:
    """Method: random statements; at the end, every snapshot of the way is looked at again."""
    for snapshot in history(seed)[::8]:
        assert_indexes_agree(snapshot)


@pytest.mark.parametrize("seed", range(5))
def test_a_followed_snapshot_equals_one_loaded_at_once(seed: int) -> None:
    followed = history(seed)[-1]
    everything = [CatalogUpdate(found, 1) for found in all_objects(followed)]
    loaded = Snapshot().apply(everything, followed.upper)
    assert loaded == followed
    assert_indexes_agree(loaded)


def test_a_name_in_another_database_is_another_name() -> None:
    snapshot = after(
        new_snapshot(),
        CreateDatabaseOp(name="d", owner=DEFAULT_ROLE_ID),
        CreateSchemaOp(database_id=DatabaseId("u1"), name="s", owner=DEFAULT_ROLE_ID),
    )
    assert snapshot.schema_named(DatabaseId("u1"), "s") is not None
    assert snapshot.schema_named(DatabaseId("u2"), "s") is None
    assert snapshot.schema_named(None, "s") is None


def test_the_upper_of_a_snapshot_moves_without_changes() -> None:
    moved = new_snapshot().apply((), Timestamp(9))
    assert (moved.upper, moved.catalog_ts) == (9, 8)
    assert list(all_objects(moved)) == list(all_objects(new_snapshot()))
