"""An error that a row carries reaches the reader, whatever is done to the rows around it."""

import pytest

from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE zero (x int); INSERT INTO zero VALUES (0), (1), (NULL);"
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2);"
        "CREATE VIEW broken AS SELECT 1 / x AS y FROM zero"
    )
    return database


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT y FROM broken",
        "SELECT sum(y) FROM broken",
        "SELECT count(y) FROM broken WHERE y > 100",
        "SELECT y, count(*) FROM broken GROUP BY y",
        "SELECT y FROM broken INTERSECT SELECT y FROM broken",
        "SELECT y FROM broken INTERSECT ALL SELECT 1",
        "SELECT y FROM broken EXCEPT SELECT y FROM broken",
        "SELECT 1 EXCEPT SELECT y FROM broken",
        "SELECT 1 EXCEPT ALL SELECT y FROM broken",
        "SELECT EXISTS (SELECT 1 FROM broken WHERE y > 0)",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM broken WHERE y > 5)",
        "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM broken WHERE y > 5)",
        "SELECT (SELECT max(y) FROM broken)",
        "SELECT (SELECT max(a / x) FROM zero) FROM t",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM zero WHERE a / x > 5)",
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM zero WHERE a / x > 5)",
        "SELECT a FROM t WHERE a NOT IN (SELECT a / x FROM zero)",
        "SELECT a, g FROM t, generate_series(1, a / (a - 1)) g",
        "SELECT (SELECT y FROM broken LIMIT 1)",
        "SELECT a IN (SELECT y FROM broken) FROM t",
        "SELECT a FROM t WHERE a IN (SELECT y FROM broken)",
        "SELECT a FROM t WHERE a NOT IN (SELECT y FROM broken)",
        "SELECT a > ALL (SELECT y FROM broken) FROM t",
        "SELECT a, y FROM t LEFT JOIN broken ON a = y",
        "SELECT DISTINCT y FROM broken",
        "SELECT y FROM broken ORDER BY y LIMIT 1",
        "SELECT 1 FROM t WHERE 1 / (a - 1) = 0",
    ],
)
def test_division_by_zero(sql: str, database: Database) -> None:
    with pytest.raises(SqlError) as error:
        database.query(sql)
    assert error.value.code == "22012"


def test_a_branch_not_taken_cannot_fail(database: Database) -> None:
    rows = database.query("SELECT CASE WHEN x <> 0 THEN 1 / x END FROM zero ORDER BY x")
    assert rows == [(None,), (1,), (None,)]
    assert database.query("SELECT count(*) FROM zero WHERE x <> 0 AND 1 / x = 1") == [(1,)]


def test_a_scalar_subquery_has_one_row(database: Database) -> None:
    with pytest.raises(SqlError) as error:
        database.query("SELECT (SELECT a FROM t)")
    assert error.value.code == "21000"
    assert database.query("SELECT (SELECT a FROM t WHERE a = 2), (SELECT a FROM t LIMIT 1)")
    assert database.query("SELECT (SELECT a FROM t WHERE a > 5)") == [(None,)]
