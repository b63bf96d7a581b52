"""Goal: each isolation level waits for what it promises, and for no more.

Method: a view whose cluster has lost its replica stays behind the table that it follows. Strict
serializable reads of it must wait; the weaker ones show what it last held, unless the session knows
of more, or it is older than the session allows.
"""

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import Server, eventually

Connection = psycopg.Connection[tuple]


@pytest.fixture(scope="module")
def late(server: Server) -> Iterator[str]:
    """The name of a view that holds 1, of a table that holds 1 and 2."""
    name = f"late_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE {name}_t (a int)".encode())
        connection.execute(f"INSERT INTO {name}_t VALUES (1)".encode())
        size = "scale=1,workers=1"
        connection.execute(f"CREATE CLUSTER {name}_c SIZE '{size}'".encode())
        view = f"CREATE MATERIALIZED VIEW {name} IN CLUSTER {name}_c AS SELECT a FROM {name}_t"
        connection.execute(view.encode())
        connection.execute("SET statement_timeout = '120s'")
        assert connection.execute(f"SELECT a FROM {name}".encode()).fetchall() == [(1,)]
        connection.execute(f"ALTER CLUSTER {name}_c SET (REPLICATION FACTOR 0)".encode())
        statuses = f"SELECT count(*) FROM mz_cluster_replicas r JOIN mz_clusters c ON c.id =\
 r.cluster_id WHERE c.name = '{name}_c'"
        assert connection.execute(statuses.encode()).fetchone() == (0,)
        connection.execute(f"INSERT INTO {name}_t VALUES (2)".encode())
        yield name
        connection.execute(f"DROP CLUSTER {name}_c CASCADE".encode())


def level(server: Server, isolation: str) -> Connection:
    connection = server.connect()
    connection.execute("SET statement_timeout = '2s'")
    connection.execute(f"SET transaction_isolation = '{isolation}'".encode())
    return connection


def rows(connection: Connection, relation: str) -> list[int]:
    found = connection.execute(f"SELECT a FROM {relation} ORDER BY a".encode()).fetchall()
    return [a for (a,) in found]


def waits(connection: Connection, relation: str) -> bool:
    try:
        rows(connection, relation)
    except psycopg.errors.QueryCanceled:
        return True
    return False


def test_strict_serializable_waits(server: Server, late: str) -> None:
    with level(server, "strict serializable") as connection:
        assert waits(connection, late)
        assert rows(connection, f"{late}_t") == [1, 2]


@pytest.mark.parametrize(
    "isolation", ["serializable", "repeatable read", "read committed", "read uncommitted"]
)
def test_serializable_does_not_wait(server: Server, late: str, isolation: str) -> None:
    with level(server, isolation) as connection:
        assert rows(connection, late) == [1]
        assert rows(connection, f"{late}_t") == [1, 2]
        # One moment of history for all that a query reads, and a transaction.
        joined = f"{late}_t WHERE a IN (SELECT a FROM {late}) OR true"
        assert rows(connection, joined) == [1]
        with connection.transaction():
            assert rows(connection, late) == [1]
            assert rows(connection, f"{late}_t") == [1]


def test_strong_session_serializable_waits_for_what_the_session_knows(
    server: Server, late: str
) -> None:
    with level(server, "strong session serializable") as connection:
        assert rows(connection, late) == [1]
        assert rows(connection, f"{late}_t") == [1, 2]
        assert waits(connection, late)  # it has seen more
    with level(server, "strong session serializable") as connection:
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS nothing (a int)")
        assert rows(connection, late) == [1]
        connection.execute(f"DELETE FROM {late}_t WHERE a = 3".encode())
        connection.execute(f"INSERT INTO {late}_t VALUES (3)".encode())
        assert waits(connection, late)  # it has written more
        assert rows(connection, f"{late}_t") == [1, 2, 3]
        connection.execute(f"DELETE FROM {late}_t WHERE a = 3".encode())


def test_bounded_staleness_is_an_error_beyond_its_bound(server: Server, late: str) -> None:
    with level(server, "bounded staleness 1h") as connection:
        assert rows(connection, late) == [1]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute(f"INSERT INTO {late}_t VALUES (4)".encode())

    def refused() -> str:
        with level(server, "bounded staleness 5ms") as connection:
            try:
                rows(connection, late)
            except psycopg.errors.SerializationFailure as error:
                return str(error)
            return ""

    assert "cannot serve query under bounded staleness 5ms" in eventually(refused)
    with level(server, "bounded staleness 5s") as connection:
        assert rows(connection, f"{late}_t") == [1, 2]


def test_a_level_may_be_chosen_for_one_transaction(server: Server, late: str) -> None:
    with level(server, "strict serializable") as connection:
        connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        assert rows(connection, late) == [1]
        connection.execute("COMMIT")
        assert connection.execute("SHOW transaction_isolation").fetchone() == (
            "strict serializable",
        )
        assert waits(connection, late)


def test_explain_timestamp_tells_the_time_of_the_level(server: Server, late: str) -> None:
    query = f"EXPLAIN TIMESTAMP FOR SELECT a FROM {late}".encode()
    with level(server, "serializable") as weak, level(server, "strict serializable") as strict:
        (can_now,) = weak.execute(query).fetchone() or ("",)
        (must_wait,) = strict.execute(query).fetchone() or ("",)
    assert "can respond immediately: true" in can_now
    assert "can respond immediately: false" in must_wait


@pytest.mark.parametrize("value", ["snapshot", "bounded staleness", "bounded staleness soon", ""])
def test_other_levels_are_refused(server: Server, value: str) -> None:
    with server.connect() as connection, pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute(f"SET transaction_isolation = '{value}'".encode())
