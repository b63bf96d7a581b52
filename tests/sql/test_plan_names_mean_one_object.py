"""Names are looked for in system schemas, then along the search path."""

import pytest

from evertide.expr.relation import Get
from evertide.sql.plan.plans import CreateTablePlan, SelectPlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE SCHEMA other; CREATE DATABASE elsewhere;"
        "CREATE TABLE t (here int); CREATE TABLE other.t (there int);"
        "CREATE TABLE other.alone (x int); CREATE TABLE elsewhere.public.far (y int);"
        "CREATE TABLE mz_tables (mine int); CREATE INDEX i ON t (here);"
        'CREATE TABLE "Odd Name" ("a""b" int)'
    )
    return database


def columns(database: Database, sql: str) -> tuple[str, ...]:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    return plan.desc.names


def test_qualified_names(database: Database) -> None:
    assert columns(database, "SELECT * FROM t") == ("here",)
    assert columns(database, "SELECT * FROM public.t") == ("here",)
    assert columns(database, "SELECT * FROM materialize.other.t") == ("there",)
    assert columns(database, "SELECT * FROM elsewhere.public.far") == ("y",)
    assert columns(database, 'SELECT * FROM "Odd Name"') == ('a"b',)


def test_the_search_path_is_walked_in_order(database: Database) -> None:
    database.search_path = ("missing", "other", "public")
    assert columns(database, "SELECT * FROM t") == ("there",)
    assert columns(database, "SELECT * FROM alone") == ("x",)


def test_system_relations_come_first(database: Database) -> None:
    assert "mine" not in columns(database, "SELECT * FROM mz_tables")
    assert columns(database, "SELECT * FROM public.mz_tables") == ("mine",)
    assert "relname" in columns(database, "SELECT * FROM pg_class")
    assert "relname" in columns(database, "SELECT * FROM materialize.pg_catalog.pg_class")
    assert "table_name" in columns(database, "SELECT * FROM information_schema.tables")
    database.search_path = ("public", "mz_catalog")
    assert columns(database, "SELECT * FROM mz_tables") == ("mine",)


def test_new_items_go_to_the_first_schema_that_exists(database: Database) -> None:
    database.search_path = ("missing", "other")
    plan = database.plan("CREATE TABLE fresh (a int)")
    assert isinstance(plan, CreateTablePlan)
    assert plan.create_sql == "CREATE TABLE materialize.other.fresh (a int)"


def test_columns_may_be_qualified_as_far_as_the_table_is(database: Database) -> None:
    for sql in (
        "SELECT t.here FROM t",
        "SELECT public.t.here FROM t",
        "SELECT materialize.public.t.here FROM public.t",
    ):
        assert columns(database, sql) == ("here",)
    assert columns(database, "SELECT t.here, other.t.there FROM t, other.t") == ("here", "there")


def test_a_relation_is_read_by_its_global_id(database: Database) -> None:
    plan = database.plan("SELECT * FROM t")
    assert isinstance(plan, SelectPlan)
    first = next(iter(database.snapshot.items.values()))
    assert plan.relation == Get(first.global_id, plan.desc.types)


ERRORS = [
    ("SELECT * FROM §nope", "42P01", "unknown catalog item 'nope'"),
    ("SELECT * FROM §public.nope", "42P01", "unknown catalog item 'public.nope'"),
    ("SELECT * FROM §nope.t", "3F000", "unknown schema 'nope'"),
    ("SELECT * FROM §materialize.nope.t", "3F000", "unknown schema 'materialize.nope'"),
    ("SELECT * FROM §nope.public.t", "3D000", "unknown database 'nope'"),
    ("SELECT * FROM §a.b.c.d", "42601", "qualified name did not have between 1 and 3 components"),
    ("SELECT * FROM §i", "42809", "catalog item 'i' is an index and so cannot be depended upon"),
    ("SELECT §nope.here FROM t", "42P01", 'column "nope.here" does not exist'),
    ("CREATE TABLE §mz_catalog.x (a int)", "0A000", "cannot create an item in system schema"),
    ("DROP TABLE §mz_catalog.mz_tables", "0A000", "system item 'mz_catalog.mz_tables' cannot"),
    ("CREATE SCHEMA §nope.s", "3D000", "unknown database 'nope'"),
    ("CREATE MATERIALIZED VIEW v IN CLUSTER nope AS SELECT 1", "42704", "unknown cluster 'nope'"),
    ("SELECT public.f(1)", "42883", 'function "public.f" does not exist'),
    ("SELECT 1 OPERATOR(nope.+) 2", "42883", "operator does not exist: nope.+"),
]


@pytest.mark.parametrize(("marked", "code", "message"), ERRORS)
def test_what_is_missing(marked: str, code: str, message: str, database: Database) -> None:
    position = marked.find("§") + 1
    with pytest.raises(SqlError) as error:
        database.plan(marked.replace("§", ""))
    assert (error.value.code, error.value.message[: len(message)]) == (code, message)
    if position:
        assert error.value.position == position


def test_hints_help_with_slips(database: Database) -> None:
    for sql, hint in (
        ("SELECT * FROM alone", "Perhaps you meant materialize.other.alone."),
        ("SELECT heer FROM t", 'Perhaps you meant to reference the column "t.here".'),
        ("SELECT t.here FROM t AS x", 'Perhaps you meant to reference the table alias "x".'),
    ):
        with pytest.raises(SqlError) as error:
            database.plan(sql)
        assert error.value.hint == hint


def test_a_session_in_a_missing_database_still_reads_the_system(database: Database) -> None:
    context_database = new_database()
    context_database.search_path = ()
    assert columns(context_database, "SELECT * FROM mz_databases")[0] == "id"
    with pytest.raises(SqlError) as error:
        context_database.plan("CREATE TABLE t (a int)")
    assert error.value.code == "3F000"
