"""Goal: a view with window functions equals PostgreSQL's query after any changes, incrementally.

Method: the same random statements run on both; rows that the order finds equal come and go, and
partitions appear, lose their last row and are NULL. What depends on which of equal rows comes first
is ordered by a unique column.
"""

from collections import Counter
from collections.abc import Mapping
from random import Random

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]

TABLE = "CREATE TABLE sales (id int, shop int, day int, amount numeric, note text)"
QUERIES = {
    "numbered": "SELECT id, shop, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n"
    " FROM sales",
    "ranked": "SELECT id, rank() OVER w AS r, dense_rank() OVER w AS d, percent_rank() OVER w AS p,"
    " cume_dist() OVER w AS c FROM sales WINDOW w AS (PARTITION BY shop ORDER BY day)",
    "running": "SELECT id, sum(amount) OVER (PARTITION BY shop ORDER BY day) AS t,"
    " count(*) OVER (PARTITION BY shop) AS n FROM sales",
    "moving": "SELECT id, sum(day) OVER w AS t, min(amount) OVER w AS lo, first_value(note) OVER w"
    " AS f, last_value(note) OVER w AS l FROM sales"
    " WINDOW w AS (PARTITION BY shop ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "near": "SELECT id, sum(amount) OVER w AS t, count(*) OVER w AS n, min(note) OVER w AS f"
    " FROM sales"
    " WINDOW w AS (PARTITION BY shop ORDER BY day DESC RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    "neighbours": "SELECT id, lag(amount) OVER w AS b, lead(note, 2, 'none') OVER w AS a, ntile(3)"
    " OVER w AS q FROM sales WINDOW w AS (ORDER BY day DESC NULLS LAST, id)",
    "best": "SELECT id, shop, amount FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY"
    " amount DESC NULLS LAST, id) AS n FROM sales) s WHERE n <= 2",
    "shares": "SELECT shop, sum(amount) AS t, rank() OVER (ORDER BY sum(amount) DESC) AS r,"
    " sum(count(*)) OVER () AS n FROM sales GROUP BY shop",
    "joined": "SELECT s.id, row_number() OVER (PARTITION BY s.shop ORDER BY s.id, o.id) AS n"
    " FROM sales s JOIN sales o ON s.day = o.day",
}
# A tick of each as a job takes seconds, so a few speak for all.
AS_JOBS = ("ranked", "moving", "near", "best")


def random_statement(chance: Random, number: int) -> str:
    def value(*choices: str) -> str:
        return chance.choice([*choices, "NULL"])

    def note() -> str:
        return value("'x'", "'y'", "''")

    match chance.random():
        case dice if dice < 0.6:
            rows = [
                f"({number * 10 + offset}, {value('1', '2', '3')}, {value('1', '2', '3')},"
                f" {value('0.5', '2', '-7.25', '100')}, {note()})"
                for offset in range(chance.randint(1, 4))
            ]
            return f"INSERT INTO sales VALUES {', '.join(rows)}"
        case dice if dice < 0.8:
            return f"UPDATE sales SET day = day + 1 WHERE shop = {chance.randint(1, 3)}"
        case _:
            return f"DELETE FROM sales WHERE day = {chance.randint(1, 5)}"


@pytest.mark.parametrize("seed", [5])
def test_windows_in_views_equal_postgres(
    engine_server: Server, postgres_dsn: str, request: pytest.FixtureRequest, seed: int
) -> None:
    chance = Random(seed)
    as_jobs = request.node.callspec.params["engine_server"] == "spark"
    queries = {name: QUERIES[name] for name in (AS_JOBS if as_jobs else QUERIES)}
    with (
        engine_server.connect() as evertide,
        psycopg.connect(postgres_dsn, autocommit=True) as postgres,
    ):
        evertide.execute("SET statement_timeout = 0")  # a tick as a job takes as long as it takes
        postgres.execute("DROP SCHEMA IF EXISTS windows CASCADE")
        for connection in (evertide, postgres):
            connection.execute("CREATE SCHEMA windows")
            connection.execute("SET search_path = windows")
            connection.execute(TABLE)
        for number in range(8):
            both(evertide, postgres, random_statement(chance, number))
        for name, query in queries.items():
            evertide.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            assert explained(evertide, name).startswith("incremental:"), name
        compare(queries, evertide, postgres, "hydrated")
        for number in range(100, 104 if as_jobs else 125):
            statement = random_statement(chance, number)
            both(evertide, postgres, statement)
            compare(queries, evertide, postgres, f"{number}: {statement}")


def explained(evertide: Connection, name: str) -> str:
    rows = evertide.execute(f"EXPLAIN DELTA PLAN FOR MATERIALIZED VIEW {name}").fetchall()
    return "\n".join(str(line) for (line,) in rows)


def both(evertide: Connection, postgres: Connection, statement: str) -> None:
    assert evertide.execute(statement).rowcount == postgres.execute(statement).rowcount, statement


def compare(
    queries: Mapping[str, str], evertide: Connection, postgres: Connection, label: str
) -> None:
    for name, query in queries.items():
        found = Counter(evertide.execute(f"SELECT * FROM {name}").fetchall())
        assert found == Counter(postgres.execute(query).fetchall()), f"view {name}, {label}"


def test_an_argument_that_cannot_be_is_an_error_until_its_row_is_gone(
    engine_server: Server,
) -> None:
    with engine_server.connect() as evertide:
        evertide.execute("SET statement_timeout = 0")
        evertide.execute("CREATE TABLE parts (id int, k int)")
        evertide.execute("INSERT INTO parts VALUES (1, 1), (2, 2)")
        evertide.execute(
            "CREATE MATERIALIZED VIEW nth AS SELECT id, nth_value(id, k) OVER (ORDER BY id) AS v"
            " FROM parts"
        )
        assert sorted(evertide.execute("SELECT * FROM nth").fetchall()) == [(1, 1), (2, 2)]
        evertide.execute("INSERT INTO parts VALUES (3, 0)")
        with pytest.raises(psycopg.Error) as error:
            evertide.execute("SELECT * FROM nth")
        assert error.value.diag.sqlstate == "22016"
        evertide.execute("DELETE FROM parts WHERE id = 3")
        assert sorted(evertide.execute("SELECT * FROM nth").fetchall()) == [(1, 1), (2, 2)]
