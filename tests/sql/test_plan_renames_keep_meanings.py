"""Goal: whatever gets another name, every stored text goes on reading what it read.

Method: views that name things in every way, over a catalog in memory; their rows before and after
a rename, and whether a text is planned again to the same rows.
"""

import re

import pytest

from evertide.sql.plan.plans import NoticePlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

VIEWS = {
    "plain": "SELECT a FROM t",
    "starred": "SELECT t.* FROM (SELECT public.t.* FROM t) AS s, t",
    "qualified": "SELECT t.a, public.t.a AS b, materialize.public.t.a AS c FROM t",
    "aliased": "SELECT x.a FROM t AS x",
    "named_like_another": "SELECT t.a FROM u AS t",
    "beside_an_alias": "SELECT t.a, o.a AS b FROM t, other AS o",
    "beside_the_new_name": "SELECT t.a, new.a AS b FROM t, u AS new",
    "whole_rows": "SELECT (t.*)::text AS whole, (t).a FROM t",
    "in_a_list": "WITH new AS (SELECT a + 1 AS a FROM t) SELECT new.a FROM new",
    "in_a_condition": "SELECT a FROM other WHERE a IN (SELECT t.a FROM t WHERE t.a <= other.a)",
    "joined": "SELECT t.a FROM t JOIN other USING (a) JOIN other AS o ON o.a = t.a",
    "a_column_of_its_name": "SELECT new.new FROM (SELECT t.a AS new FROM t) AS new",
    "grouped": "SELECT t.a, count(*) FROM t GROUP BY t.a HAVING max(t.a) > 0 ORDER BY t.a",
    "through": "SELECT plain.a FROM plain",
}


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int); CREATE TABLE other (a int); CREATE VIEW u AS SELECT 7 AS a;"
        "INSERT INTO t VALUES (1), (2), (2); INSERT INTO other VALUES (2), (3);"
        "CREATE INDEX i ON t (a)"
    )
    for name, query in VIEWS.items():
        database.run(f"CREATE VIEW {name} AS {query}")
    return database


def rows(database: Database) -> dict[str, list[tuple[object, ...]]]:
    return {name: sorted(database.query(f"SELECT * FROM {name}"), key=repr) for name in VIEWS}


def texts(database: Database) -> dict[str, str]:
    return {item.name: item.create_sql for item in database.snapshot.items.values()}


def test_views_read_a_relation_under_its_new_name(database: Database) -> None:
    before = rows(database)
    assert all(before.values())
    database.run("ALTER TABLE t RENAME TO new")
    assert rows(database) == before
    assert not any(re.search(r"public\.t\b", text) for text in texts(database).values())
    with pytest.raises(SqlError, match="unknown catalog item 't'"):
        database.query("SELECT * FROM t")


def test_a_text_is_as_one_would_write_it(database: Database) -> None:
    database.run("ALTER TABLE t RENAME TO new")
    found = texts(database)
    assert found["plain"].endswith("AS SELECT a FROM materialize.public.new")
    assert found["qualified"].endswith(
        "SELECT new.a, public.new.a AS b, materialize.public.new.a AS c FROM materialize.public.new"
    )
    assert found["i"].endswith("ON materialize.public.new (a)")
    # Where the new name is something else in the text, the old one stays as an alias.
    assert found["beside_the_new_name"].endswith(
        "SELECT t.a, new.a AS b FROM materialize.public.new AS t, materialize.public.u AS new"
    )


def test_another_relation_may_take_the_old_name(database: Database) -> None:
    before = rows(database)
    database.run("ALTER TABLE t RENAME TO new; CREATE TABLE t (a int); INSERT INTO t VALUES (9)")
    assert rows(database) == before


def test_back_and_forth_is_nothing(database: Database) -> None:
    before = texts(database)
    database.run("ALTER VIEW plain RENAME TO p; ALTER VIEW p RENAME TO plain")
    database.run("ALTER INDEX i RENAME TO j; ALTER INDEX j RENAME TO i")
    assert texts(database) == before


