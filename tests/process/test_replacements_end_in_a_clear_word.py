"""Goal: what cannot be done with a replacement is told clearly, and leaves nothing behind.

Method: one real server; wrong targets, views in error, idle clusters, racing creators, and inputs
that go. Afterwards the catalog is as it was, and the view reads on.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    """A table t, a view mv over it, and a cluster without replicas, all of this test alone."""
    with server.connect(options="-c statement_timeout=60s") as connection:
        connection.execute("DROP SCHEMA IF EXISTS bad CASCADE")
        connection.execute("DROP CLUSTER IF EXISTS bad_idle CASCADE")
        connection.execute("CREATE SCHEMA bad")
        connection.execute("SET search_path = bad")
        connection.execute("CREATE CLUSTER bad_idle REPLICAS ()")
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        connection.execute("CREATE MATERIALIZED VIEW mv AS SELECT a FROM t")
        yield connection


def staged(connection: Connection) -> int:
    row = connection.execute(
        "SELECT count(*) FROM mz_materialized_views m JOIN mz_schemas s ON s.id = m.schema_id"
        " WHERE s.name = 'bad' AND m.replacement_for IS NOT NULL"
    ).fetchone()
    assert row is not None
    return int(row[0])


def rows(connection: Connection, sql: str = "SELECT a FROM mv ORDER BY a") -> list[tuple]:
    return connection.execute(sql.encode()).fetchall()


@contextmanager
def applying(server: Server, sql: str) -> Iterator[list[str]]:
    """The statement runs in a session of its own; what became of it, once the context ends."""
    outcome: list[str] = []

    def run() -> None:
        with server.connect(options="-c search_path=bad -c statement_timeout=60s") as other:
            try:
                other.execute(sql.encode())
                outcome.append("done")
            except psycopg.Error as error:
                outcome.append(f"{error.sqlstate} {error.diag.message_primary}")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield outcome
    finally:
        thread.join()


def test_a_view_that_is_not_there(connection: Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable, match="unknown catalog item 'nobody'"):
        connection.execute("CREATE MATERIALIZED VIEW r REPLACING nobody AS SELECT a FROM t")
    with pytest.raises(psycopg.errors.UndefinedTable, match="unknown catalog item 'r'"):
        connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    assert staged(connection) == 0


def test_a_view_in_error_is_mended_or_broken_by_a_replacement(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW bad_one REPLACING mv AS SELECT 1 / (a - 1) AS a FROM t"
    )
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT * FROM bad_one")
    connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT bad_one")
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT * FROM mv")
    connection.execute("CREATE MATERIALIZED VIEW good REPLACING mv AS SELECT a + 1 AS a FROM t")
    assert rows(connection, "SELECT a FROM good ORDER BY a") == [(2,), (3,)]
    connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT good")
    assert rows(connection) == [(2,), (3,)]
    assert staged(connection) == 0


def test_a_cluster_without_replicas(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW r REPLACING mv IN CLUSTER bad_idle AS SELECT a FROM t"
    )
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as raised:
        connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    assert raised.value.diag.message_hint == 'Give cluster "bad_idle" a replica.'
    assert rows(connection, "SELECT a FROM r ORDER BY a") == [(1,), (2,)], "still read as a view"
    connection.execute("DROP CLUSTER bad_idle CASCADE")
    assert staged(connection) == 0
    assert rows(connection) == [(1,), (2,)]


def test_creators_who_race(server: Server, connection: Connection) -> None:
    names = [f"r{number}" for number in range(4)]
    outcomes: list[list[str]] = []

    def create(name: str) -> None:
        sql = f"CREATE MATERIALIZED VIEW {name} REPLACING mv AS SELECT a + 1 AS a FROM t"
        with applying(server, sql) as outcome:
            outcomes.append(outcome)

    threads = [threading.Thread(target=create, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = sorted(outcome[0] for outcome in outcomes)
    assert told.count("done") == 1
    assert staged(connection) == 1
    for refused in told[:-1]:
        assert refused.startswith("55000 cannot replace mv because it already has a replacement: r")


def test_inputs_that_were_dropped_take_the_replacement_along(connection: Connection) -> None:
    connection.execute("CREATE TABLE u (a int)")
    connection.execute("CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a FROM u")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        connection.execute("DROP TABLE u")
    connection.execute("DROP TABLE u CASCADE")
    with pytest.raises(psycopg.errors.UndefinedTable, match="unknown catalog item 'r'"):
        connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
    assert rows(connection) == [(1,), (2,)]
    assert staged(connection) == 0
