"""Goal: sessions behave as PostgreSQL's where a client could tell the difference."""

import psycopg
import pytest

from tests.support.server import Server


def test_a_query_that_makes_too_many_rows_ends_with_an_error(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE wide (x int)")
        values = ", ".join(f"({number})" for number in range(3_000))
        connection.execute(f"INSERT INTO wide VALUES {values}")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="intermediate rows"):
            connection.execute(
                "SELECT count(*) FROM wide a, wide b, wide c WHERE a.x + b.x + c.x = 7"
            )
        assert connection.execute("SELECT count(*) FROM wide").fetchone() == (3_000,)


def test_a_read_below_an_index_s_history_is_refused_and_nothing_else_happens(
    server: Server,
) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE past (a int)")
        connection.execute("CREATE MATERIALIZED VIEW past_mv AS SELECT a FROM past")
        connection.execute("CREATE VIEW past_view AS SELECT a FROM past_mv")
        connection.execute("CREATE INDEX past_index ON past_view (a)")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT * FROM past_view AS OF 1")
        assert refused.value.sqlstate in ("22000", "55000")
        assert connection.execute("SELECT * FROM past_view").fetchall() == []


def test_a_parameter_without_a_value_is_told(server: Server) -> None:
    with server.connect() as connection, psycopg.ClientCursor(connection) as cursor:
        for statement in (b"SELECT $1::int", b"EXPLAIN SELECT $1::int"):
            with pytest.raises(psycopg.errors.UndefinedParameter, match="no parameter"):
                cursor.execute(statement)


def test_execute_follows_what_the_session_prepared(server: Server) -> None:
    with server.connect() as first, server.connect() as second:
        first.execute("PREPARE foo (int) AS SELECT $1 + 1", prepare=False)
        second.execute("PREPARE foo (text) AS SELECT $1 || '!'", prepare=False)
        for _ in range(2):
            assert first.execute("EXECUTE foo('1')", prepare=False).fetchone() == (2,)
            assert second.execute("EXECUTE foo('1')", prepare=False).fetchone() == ("1!",)


def test_rollback_takes_set_back(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("SET application_name = 'before'")
        for end, expected in (("ROLLBACK", "before"), ("COMMIT", "after")):
            connection.execute("BEGIN")
            connection.execute("SET application_name = 'after'")
            connection.execute(end)
            assert connection.execute("SHOW application_name").fetchone() == (expected,)


def test_values_that_would_not_be_honoured_are_refused(server: Server) -> None:
    with server.connect() as connection:
        for statement in ("SET DateStyle = 'German'", "SET TimeZone = 'Europe/Rome'"):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                connection.execute(statement)
        assert connection.execute("SELECT 'abc'::bytea || 'x'").fetchone() == (b"abcx",)
        assert connection.execute("SELECT ready FROM (SHOW CLUSTER REPLICAS) AS s").fetchall() == [
            (True,)
        ]