@pytest.mark.parametrize(
    "change",
    [
        "ALTER SCHEMA public RENAME TO elsewhere",
        "ALTER DATABASE materialize RENAME TO another",
    ],
)
def test_views_read_on_where_their_place_has_another_name(change: str, database: Database) -> None:
    database.run("CREATE SCHEMA far; CREATE VIEW far.v AS SELECT public.t.a FROM t")
    database.run("CREATE MATERIALIZED VIEW far.m AS SELECT t.a FROM t")
    before = rows(database) | {"far.v": sorted(database.query("TABLE far.v"))}
    database.run(change)
    for item in database.snapshot.items.values():
        place = "elsewhere" if "SCHEMA" in change else "another"
        assert place in item.create_sql
        assert "materialize.public" not in item.create_sql
    if "SCHEMA" in change:
        database.search_path = ("elsewhere",)
        after = rows(database) | {"far.v": sorted(database.query("TABLE far.v"))}
        assert after == before


def test_texts_that_only_schemas_tell_apart_are_left_alone(database: Database) -> None:
    database.run(
        "CREATE SCHEMA s; CREATE TABLE s.t (a int);"
        "CREATE VIEW two AS SELECT public.t.a, s.t.a AS b FROM public.t, s.t"
    )
    with pytest.raises(SqlError) as raised:
        database.run("ALTER TABLE s.t RENAME TO new")
    assert raised.value.message == (
        "renaming conflict: in materialize.public.two, which uses materialize.s.t, ambiguous"
        " reference to item named t"
    )
    database.run("CREATE DATABASE d")
    database.run("CREATE SCHEMA d.s; CREATE TABLE d.s.x (b int)")
    database.run("CREATE VIEW d.s.v AS SELECT s.t.a FROM s.t, d.s.x")
    with pytest.raises(SqlError) as raised:
        database.run("ALTER SCHEMA d.s RENAME TO r")
    assert raised.value.message == (
        "renaming conflict: in d.s.v, which uses d.s, ambiguous reference to schema named s"
    )


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("ALTER SCHEMA x RENAME TO y", "3F000", "unknown schema 'x'"),
        ("ALTER DATABASE x RENAME TO y", "3D000", "unknown database 'x'"),
        ("ALTER SCHEMA public RENAME TO mz_x", "42602", "unacceptable schema name 'mz_x'"),
        ("ALTER SCHEMA s RENAME TO public", "42710", "schema 'public' already exists"),
        (
            "ALTER SCHEMA mz_catalog RENAME TO x",
            "0A000",
            "renaming the mz_catalog schema is not supported",
        ),
        (
            "ALTER SCHEMA mz_temp RENAME TO x",
            "0A000",
            'cannot rename schemas in the ambient database: "mz_temp"',
        ),
        ("ALTER VIEW u RENAME TO t", "42P07", "catalog item 't' already exists"),
        ("ALTER VIEW t RENAME TO x", "42809", "t is a table not a view"),
        ("ALTER SECRET x RENAME TO y", "42P01", "unknown catalog item 'x'"),
        ("ALTER TYPE x RENAME TO y", "42P01", "unknown catalog item 'x'"),
    ],
)
def test_what_cannot_be_renamed_is_told(
    sql: str, code: str, message: str, database: Database
) -> None:
    database.run("CREATE SCHEMA s")
    with pytest.raises(SqlError) as raised:
        database.plan(sql)
    assert (raised.value.code, raised.value.message) == (code, message)


def test_if_exists_makes_a_notice_of_what_is_missing(database: Database) -> None:
    plan = database.plan("ALTER TYPE IF EXISTS x RENAME TO y")
    assert isinstance(plan, NoticePlan)
    assert [notice.message for notice in plan.notices] == ['TYPE "x" does not exist, skipping']
