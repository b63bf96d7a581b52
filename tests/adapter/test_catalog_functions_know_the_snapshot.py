"""Functions about objects answer from the statement's snapshot and for its session."""

from dataclasses import replace

import pytest

from evertide.adapter.lookups.catalog_functions import bind_catalog_functions
from evertide.adapter.session import Session
from evertide.adapter.variables import Variables
from evertide.catalog.objects import CatalogUpdate, Comment, ObjectKind
from evertide.expr.functions.row import Knowledge
from evertide.expr.functions.table import SCALAR_FUNCTIONS
from evertide.expr.interpret import Collection, evaluate, finish
from evertide.expr.locality import interpreted_only
from evertide.expr.relation import Map
from evertide.expr.scalar import Call, Literal
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.builder import ONE_ROW
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        'CREATE SCHEMA other; CREATE TABLE t (a int, "B c" text);'
        "CREATE TABLE other.t (x int); CREATE TABLE other.u (x int);"
        'CREATE VIEW v AS SELECT a FROM t; CREATE INDEX i ON t ("B c", a)'
    )
    return database


def session(**values: str) -> Session:
    return Session(user="materialize", variables=Variables(values))


def ask(database: Database, expression: str, who: Session | None = None) -> Datum:
    plan = database.plan(f"SELECT {expression}")
    assert isinstance(plan, SelectPlan)
    bound = bind_catalog_functions(plan.relation, database.snapshot, who or session())
    relation = optimize(bound)
    rows = finish(evaluate(relation, lambda _: Collection([])), plan.finishing, relation.types)
    return rows[0][0]


