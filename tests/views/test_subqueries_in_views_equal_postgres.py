"""Goal: a view with a subquery that sees the row around equals PostgreSQL's query after changes.

Method: as for views in general, but few statements, so that each matters: rows with and without
partners, NULL keys on both sides, a row twice, and partners that come and go.
"""

from collections import Counter
from collections.abc import Mapping

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]

TABLES = (
    "CREATE TABLE outer_rows (id int, k int, v int)",
    "CREATE TABLE inner_rows (k int, w int)",
)
QUERIES = {
    "without": "SELECT id FROM outer_rows o WHERE NOT EXISTS"
    " (SELECT 1 FROM inner_rows i WHERE i.k = o.k)",
    "counted": "SELECT id, (SELECT count(*) FROM inner_rows i WHERE i.k = o.k) AS n"
    " FROM outer_rows o",
    "compared": "SELECT id, v > ALL (SELECT w FROM inner_rows i WHERE i.k = o.k) AS above"
    " FROM outer_rows o",
    "two_levels": "SELECT id FROM outer_rows o WHERE k IN (SELECT i.k FROM inner_rows i"
    " WHERE EXISTS (SELECT 1 FROM inner_rows j WHERE j.w = i.w AND j.k > o.v))",
}
BEFORE = (
    "INSERT INTO outer_rows VALUES (1, 1, 5), (2, 2, NULL), (3, NULL, 1), (4, 1, 0), (4, 1, 0)",
    "INSERT INTO inner_rows VALUES (1, 4), (1, 4), (NULL, 4), (3, NULL)",
)
CHANGES = (
    "INSERT INTO inner_rows VALUES (2, 1), (1, NULL)",
    "UPDATE outer_rows SET k = 3 WHERE id = 4",
    "DELETE FROM inner_rows WHERE k = 1",
)


# A tick of these as a Spark job takes seconds, so one of them speaks for all there.
AS_JOBS = ("without",)


def test_subqueries_in_views_equal_postgres(
    engine_server: Server, postgres_dsn: str, request: pytest.FixtureRequest
) -> None:
    as_jobs = request.node.callspec.params["engine_server"] == "spark"
    queries = {name: QUERIES[name] for name in (AS_JOBS if as_jobs else QUERIES)}
    with (
        engine_server.connect() as evertide,
        psycopg.connect(postgres_dsn, autocommit=True) as postgres,
    ):
        evertide.execute("SET statement_timeout = 0")  # a tick as a job takes as long as it takes
        postgres.execute("DROP SCHEMA IF EXISTS correlated CASCADE")
        for connection in (evertide, postgres):
            connection.execute("CREATE SCHEMA correlated")
            connection.execute("SET search_path = correlated")
        for statement in (*TABLES, *BEFORE):
            evertide.execute(statement)
            postgres.execute(statement)
        for name, query in queries.items():
            evertide.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        compare(queries, evertide, postgres, "hydrated")
        for statement in CHANGES:
            evertide.execute(statement)
            postgres.execute(statement)
            compare(queries, evertide, postgres, statement)


def compare(
    queries: Mapping[str, str], evertide: Connection, postgres: Connection, label: str
) -> None:
    for name, query in queries.items():
        found = Counter(evertide.execute(f"SELECT * FROM {name}").fetchall())
        assert found == Counter(postgres.execute(query).fetchall()), f"view {name}, {label}"
