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


def test_a_rename_is_told_as_what_it_renamed(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE called_t (a int)")
        connection.execute("CREATE VIEW called_v AS SELECT 1 AS a")
        connection.execute("CREATE MATERIALIZED VIEW called_m AS SELECT 1 AS a")
        connection.execute("CREATE INDEX called_i ON called_v (a)")
        for kind, name in (
            ("INDEX", "called_i"),
            ("MATERIALIZED VIEW", "called_m"),
            ("TABLE", "called_t"),
        ):
            ended = connection.execute(f"ALTER {kind} {name} RENAME TO {name}2")
            assert ended.statusmessage == f"ALTER {kind}"
        connection.execute("DROP INDEX called_i2")
        ended = connection.execute("ALTER VIEW called_v RENAME TO called_v2")
        assert ended.statusmessage == "ALTER VIEW"


def test_a_session_says_that_its_user_may_do_anything(server: Server) -> None:
    with server.connect() as connection:
        assert connection.execute("SHOW is_superuser").fetchone() == ("on",)
        assert connection.execute(
            "SELECT rolsuper, mz_is_superuser() FROM pg_roles WHERE rolname = current_user"
        ).fetchone() == (True, True)
        assert connection.info.parameter_status("is_superuser") == "on"


def test_values_that_name_objects_are_names_as_text_and_numbers_in_binary(server: Server) -> None:
    query = (
        "SELECT 'naming.t'::regclass, 'pg_class'::regclass, 'initcap'::regproc, 'int4'::regtype,"
        " NULL::regclass, 0::oid::regclass, 'pg_class'::regclass::oid"
    )
    with server.connect() as connection:
        connection.execute("CREATE SCHEMA naming")
        connection.execute("CREATE TABLE naming.t (a int)")
        row = connection.execute(query).fetchone()
        assert row == ("naming.t", "pg_class", "initcap", "integer", None, "-", 1259)
        with connection.cursor(binary=True) as cursor:
            cursor.execute("SELECT 'pg_class'::regclass")
            assert cursor.fetchone() == ((1259).to_bytes(4, "big"),)
        with connection.cursor().copy("COPY (SELECT 'naming.t'::regclass) TO STDOUT") as copied:
            assert b"".join(map(bytes, copied)) == b"naming.t\n"
        connection.execute("SET search_path = naming")
        assert connection.execute("SELECT 'naming.t'::regclass").fetchone() == ("t",)
