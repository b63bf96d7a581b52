"""Goal: ALTER SCHEMA ... SWAP WITH gives two schemas each other's name, and nothing else changes:
every definition reads what it read before.

Method: statements over a catalog in memory; each definition's rows before and after.
"""

import pytest

from evertide.catalog.objects import Item
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

VIEWS = {
    "plain": "SELECT a FROM blue.t",
    "starred": "SELECT blue.t.* FROM blue.t",
    "qualified": "SELECT blue.t.a, materialize.green.t.a AS g FROM blue.t, green.t",
    "aliased": "SELECT blue.a FROM green.t AS blue",
    "nested": "WITH t AS (SELECT a FROM green.t) SELECT a FROM t WHERE a IN (TABLE blue.t)",
    "through": "SELECT a FROM blue.v",
    "joined": "SELECT x.a FROM blue.t AS x JOIN green.t ON x.a + 1 = green.t.a",
    "ordered": "SELECT a FROM blue.t GROUP BY blue.t.a ORDER BY blue.t.a LIMIT 1",
}


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE SCHEMA blue; CREATE SCHEMA green;"
        "CREATE TABLE blue.t (a int); CREATE TABLE green.t (a int);"
        "INSERT INTO blue.t VALUES (1); INSERT INTO green.t VALUES (2);"
        "CREATE VIEW blue.v AS SELECT a FROM green.t; CREATE INDEX i ON blue.t (a);"
        "CREATE MATERIALIZED VIEW blue.m AS SELECT a FROM blue.t;"
        "CREATE MATERIALIZED VIEW green.r REPLACING blue.m AS SELECT a FROM blue.t"
    )
    for name, query in VIEWS.items():
        database.run(f"CREATE VIEW public.{name} AS {query}")
    return database


def rows(database: Database) -> dict[str, list[tuple[object, ...]]]:
    return {name: list(database.query(f"SELECT * FROM public.{name}")) for name in VIEWS}


def items(database: Database) -> list[Item]:
    return list(database.snapshot.items.values())


def test_views_read_what_they_read(database: Database) -> None:
    before, ids = rows(database), [(one.item_id, one.schema_id) for one in items(database)]
    database.run("ALTER SCHEMA blue SWAP WITH green")
    assert rows(database) == before
    assert [(one.item_id, one.schema_id) for one in items(database)] == ids
    assert database.query("TABLE blue.t") == [(2,)]
    assert database.query("TABLE green.v") == [(2,)]


def test_texts_name_what_there_is(database: Database) -> None:
    before = {one.item_id: one.create_sql for one in items(database)}
    database.run("ALTER SCHEMA blue SWAP WITH green")
    texts = {one.name: one.create_sql for one in items(database)}
    assert texts["i"] == 'CREATE INDEX i IN CLUSTER "default" ON materialize.green.t (a)'
    assert "materialize.blue.r REPLACING materialize.green.m " in texts["r"]
    assert texts["aliased"].endswith("SELECT blue.a FROM materialize.blue.t AS blue")
    database.run("ALTER SCHEMA green SWAP WITH blue")
    assert {one.item_id: one.create_sql for one in items(database)} == before


def test_with_itself_it_is_nothing(database: Database) -> None:
    before = database.snapshot.items
    database.run("ALTER SCHEMA blue SWAP WITH blue")
    assert database.snapshot.items == before


def test_schemas_of_another_database_are_left_alone(database: Database) -> None:
    database.run("CREATE DATABASE d; CREATE SCHEMA d.blue; CREATE TABLE d.blue.t (a int)")
    database.run(
        "CREATE VIEW public.far AS SELECT a FROM d.blue.t; INSERT INTO d.blue.t VALUES (9)"
    )
    database.run("ALTER SCHEMA blue SWAP WITH green")
    assert database.query("SELECT * FROM public.far") == [(9,)]


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("ALTER SCHEMA blue SWAP WITH nope", "3F000", "unknown schema 'nope'"),
        ("ALTER SCHEMA nope SWAP WITH blue", "3F000", "unknown schema 'nope'"),
        (
            "ALTER SCHEMA blue SWAP WITH mz_catalog",
            "42501",
            "system schema 'mz_catalog' cannot be modified",
        ),
    ],
)
def test_what_cannot_be_swapped_is_told(
    sql: str, code: str, message: str, database: Database
) -> None:
    with pytest.raises(SqlError) as raised:
        database.plan(sql)
    assert (raised.value.code, raised.value.message) == (code, message)
