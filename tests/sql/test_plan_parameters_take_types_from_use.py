"""A parameter has the type that its first use needs, and text if nothing needs any."""

import pytest

from evertide.expr.relation import Constant
from evertide.sql.plan.plans import ExecutePlan, InsertPlan, PreparePlan, SelectPlan
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    SqlType,
    array_of,
)
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b text, c numeric(10,2), d date);"
        "INSERT INTO t VALUES (1, 'x', 1.5, '2024-01-01'), (2, 'y', 2.5, '2024-01-02')"
    )
    return database


FOUND = [
    ("SELECT $1", (TEXT,)),
    ("SELECT $1, $2::int", (TEXT, INT4)),
    ("SELECT $1 + 1", (INT4,)),
    ("SELECT $1 + 1.5", (NUMERIC,)),
    ("SELECT 1 WHERE $1", (BOOL,)),
    ("SELECT 1 WHERE NOT $1 AND $2", (BOOL, BOOL)),
    ("SELECT * FROM t WHERE a = $1", (INT4,)),
    ("SELECT * FROM t WHERE $1 < d", (DATE,)),
    ("SELECT * FROM t WHERE c BETWEEN $1 AND $2", (NUMERIC, NUMERIC)),
    ("SELECT * FROM t WHERE a IN ($1, $2, 3)", (INT4, INT4)),
    ("SELECT * FROM t WHERE a = ANY ($1)", (array_of(INT4),)),
    ("SELECT * FROM t WHERE b LIKE $1", (TEXT,)),
    ("SELECT * FROM t WHERE a = $1 AND a > $1", (INT4,)),
    ("SELECT $1, $1 + 1", (INT4,)),
    ("SELECT upper($1)", (TEXT,)),
    ("SELECT coalesce($1, a) FROM t", (INT4,)),
    ("SELECT CASE WHEN a = 1 THEN $1 ELSE 2.5 END FROM t", (NUMERIC,)),
    ("SELECT 1 UNION SELECT $1", (INT4,)),
    ("SELECT * FROM t WHERE (a, b) IN (SELECT $1, 'x')", (TEXT,)),
    ("SELECT a FROM t LIMIT $1 OFFSET $2", (INT8, INT8)),
    ("INSERT INTO t VALUES ($1, $2, $3, $4)", (INT4, TEXT, NUMERIC, DATE)),
    ("INSERT INTO t (c) SELECT $1", (NUMERIC,)),
    ("UPDATE t SET d = $2 WHERE a = $1", (INT4, DATE)),
    ("DELETE FROM t WHERE b = $1", (TEXT,)),
    ("VALUES ($1, 1), (2, $2)", (INT4, INT4)),
    ("SELECT sum(a ORDER BY d = $1) FROM t", (DATE,)),
    ("SELECT string_agg(DISTINCT $1, ',' ORDER BY $1 DESC) FROM t", (TEXT,)),
    ("SELECT sum(a) FROM t GROUP BY a + $1 HAVING max(a) > $2", (INT4, INT4)),
]


@pytest.mark.parametrize(("sql", "types"), FOUND)
def test_types_are_found(sql: str, types: tuple[SqlType, ...], database: Database) -> None:
    assert database.planned(sql.replace("(a, b) IN", "(b, b) IN")).parameter_types == types


def test_a_declared_type_is_kept(database: Database) -> None:
    assert database.planned("SELECT $1", [INT8]).parameter_types == (INT8,)
    planned = database.planned("SELECT $1 = timestamp '2024-01-01', $2", [DATE, None])
    assert planned.parameter_types == (DATE, TEXT)
    assert database.planned("SELECT $1", [TIMESTAMP]).parameter_types == (TIMESTAMP,)


def test_a_number_that_was_skipped_has_no_type(database: Database) -> None:
    with pytest.raises(SqlError) as error:
        database.planned("SELECT $2::int")
    assert error.value.code == "42P18"


def test_values_take_the_place_of_parameters(database: Database) -> None:
    assert database.query("SELECT b FROM t WHERE a = $1", 2) == [("y",)]
    assert database.query("SELECT a FROM t WHERE a = ANY ($1) ORDER BY a", (1, 2, 7)) == [
        (1,),
        (2,),
    ]
    grouped = "SELECT a + $1, count(*) FROM t GROUP BY a + $1 ORDER BY 1"
    assert database.query(grouped, 10) == [(11, 1), (12, 1)]


def test_a_limit_is_planned_with_its_value(database: Database) -> None:
    sql = "SELECT a FROM t ORDER BY a LIMIT $1 OFFSET $2"
    described = database.planned(sql)
    assert described.needs_values
    ready = database.planned(sql, values=[1, 1])
    assert not ready.needs_values
    assert isinstance(ready.plan, SelectPlan)
    assert (ready.plan.finishing.limit, ready.plan.finishing.offset) == (1, 1)
    assert database.query(sql, 1, 1) == [(2,)]
    with pytest.raises(SqlError) as error:
        database.query(sql, -1, 0)
    assert error.value.code == "2201W"


def test_no_parameter_makes_a_plan_ready(database: Database) -> None:
    planned = database.planned("INSERT INTO t (a) VALUES (1)")
    assert not planned.needs_values
    assert isinstance(planned.plan, InsertPlan)
    assert isinstance(planned.plan.source, SelectPlan)
    assert isinstance(planned.plan.source.relation, Constant)


def test_prepare_finds_types_and_keeps_the_text(database: Database) -> None:
    plan = database.plan("PREPARE p (int) AS SELECT b FROM t WHERE a = $1 AND d > $2")
    text = "SELECT b FROM t WHERE a = $1 AND d > $2"
    assert plan == PreparePlan("p", text, (INT4, DATE))


def test_execute_casts_its_arguments(database: Database) -> None:
    database.prepared = {"p": (INT4, DATE)}
    try:
        plan = database.plan("EXECUTE p ('7', '2024-01-01')")
        assert isinstance(plan, ExecutePlan)
        assert [argument.type for argument in plan.arguments] == [INT4, DATE]
        for sql, code in (
            ("EXECUTE nope", "26000"),
            ("EXECUTE p (1)", "42601"),
            ("EXECUTE p (true, NULL)", "42846"),
            ("EXECUTE p (1, now()::date)", "0A000"),
        ):
            with pytest.raises(SqlError) as error:
                database.plan(sql)
            assert error.value.code == code, sql
    finally:
        database.prepared = None
