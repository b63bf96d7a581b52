"""Goal: ALTER ... SET SCHEMA puts an object into another schema, with its indexes, and changes
nothing else: every definition reads what it read before.

Method: statements over a catalog in memory; each definition's rows before and after.
"""

import msgspec
import pytest

from evertide.catalog.objects import AuditEvent, CatalogUpdate, Item
from evertide.catalog.transact import transact
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.roles.plans import RolePlan
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database

VIEWS = {
    "plain": "SELECT a FROM t",
    "starred": "SELECT public.t.* FROM t",
    "qualified": "SELECT public.t.a, materialize.public.t.a AS b, t.a AS c FROM t",
    "two": "SELECT public.t.a, other.t.a AS b FROM public.t, other.t",
    "aliased": "SELECT public.a FROM other.t AS public",
    "shadowed": "WITH t AS (SELECT a + 1 AS a FROM public.t) SELECT t.a FROM t, public.t AS u",
    "nested": "SELECT a FROM other.t WHERE EXISTS (SELECT FROM public.t WHERE t.a < other.t.a)",
    "through": "SELECT a FROM m",
    "typed": "SELECT a::nums::text AS a FROM p",
}


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE SCHEMA other; CREATE SCHEMA s; CREATE TYPE nums AS LIST (ELEMENT TYPE = int4);"
        "CREATE TABLE t (a int); CREATE TABLE other.t (a int); CREATE TABLE p (a nums);"
        "INSERT INTO t VALUES (1); INSERT INTO other.t VALUES (2);"
        "INSERT INTO p VALUES ('{1,2}'); CREATE INDEX i ON t (a);"
        "CREATE MATERIALIZED VIEW m AS SELECT a FROM t; CREATE INDEX j ON m (a);"
        "CREATE MATERIALIZED VIEW r REPLACING m AS SELECT a FROM t"
    )
    for name, query in VIEWS.items():
        database.run(f"CREATE VIEW other.{name} AS {query}")
    return database


def rows(database: Database) -> dict[str, list[tuple[object, ...]]]:
    return {name: list(database.query(f"SELECT * FROM other.{name}")) for name in VIEWS}


def named(database: Database, name: str) -> Item:
    return next(one for one in database.snapshot.items.values() if one.name == name)


def place(database: Database, name: str) -> str:
    return database.snapshot.schemas[named(database, name).schema_id].name


def test_views_read_what_they_read(database: Database) -> None:
    before = rows(database)
    texts = {one.item_id: one.create_sql for one in database.snapshot.items.values()}
    moves = ("TABLE {}.t", "MATERIALIZED VIEW {}.m", "TYPE {}.nums", "TABLE {}.p")
    for move in moves:
        database.run(f"ALTER {move.format('public')} SET SCHEMA s")
    assert rows(database) == before
    assert database.query("TABLE s.t") == [(1,)]
    for move in reversed(moves):
        database.run(f"ALTER {move.format('s')} SET SCHEMA public")
    assert {one.item_id: one.create_sql for one in database.snapshot.items.values()} == texts


def test_indexes_go_with_their_relation(database: Database) -> None:
    database.run("ALTER TABLE t SET SCHEMA s; ALTER MATERIALIZED VIEW m SET SCHEMA s")
    assert (place(database, "i"), place(database, "j")) == ("s", "s")
    assert (
        named(database, "i").create_sql
        == 'CREATE INDEX i IN CLUSTER "default" ON materialize.s.t (a)'
    )
    # What is staged for a view is an object of its own, and goes on replacing it.
    assert place(database, "r") == "public"
    assert "materialize.public.r REPLACING materialize.s.m " in named(database, "r").create_sql


def test_an_index_that_comes_back_is_where_its_relation_went(database: Database) -> None:
    database.run("DROP INDEX i; ALTER TABLE t SET SCHEMA s; UNDROP INDEX i")
    assert place(database, "i") == "s"
    database.run("DROP TABLE s.t CASCADE; UNDROP TABLE s.t")
    assert place(database, "i") == "s"
    database.run("ALTER TABLE s.t SET SCHEMA public")
    assert place(database, "i") == "public"


def test_an_index_that_is_there_already_stays(database: Database) -> None:
    index, schema = named(database, "i"), database.snapshot.schemas[named(database, "t").schema_id]
    database.run("ALTER TABLE t SET SCHEMA s")
    # As it was left when indexes that came back did so where they had been.
    moved = named(database, "i")
    left = msgspec.structs.replace(moved, schema_id=schema.schema_id)
    updates = [CatalogUpdate(moved, -1), CatalogUpdate(left, 1)]
    upper = Timestamp(database.snapshot.upper + 1)
    database.snapshot = database.snapshot.apply(updates, upper)
    database.run("ALTER TABLE s.t SET SCHEMA public")
    assert named(database, "i") == index


