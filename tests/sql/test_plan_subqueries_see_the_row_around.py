"""Subqueries that name columns of the query around: what they may do, and what becomes of them."""

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.relation import Apply
from evertide.expr.scalar import OuterColumn
from evertide.expr.transform.passes import optimize
from evertide.expr.traverse import walk
from evertide.sql.plan.plans import CreateMaterializedViewPlan, SelectPlan
from evertide.sql.views import inline_views
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database
from tests.sql.plan_corpus.correlated import CORRELATED, LATERAL
from tests.sql.plan_corpus.schema import ROWS, SCHEMA


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(SCHEMA)
    database.run(ROWS)
    return database


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (SELECT o.id FROM orders o WHERE o.customer_id = c.id) FROM customers c",
        "SELECT id FROM customers c WHERE 10 ="
        " (SELECT o.id FROM orders o WHERE o.customer_id = c.id)",
        "SELECT city FROM customers c GROUP BY city"
        " HAVING 1 = (SELECT d.id FROM customers d WHERE d.city = c.city)",
        "SELECT c.id FROM customers c LEFT JOIN nothing"
        " ON (SELECT o.id FROM orders o WHERE o.customer_id = c.id) = x",
    ],
)
def test_two_rows_for_one_row_around_are_an_error(sql: str, database: Database) -> None:
    if "nothing" in sql:
        database = new_database()
        database.run(SCHEMA)
        database.run(ROWS)
        database.run("INSERT INTO nothing VALUES (1, 'a')")
    with pytest.raises(SqlError) as error:
        database.query(sql)
    assert error.value.code == "21000"


def test_one_row_for_each_row_around_is_none(database: Database) -> None:
    sql = "SELECT (SELECT o.id FROM orders o WHERE o.customer_id = c.id) FROM customers c"
    assert database.query(f"{sql} WHERE c.id > 1 ORDER BY c.id") == [(12,), (13,), (None,), (None,)]


@pytest.mark.parametrize("sql", [*CORRELATED, *LATERAL])
def test_executors_meet_neither_apply_nor_columns_of_rows_around(
    sql: str, database: Database
) -> None:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    optimized = optimize(plan.relation)
    assert not any(isinstance(node, Apply) for node in walk(optimized))
    assert OuterColumn.__name__ not in repr(optimized)


@pytest.mark.parametrize("sql", CORRELATED)
def test_a_materialized_view_may_hold_them(sql: str, database: Database) -> None:
    """An order is finishing; what is left is a plan that every executor knows."""
    columns = ", ".join(f"c{i}" for i in range(_width(sql, database)))
    plan = database.plan(f"CREATE MATERIALIZED VIEW mv ({columns}) AS {sql}")
    assert isinstance(plan, CreateMaterializedViewPlan)
    relation = inline_views(plan.relation, database.snapshot, ())
    assert delta_plan(optimize(relation)).nodes


def _width(sql: str, database: Database) -> int:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    return plan.desc.arity


def test_a_subquery_that_sees_nothing_around_is_planned_as_a_join(database: Database) -> None:
    plan = database.plan("SELECT id FROM customers WHERE id IN (SELECT customer_id FROM orders)")
    assert isinstance(plan, SelectPlan)
    assert not any(isinstance(node, Apply) for node in walk(plan.relation))


def test_the_nearest_column_of_a_name_is_meant(database: Database) -> None:
    sql = "SELECT (SELECT id FROM (VALUES (7)) v (id)) FROM customers WHERE id = 1"
    assert database.query(sql) == [(7,)]


def test_tableoid_is_there_for_who_names_it(database: Database) -> None:
    (oid,) = database.query("SELECT 'customers'::regclass::oid")[0]
    assert database.query("SELECT DISTINCT tableoid, c.tableoid FROM customers c") == [(oid, oid)]
    assert database.query("SELECT tableoid FROM pg_class LIMIT 1") == [(1259,)]
    (columns,) = [database.plan("SELECT * FROM nothing")]
    assert isinstance(columns, SelectPlan)
    assert columns.desc.names == ("x", "y")
    with pytest.raises(SqlError, match="tableoid"):  # it would have to be NULL for some rows
        database.plan("SELECT o.tableoid FROM customers c LEFT JOIN orders o ON o.id = c.id")


def test_vectors_of_pg_catalog_count_from_zero(database: Database) -> None:
    database.run("CREATE INDEX by_city ON customers (city, id)")
    assert database.query("SELECT indkey[0], i.indkey[1], indkey[2] FROM pg_index i") == [
        (3, 1, None)
    ]


def test_types_that_name_objects(database: Database) -> None:
    assert database.query("SELECT 'pg_catalog'::regnamespace") == [(11,)]
    same = database.query("SELECT 'initcap(text)'::regprocedure = 'initcap'::regproc::oid")
    assert same == [(True,)]
    for sql, code in {
        "SELECT 'abs'::regproc": "42725",
        "SELECT 'nope'::regproc": "42883",
        "SELECT 'upper(int4)'::regprocedure": "42883",
        "SELECT 'nope'::regnamespace": "3F000",
        "SELECT 'nope'::regrole": "42704",
    }.items():
        with pytest.raises(SqlError) as error:
            database.query(sql)
        assert error.value.code == code, sql