EXPRESSIONS: dict[str, Datum] = {
    "pg_get_userbyid((SELECT 10::oid))": "mz_system",
    "pg_get_userbyid(12345)": "unknown (OID=12345)",
    "pg_table_is_visible('t'::regclass)": True,
    "pg_table_is_visible('other.t'::regclass)": False,
    "pg_table_is_visible('other.u'::regclass)": False,
    "pg_table_is_visible('pg_class'::regclass)": True,
    "pg_table_is_visible('information_schema.tables'::regclass)": False,
    "pg_table_is_visible('mz_tables'::regclass)": False,
    "pg_table_is_visible(1::oid)": None,
    "'t'::regclass::text": "t",
    "'other.t'::regclass::text": "other.t",
    "0::oid::regclass::text": "-",
    "99::oid::regclass::text": "99",
    "to_regclass('other.u') = 'other.u'::regclass": True,
    "to_regclass('nope')": None,
    "to_regclass('no such schema.x')": None,
    "to_regnamespace('other') = 'other'::regnamespace": True,
    "to_regnamespace('nope')": None,
    "to_regrole('mz_system')": 10,
    "to_regtype('int4')::text": "integer",
    "to_regtype('nope')": None,
    "11::oid::regnamespace::text": "pg_catalog",
    "10::oid::regrole": "mz_system",
    "'upper(text)'::regprocedure::int8::oid::regprocedure": "upper(text)",
    "pg_get_viewdef('v'::regclass)": "SELECT a FROM materialize.public.t;",
    "pg_get_viewdef('t'::regclass, true)": None,
    "pg_get_indexdef('i'::regclass)": 'CREATE INDEX i ON public.t USING btree ("B c", a)',
    "pg_get_indexdef('i'::regclass, 1, true)": '"B c"',
    "pg_get_indexdef('i'::regclass, 2, true)": "a",
    "pg_get_indexdef('i'::regclass, 3, true)": None,
    "pg_get_function_arguments('initcap'::regproc)": "text",
    "pg_get_function_result('pg_options_to_table'::regproc)": (
        "TABLE(option_name text, option_value text)"
    ),
    "pg_get_function_arguments(2437)": "boolean",  # boolsend, which only pg_type names
    "pg_get_function_result(2437)": "bytea",
    "2437::oid::regproc::text": "boolsend",
    "pg_get_function_arguments(2905)": "cstring[]",
    "pg_size_pretty(pg_database_size('materialize'))": "-1 bytes",
    "obj_description('t'::regclass, 'pg_class')": None,
    "col_description('t'::regclass, 1)": None,
    "current_setting('search_path')": "public",
    "current_setting('no.such', true)": None,
    "format_type(2279, NULL)": "trigger",
    "oidvectortypes(ARRAY[23, 25]::oid[])": "integer, text",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_answer(expression: str, database: Database) -> None:
    assert ask(database, expression) == EXPRESSIONS[expression]


def test_the_session_s_search_path_decides_what_is_visible(database: Database) -> None:
    moved = session(search_path="other, public")
    assert ask(database, "pg_table_is_visible('other.t'::regclass)", moved) is True
    assert ask(database, "pg_table_is_visible('public.t'::regclass)", moved) is False
    assert ask(database, "'public.t'::regclass::text", moved) == "public.t"
    assert ask(database, "current_setting('search_path')", moved) == "other, public"


def test_a_setting_that_does_not_exist_is_an_error(database: Database) -> None:
    with pytest.raises(SqlError) as error:
        ask(database, "current_setting('no.such')")
    assert error.value.code == "42704"


def test_every_catalog_function_is_bound(database: Database) -> None:
    """One without a body of its own would fail the first statement that calls it."""
    for function in SCALAR_FUNCTIONS:
        if function.knowledge is Knowledge.CATALOG:
            arguments = tuple(Literal(None, sql_type) for sql_type in function.arguments)
            one = Map(ONE_ROW, (Call(function, arguments, function.result),))
            bound = bind_catalog_functions(one, database.snapshot, session())
            assert isinstance(bound, Map)
            (call,) = bound.scalars
            assert isinstance(call, Call)
            assert call.function.knowledge is Knowledge.SNAPSHOT
            assert call.function.body is not function.body, function


def test_a_bound_function_stays_in_this_process(database: Database) -> None:
    plan = database.plan("SELECT pg_get_userbyid(a::oid) FROM t")
    assert isinstance(plan, SelectPlan)
    bound = bind_catalog_functions(plan.relation, database.snapshot, session())
    assert interpreted_only(optimize(bound)) == "catalog function pg_get_userbyid"
    plain = database.plan('SELECT upper("B c") FROM t')
    assert isinstance(plain, SelectPlan)
    assert interpreted_only(plain.relation) is None


def commented(database: Database) -> Database:
    """The same with comments on a table, a column, a schema, a database and a cluster."""
    table = next(i for i in database.snapshot.items.values() if i.name == "t" and i.desc.arity == 2)
    on = [
        (ObjectKind.ITEM, table.item_id, None, "a table"),
        (ObjectKind.ITEM, table.item_id, 2, "a column"),
        (ObjectKind.SCHEMA, table.schema_id, None, "a schema"),
        (ObjectKind.DATABASE, "u1", None, "a database"),
        (ObjectKind.CLUSTER, "u1", None, "a cluster"),
    ]
    updates = [
        CatalogUpdate(Comment(object_kind=kind, object_id=key, sub_id=sub_id, comment=text), 1)
        for kind, key, sub_id, text in on
    ]
    upper = Timestamp(database.snapshot.upper + 1)
    return replace(database, snapshot=database.snapshot.apply(updates, upper))


def test_comments_are_found_by_what_they_are_on(database: Database) -> None:
    noted = commented(database)
    expected = {
        "obj_description('t'::regclass, 'pg_class')": "a table",
        "obj_description('t'::regclass)": "a table",
        "obj_description('t'::regclass, 'pg_proc')": None,
        "obj_description('t'::regclass, 'nope')": None,
        "obj_description('other.t'::regclass, 'pg_class')": None,
        "col_description('t'::regclass, 2)": "a column",
        "col_description('t'::regclass, 0)": None,
        "obj_description('public'::regnamespace, 'pg_namespace')": "a schema",
        "shobj_description(20001, 'pg_database')": "a database",
    }
    assert {expression: ask(noted, expression) for expression in expected} == expected
    assert noted.query(
        "SELECT c.relname, d.objsubid, d.description FROM pg_description d"
        " JOIN pg_class c ON d.classoid = c.tableoid AND d.objoid = c.oid ORDER BY 2"
    ) == [("t", 0, "a table"), ("t", 2, "a column")]
    assert noted.query("SELECT description FROM pg_shdescription") == [("a database",)]