def test_names_of_the_old_place_are_gone(database: Database) -> None:
    database.run("ALTER VIEW other.plain SET SCHEMA s")
    with pytest.raises(SqlError, match=r"unknown catalog item 'other.plain'"):
        database.plan("SELECT * FROM other.plain")
    assert database.query("SELECT * FROM s.plain") == [(1,)]


def test_secrets_move(database: Database) -> None:
    database.run("CREATE SECRET k AS 'x'; ALTER SECRET k SET SCHEMA s; ALTER SECRET s.k AS 'y'")
    (secret,) = database.snapshot.secrets.values()
    assert database.snapshot.schemas[secret.schema_id].name == "s"
    # Types do not share their names with secrets.
    database.run("CREATE TYPE k AS LIST (ELEMENT TYPE = int4); ALTER TYPE k SET SCHEMA s")
    assert place(database, "k") == "s"


def test_where_it_is_already_nothing_happens(database: Database) -> None:
    plan = database.plan("ALTER TABLE t SET SCHEMA public")
    assert isinstance(plan, RolePlan)
    assert plan.ops == ()


def test_what_is_not_there_may_be_skipped(database: Database) -> None:
    plan = database.plan("ALTER TABLE IF EXISTS nope SET SCHEMA s")
    assert isinstance(plan, NoticePlan)
    assert [one.message for one in plan.notices] == ['TABLE "nope" does not exist, skipping']


def test_a_schema_is_looked_for_in_the_database_of_the_item(database: Database) -> None:
    database.run("CREATE DATABASE d; CREATE SCHEMA d.far; CREATE TABLE d.public.x (a int)")
    database.run("ALTER TABLE d.public.x SET SCHEMA far; INSERT INTO d.far.x VALUES (3)")
    assert database.query("TABLE d.far.x") == [(3,)]


def test_columns_that_two_databases_could_mean_are_told(database: Database) -> None:
    database.run(
        "CREATE DATABASE d; CREATE TABLE d.public.t (a int);"
        "CREATE VIEW other.v AS SELECT 1 AS one FROM d.public.t"
        " WHERE EXISTS (SELECT FROM materialize.public.t WHERE public.t.a = 1)"
    )
    with pytest.raises(SqlError) as raised:
        database.plan("ALTER TABLE t SET SCHEMA s")
    assert raised.value.code == "2BP01"
    assert raised.value.message == (
        "renaming conflict: in materialize.other.v, which uses materialize.public.t,"
        " ambiguous reference to item named t"
    )


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("ALTER TABLE t SET SCHEMA other", "42P07", "catalog item 't' already exists"),
        ("ALTER TABLE t SET SCHEMA nope", "3F000", "unknown schema 'materialize.nope'"),
        ("ALTER TABLE nope SET SCHEMA s", "42P01", "unknown catalog item 'nope'"),
        ("ALTER VIEW t SET SCHEMA s", "42809", "t is a table not a view"),
        ("ALTER INDEX i SET SCHEMA s", "42809", 'cannot change schema of index "i"'),
        (
            "ALTER TABLE t SET SCHEMA pg_temp",
            "0A000",
            "cannot move objects into or out of temporary schemas",
        ),
        (
            "ALTER TABLE t SET SCHEMA mz_catalog",
            "42501",
            "system schema 'mz_catalog' cannot be modified",
        ),
    ],
)
def test_what_cannot_be_moved_is_told(
    sql: str, code: str, message: str, database: Database
) -> None:
    with pytest.raises(SqlError) as raised:
        database.run(sql)
    assert (raised.value.code, raised.value.message) == (code, message)


def test_audit_tells_both_places(database: Database) -> None:
    plan = database.plan("ALTER TABLE t SET SCHEMA s")
    assert isinstance(plan, RolePlan)
    updates = transact(database.snapshot, plan.ops, now_ms=1, user="u").updates
    events = [update.object for update in updates if isinstance(update.object, AuditEvent)]
    full = {"database": "materialize", "schema": "public", "item": "t"}
    assert [(one.event_type, one.object_type) for one in events] == [
        ("alter", "table"),
        ("alter", "index"),
    ]
    assert (events[0].details["old_name"], events[0].details["new_name"]) == (
        full,
        {**full, "schema": "s"},
    )
