"""Nothing is left that names something dropped."""

import pytest

from evertide.catalog.drop import with_dependants, without_cascade
from evertide.catalog.ops import DropClusterOp, DropDatabaseOp, DropItemsOp, DropSchemaOp
from evertide.vocab.errors import DependentObjectsStillExist
from evertide.vocab.ids import DatabaseId
from tests.catalog.samples import DEFAULT, PUBLIC, after, create_index, ids, item, populated


def test_a_drop_is_refused_while_a_view_depends_on_it() -> None:
    snapshot = populated()
    with pytest.raises(DependentObjectsStillExist) as refused:
        without_cascade(snapshot, ids(item(snapshot, "t")))
    assert refused.value.message == 'cannot drop table "t": still depended upon by view "v"'
    assert refused.value.detail == 'view "v" depends on table "t"'
    assert refused.value.hint == "Use DROP ... CASCADE to drop the dependent objects too."


def test_indexes_go_with_their_relation_without_cascade() -> None:
    snapshot = populated()
    snapshot = after(snapshot, create_index("mi", item(snapshot, "m")))
    going = without_cascade(snapshot, ids(item(snapshot, "m")))
    assert going == ids(item(snapshot, "mi"), item(snapshot, "m"))
    assert {i.name for i in after(snapshot, DropItemsOp(going)).items.values()} == {"t", "v", "i"}


def test_several_named_in_one_statement_do_not_block_one_another() -> None:
    snapshot = populated()
    named = ids(item(snapshot, "t"), item(snapshot, "v"), item(snapshot, "m"))
    assert set(without_cascade(snapshot, named)) == {*named, item(snapshot, "i").item_id}


def test_cascade_takes_everything_above_dependants_first() -> None:
    snapshot = populated()
    going = with_dependants(snapshot, ids(item(snapshot, "t")))
    assert [snapshot.items[i].name for i in going] == ["m", "v", "i", "t"]
    assert not after(snapshot, DropItemsOp(going)).items


def test_the_transaction_itself_refuses_a_closure_that_a_racing_writer_made_incomplete() -> None:
    snapshot = populated()
    going = with_dependants(snapshot, ids(item(snapshot, "v")))
    snapshot = after(snapshot, create_index("late", item(snapshot, "v")))
    with pytest.raises(DependentObjectsStillExist, match=r'view "v": .* by index "late"'):
        after(snapshot, DropItemsOp(going))


def test_containers_are_refused_while_they_hold_something() -> None:
    snapshot = populated()
    with pytest.raises(DependentObjectsStillExist, match=r"schema 'materialize\.public' cannot"):
        after(snapshot, DropSchemaOp(PUBLIC))
    with pytest.raises(DependentObjectsStillExist, match="while it contains schemas"):
        after(snapshot, DropDatabaseOp(DatabaseId("u1")))
    with pytest.raises(DependentObjectsStillExist) as refused:
        after(snapshot, DropClusterOp(DEFAULT))
    expected = 'cannot drop cluster "default" because other objects depend on it'
    assert refused.value.message == expected
    everything = DropItemsOp(tuple(snapshot.items))
    emptied = after(
        snapshot,
        everything,
        DropSchemaOp(PUBLIC),
        DropDatabaseOp(DatabaseId("u1")),
        DropClusterOp(DEFAULT),
    )
    assert not emptied.databases
    assert not emptied.replicas


def test_stored_inputs_look_through_views() -> None:
    snapshot = populated()
    inputs = snapshot.stored_inputs(item(snapshot, "m").depends_on)
    assert inputs == [item(snapshot, "t")]
