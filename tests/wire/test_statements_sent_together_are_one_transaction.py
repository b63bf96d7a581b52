"""Goal: several statements sent as one text happen together or not at all.

Method: psycopg's client-side cursor sends them as one simple query; where PostgreSQL's rules are
the same, it is asked too.
"""

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]

# Texts that must do the same on both; then what the table holds.
TEXTS = (
    "INSERT INTO together VALUES (1); INSERT INTO together VALUES (2)",
    "INSERT INTO together VALUES (3); INSERT INTO together SELECT 1 / 0",
    "INSERT INTO together VALUES (4); INSERT INTO nowhere VALUES (1)",
    "BEGIN; INSERT INTO together VALUES (5); COMMIT; INSERT INTO together VALUES (6)",
    "INSERT INTO together VALUES (7); COMMIT; INSERT INTO together VALUES (8); SELECT 1 / 0",
    "INSERT INTO together VALUES (9); ROLLBACK",
    "INSERT INTO together VALUES (10); BEGIN; INSERT INTO together VALUES (11)",
    "ROLLBACK",
    "DELETE FROM together WHERE a = 1; UPDATE together SET a = 20 WHERE a = 2",
    "UPDATE together SET a = a + 1; UPDATE together SET a = a + 1",
    "SELECT 1; SELECT 2",
)


def sent(connection: Connection, text: str) -> str | None:
    """The SQLSTATE that the text ended with; None: all went well."""
    with psycopg.ClientCursor(connection) as cursor:
        try:
            cursor.execute(text.encode())
        except psycopg.Error as error:
            return error.sqlstate
    return None


def held(connection: Connection) -> list[int]:
    return [a for (a,) in connection.execute("SELECT a FROM together ORDER BY a")]


def test_they_do_what_they_do_in_postgresql(server: Server, postgres_dsn: str) -> None:
    with (
        server.connect() as ours,
        psycopg.connect(postgres_dsn, autocommit=True) as theirs,
    ):
        for connection in (ours, theirs):
            connection.execute("CREATE TABLE together (a int)")
        for text in TEXTS:
            assert sent(ours, text) == sent(theirs, text), text
            if "BEGIN; INSERT INTO together VALUES (11)" not in text:
                assert held(ours) == held(theirs), text
        assert held(ours) != []
        theirs.execute("DROP TABLE together")


def test_others_see_them_at_one_time(server: Server) -> None:
    with server.connect() as one, server.connect() as other:
        one.execute("CREATE TABLE pairs (a int)")
        one.execute("CREATE MATERIALIZED VIEW odd AS SELECT count(*) % 2 AS n FROM pairs")
        other.execute("BEGIN")
        other.execute("DECLARE c CURSOR FOR SUBSCRIBE (SELECT n FROM odd)")
        other.execute("FETCH 1 c")
        for _ in range(20):
            sent(one, "INSERT INTO pairs VALUES (1); INSERT INTO pairs VALUES (2)")
        rows = other.execute("FETCH ALL c WITH (TIMEOUT = '1s')").fetchall()
        assert rows == []  # never an odd number
        other.execute("ROLLBACK")


def test_reading_and_writing_are_apart_in_a_text_as_in_a_block(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE apart (a int)")
        assert sent(connection, "INSERT INTO apart VALUES (1); SELECT * FROM apart") == "25000"
        assert sent(connection, "SELECT * FROM apart; INSERT INTO apart VALUES (2)") == "25006"
        assert connection.execute("SELECT * FROM apart").fetchall() == []
        # A change of objects commits what came before it.
        assert sent(connection, "INSERT INTO apart VALUES (3); CREATE TABLE apart2 (a int)") is None
        assert connection.execute("SELECT * FROM apart").fetchall() == [(3,)]


def test_cursors_live_as_long_as_the_text(server: Server) -> None:
    with server.connect() as connection:
        text = "DECLARE c CURSOR FOR VALUES (1), (2); FETCH 1 c"
        assert sent(connection, text) is None
        assert sent(connection, "FETCH 1 c") == "34000"
        assert sent(connection, "DECLARE c CURSOR FOR VALUES (1)") == "25P01"


def test_a_transaction_stays_within_what_it_began_to_read(server: Server) -> None:
    with server.connect() as connection:
        for schema in ("domain_a", "domain_b"):
            connection.execute(f"CREATE SCHEMA {schema}".encode())
            connection.execute(f"CREATE TABLE {schema}.t (a int)".encode())
            connection.execute(f"CREATE TABLE {schema}.u (a int)".encode())
        connection.execute("CREATE VIEW domain_b.over_a AS SELECT a FROM domain_a.u")
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM domain_a.t")
        connection.execute("SELECT * FROM domain_a.u")
        connection.execute("SELECT * FROM domain_b.over_a")
        connection.execute("SELECT count(*) FROM mz_tables")
        with pytest.raises(psycopg.Error, match="same timedomain") as refused:
            connection.execute("SELECT * FROM domain_b.t")
        assert refused.value.sqlstate == "25000"
        assert '"materialize.domain_a.u"' in (refused.value.diag.message_detail or "")
        connection.execute("ROLLBACK")
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM domain_a.t, domain_b.t")
        connection.execute("SELECT * FROM domain_b.u")
        connection.execute("COMMIT")


def test_modes_are_set_before_the_first_query(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE modes (a int)")
        for statement in (
            "SET transaction_isolation = 'serializable'",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "RESET transaction_isolation",
            "SET cluster = 'default'",
            "BEGIN READ WRITE",
        ):
            connection.execute("BEGIN READ ONLY")
            connection.execute("SELECT 1")
            with pytest.raises(psycopg.errors.ActiveSqlTransaction):
                connection.execute(statement.encode())
            connection.execute("ROLLBACK")
            connection.execute("BEGIN READ ONLY")
            connection.execute(statement.encode())
            connection.execute("ROLLBACK")
        connection.execute("BEGIN READ ONLY")
        connection.execute("BEGIN READ WRITE")
        connection.execute("INSERT INTO modes VALUES (1)")
        connection.execute("COMMIT")
        assert connection.execute("SELECT * FROM modes").fetchall() == [(1,)]


def test_what_has_no_time_or_too_much_size_is_refused(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE timed (a text)")
        for statement in (
            "INSERT INTO timed VALUES (mz_now()::text)",
            "INSERT INTO timed VALUES ('') RETURNING mz_now()",
            "UPDATE timed SET a = mz_now()::text",
            "DELETE FROM timed WHERE mz_now()::text = a",
            "SELECT now() AS OF 1",
            "SELECT * FROM timed AS OF now()",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                connection.execute(statement.encode())
        connection.execute("SET max_query_result_size = '1kB'")
        connection.execute("SELECT 1")
        with pytest.raises(psycopg.Error, match=r"result exceeds max size of 1\.0 KiB"):
            connection.execute("SELECT repeat('x', 2000)")
