"""Goal: every kind of view equals its query, as PostgreSQL answers it, after any changes.

Method: the same random statements run on Evertide and on PostgreSQL; after every few of them each
materialized view must hold what PostgreSQL's own query returns. The seed is in the test's name.
"""

import random
from collections import Counter
from decimal import Decimal

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]

TABLES = (
    "CREATE TABLE a (id int, k int, v int, s text)",
    "CREATE TABLE b (id int, k int, w int)",
    "CREATE TABLE c (k int, f float8, n numeric)",
)
QUERIES = {
    "filtered": "SELECT id, v + 1 AS v1, upper(s) AS s FROM a WHERE v > 0 AND s IS NOT NULL",
    "inner_join": "SELECT a.id, b.id AS bid, a.v * b.w AS p FROM a JOIN b ON a.k = b.k",
    "three_way": "SELECT a.id, b.w, c.n FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k",
    "self_join": "SELECT x.id, y.id AS other FROM a x JOIN a y ON x.k = y.k WHERE x.v < y.v",
    "left_join": "SELECT a.id, b.w FROM a LEFT JOIN b ON a.k = b.k AND b.w > 0",
    "summed": "SELECT k, count(*) AS n, count(v) AS nv, sum(v) AS t, avg(v) AS m FROM a GROUP BY k",
    "extremes": "SELECT k, min(v) AS lo, max(v) AS hi, max(s) AS s FROM a GROUP BY k",
    "floats": "SELECT k, sum(f) AS f, sum(n) AS n, avg(n) AS m FROM c GROUP BY k",
    "whole_table": "SELECT count(*) AS n, sum(v) AS t, min(s) AS s FROM a",
    "frequent": "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > 1",
    "distinct_rows": "SELECT DISTINCT k, s FROM a",
    "union_all": "SELECT id, k FROM a UNION ALL SELECT id, k FROM b",
    "over_join": (
        "SELECT a.k, count(*) AS n, sum(a.v * b.w) AS t, max(b.w) AS hi"
        " FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k"
    ),
    "subquery": (
        "WITH big AS (SELECT k, sum(v) AS t FROM a GROUP BY k)"
        " SELECT b.id, big.t FROM b JOIN big ON big.k = b.k WHERE big.t > 0"
    ),
    "in_order": (
        "SELECT k, string_agg(s, ',' ORDER BY v DESC, s) AS s, array_agg(id ORDER BY s, id) AS a,"
        " array_agg(DISTINCT v ORDER BY v DESC NULLS LAST) AS d,"
        " jsonb_agg(id ORDER BY v NULLS FIRST, id DESC) FILTER (WHERE v > 0) AS j FROM a GROUP BY k"
    ),
    "in_order_too": (
        "SELECT k, replace(jsonb_agg(ROW(a.*) ORDER BY a DESC)::text, ' ', '') AS j,"
        " bool_and(v > 0 ORDER BY id) AS every,"
        " array_agg(id ORDER BY (s, v) DESC, id) AS a, count(DISTINCT a.s ORDER BY s) AS n,"
        " array_agg(id ORDER BY 6 / v, id) FILTER (WHERE v <> 0) AS f FROM a GROUP BY k"
    ),
    "top_three": "SELECT id, v FROM a ORDER BY v DESC NULLS LAST, id LIMIT 3",
}


def random_value(chance: random.Random, kind: str) -> str:
    if chance.random() < 0.1:
        return "NULL"
    match kind:
        case "text":
            return repr(chance.choice(["x", "y", "zed", "", "ÄÖ"]))
        case "float":
            return f"{chance.choice([0.1, 0.2, 1e16, -1e16, 1.5, 3.25])}::float8"
        case "numeric":
            return f"{chance.choice(['0.1', '2.50', '-7', '123456789.125'])}::numeric"
        case _:
            return str(chance.randint(-3, 5))


def random_statement(chance: random.Random, number: int) -> str:
    table = chance.choice(["a", "a", "b", "c"])
    columns = {"a": ("int", "int", "text"), "b": ("int", "int"), "c": ("int", "float", "numeric")}
    match chance.random():
        case dice if dice < 0.65:
            rows = []
            for offset in range(chance.randint(1, 4)):
                values = [random_value(chance, kind) for kind in columns[table]]
                if table != "c":
                    values.insert(0, str(number * 10 + offset))
                rows.append(f"({', '.join(values)})")
            return f"INSERT INTO {table} VALUES {', '.join(rows)}"
        case dice if dice < 0.85:
            column = {"a": "v", "b": "w", "c": "n"}[table]
            return f"UPDATE {table} SET {column} = {column} + 1 WHERE k = {chance.randint(-3, 5)}"
        case _:
            return f"DELETE FROM {table} WHERE k = {chance.randint(-3, 5)}"


def normalised(rows: list[tuple]) -> Counter:
    """Numbers by value: PostgreSQL shows 2.50 where Evertide shows 2.5, and rounds averages."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return round(value, 12).normalize() if isinstance(value, Decimal) else value


def _compare(evertide: Connection, postgres: Connection, label: str) -> None:
    for name, query in QUERIES.items():
        if name == "floats":
            continue  # PostgreSQL's float sums depend on the order of rows; compared below
        found = normalised(evertide.execute(f"SELECT * FROM {name}").fetchall())
        expected = normalised(postgres.execute(query).fetchall())
        assert found == expected, f"view {name}, {label}"
    floats = evertide.execute("SELECT k, n, m FROM floats").fetchall()
    query = "SELECT k, sum(n) AS n, avg(n) AS m FROM c GROUP BY k"
    assert normalised(floats) == normalised(postgres.execute(query).fetchall()), label
    # The view and a fresh evaluation must agree to the last bit.
    fresh = evertide.execute(QUERIES["floats"]).fetchall()
    assert normalised(evertide.execute("SELECT * FROM floats").fetchall()) == normalised(fresh)


@pytest.mark.parametrize("seed", [11])
def test_views_equal_postgres(engine_server: Server, postgres_dsn: str, seed: int) -> None:
    chance = random.Random(seed)
    with (
        engine_server.connect() as evertide,
        psycopg.connect(postgres_dsn, autocommit=True) as postgres,
    ):
        evertide.execute("SET statement_timeout = 0")  # a tick as a job takes as long as it takes
        postgres.execute(f"DROP SCHEMA IF EXISTS seed_{seed} CASCADE")
        postgres.execute(f"CREATE SCHEMA seed_{seed}")
        postgres.execute(f"SET search_path = seed_{seed}")
        for statement in TABLES:
            evertide.execute(statement)
            postgres.execute(statement)
        for number in range(12):
            _both(evertide, postgres, random_statement(chance, number))
        for name, query in QUERIES.items():
            evertide.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        _compare(evertide, postgres, f"seed {seed}, hydrated")
        for step in range(1, 3):
            for number in range(15):
                _both(evertide, postgres, random_statement(chance, step * 100 + number))
            _compare(evertide, postgres, f"seed {seed}, step {step}")


def _both(evertide: Connection, postgres: Connection, statement: str) -> None:
    """The same statement on both, and the same count of rows."""
    assert evertide.execute(statement).rowcount == postgres.execute(statement).rowcount, statement
