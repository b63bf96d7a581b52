"""What the parser lets through, however deep or long, is planned within Python's frames."""

import pytest

from evertide.sql.plan.plans import SelectPlan
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text)")
    return database


JOINED = "".join(f" JOIN t t{i} ON t.a = t{i}.a" for i in range(60))
LINKED = ", ".join(f"c{i} AS (SELECT * FROM {f'c{i - 1}' if i else 't'})" for i in range(100))

LONG = {
    "sum": f"SELECT {' + '.join(['a'] * 200)} FROM t",
    "sum with casts": f"SELECT {' + '.join(['a'] * 100 + ['1.5'] * 100)} FROM t",
    "concatenation": f"SELECT {' || '.join(['b'] * 200)} FROM t",
    "casts": f"SELECT 1{'::int::text' * 100}",
    "tests": f"SELECT 1{' IS NULL' * 200}",
    "not": f"SELECT {'NOT ' * 100}true",
    "parentheses": f"SELECT {'(' * 100}1{')' * 100}",
    "calls": f"SELECT {'upper(' * 50}'a'{')' * 50}",
    "subqueries": f"SELECT {'(SELECT ' * 20}1{')' * 20}",
    "from": f"SELECT * FROM {'(SELECT * FROM ' * 20}t{') s' * 20}",
    "exists": f"SELECT 1 WHERE {'EXISTS (SELECT 1 WHERE ' * 15}true{')' * 15}",
    "case": f"SELECT {'CASE WHEN true THEN ' * 40}1{' END' * 40}",
    "grouping": f"SELECT {' + '.join(['a'] * 150)} FROM t GROUP BY {' + '.join(['a'] * 150)}",
    "in": f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(2_000)))})",
    "and": f"SELECT a FROM t WHERE {' AND '.join(f'a <> {i}' for i in range(2_000))}",
    "union": " UNION ALL ".join(f"SELECT {i}" for i in range(1_000)),
    "except": " EXCEPT ".join(["SELECT a FROM t"] * 300),
    "intersect": " INTERSECT ".join(["SELECT a FROM t"] * 100),
    "joins": f"SELECT count(*) FROM t{JOINED}",
    "with": f"WITH {LINKED} SELECT * FROM c99",
}


@pytest.mark.parametrize("sql", LONG.values(), ids=LONG)
def test_is_planned_and_run(sql: str, database: Database) -> None:
    assert isinstance(database.plan(sql), SelectPlan)
    database.query(sql)
