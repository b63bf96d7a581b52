"""Goal: what a snapshot's items are read as is worked out once, and never for another snapshot."""

import pytest
from msgspec.structs import replace

from evertide.adapter.reading.domain import read_domain
from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int); CREATE TABLE u (a int, b text);"
        "CREATE MATERIALIZED VIEW m AS SELECT a FROM t"
    )
    return database


def item(snapshot: Snapshot, name: str) -> Item:
    (found,) = [item for item in snapshot.items.values() if item.name == name]
    return found


def test_a_collection_is_made_once(database: Database) -> None:
    snapshot = database.snapshot
    first = collection_of(item(snapshot, "m"), snapshot)
    assert first is not None
    assert first.derived is not None
    assert collection_of(item(snapshot, "m"), snapshot) is first


def test_an_item_that_is_not_the_snapshot_s_is_read_as_itself(database: Database) -> None:
    snapshot = database.snapshot
    table = item(snapshot, "t")
    known = collection_of(table, snapshot)
    other = replace(table, versions=item(snapshot, "u").versions)
    found = collection_of(other, snapshot)
    assert known is not None
    assert found is not None
    assert known.desc == table.desc
    assert found.desc == other.desc != table.desc


def test_another_snapshot_has_collections_of_its_own(database: Database) -> None:
    before = database.snapshot
    old = collection_of(item(before, "m"), before)
    near = read_domain([item(before, "t").global_id], before)
    database.run("DROP MATERIALIZED VIEW m; CREATE MATERIALIZED VIEW m AS SELECT a FROM u")
    after = database.snapshot
    new = collection_of(item(after, "m"), after)
    assert old is not None
    assert old.derived is not None
    assert new is not None
    assert new.derived is not None
    assert [i.global_id for i in old.derived.inputs] == [item(before, "t").global_id]
    assert [i.global_id for i in new.derived.inputs] == [item(after, "u").global_id]
    assert {c.global_id for c in near} == {i.global_id for i in before.items.values()}
    now = read_domain([item(after, "t").global_id], after)
    assert {c.global_id for c in now} == {i.global_id for i in after.items.values()}
    assert read_domain([item(after, "u").global_id], after) is now


def test_each_schema_has_a_domain_of_its_own(database: Database) -> None:
    database.run("CREATE SCHEMA s; CREATE TABLE s.x (a int)")
    snapshot = database.snapshot
    t, x = item(snapshot, "t").global_id, item(snapshot, "x").global_id
    assert {c.global_id for c in read_domain([x], snapshot)} == {x}
    others = {i.global_id for i in snapshot.items.values()} - {x}
    assert {c.global_id for c in read_domain([t], snapshot)} == others
    both = read_domain([t, x], snapshot)
    assert {c.global_id for c in both} == {i.global_id for i in snapshot.items.values()}


def test_what_a_session_puts_over_a_snapshot_is_another(database: Database) -> None:
    snapshot = database.snapshot
    asked = []

    def answer() -> int:
        asked.append(1)
        return len(asked)

    assert snapshot.recall("x", answer) == snapshot.recall("x", answer) == 1
    assert snapshot.over((), 7).recall("x", answer) == 2
    assert snapshot.apply((), snapshot.upper).recall("x", answer) == 3
