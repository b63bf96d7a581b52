"""Goal: temporary tables and views are seen by their session alone and leave nothing behind.

Method: two connections to one server; scripts whose meaning is the same are also run on PostgreSQL.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]

# Statements of one session, where PostgreSQL's temporary tables do the same.
SCRIPT = """
CREATE TABLE hidden_{n} (a int)
INSERT INTO hidden_{n} VALUES (1), (2)
CREATE TEMP TABLE hidden_{n} (a int NOT NULL, b numeric(6,2) DEFAULT 1.005)
INSERT INTO hidden_{n} (a) VALUES (7), (8)
SELECT a, b FROM hidden_{n} ORDER BY a
INSERT INTO hidden_{n} SELECT a + 10, NULL FROM public.hidden_{n}
UPDATE hidden_{n} SET b = b * 2 WHERE a > 7 RETURNING a, b
DELETE FROM hidden_{n} WHERE b IS NULL
SELECT sum(a), count(*) FROM hidden_{n}
INSERT INTO hidden_{n} VALUES (NULL)
CREATE TEMP VIEW over_{n} AS SELECT h.a FROM hidden_{n} h JOIN public.hidden_{n} p ON p.a = h.a - 6
SELECT * FROM over_{n} ORDER BY a
DROP TABLE hidden_{n}
DROP TABLE pg_temp.hidden_{n} CASCADE
SELECT a FROM hidden_{n} ORDER BY a
SELECT * FROM over_{n}
CREATE TEMP TABLE gone_{n} (a int) ON COMMIT DROP
SELECT * FROM gone_{n}
BEGIN
CREATE TEMP TABLE kept_{n} (a int)
INSERT INTO kept_{n} VALUES (1), (1), (2)
COMMIT
SELECT a, count(*) FROM kept_{n} GROUP BY a ORDER BY a
BEGIN
INSERT INTO kept_{n} VALUES (3)
DELETE FROM kept_{n} WHERE a = 1
ROLLBACK
SELECT a FROM kept_{n} ORDER BY a
SELECT relkind, relname FROM pg_class WHERE relname = 'kept_{n}'
DISCARD TEMP
SELECT * FROM kept_{n}
DROP TABLE hidden_{n}
"""


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Connection, Connection]]:
    with server.connect() as one, server.connect() as other:
        yield one, other


def outcome(connection: Connection, statement: str) -> object:
    """The rows, the number of them that were changed, or the SQLSTATE."""
    try:
        cursor = connection.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate
    return cursor.fetchall() if cursor.description is not None else cursor.statusmessage


def test_a_session_sees_what_it_would_see_in_postgresql(server: Server, postgres_dsn: str) -> None:
    statements = SCRIPT.format(n="script").strip().split("\n")
    with (
        server.connect() as ours,
        psycopg.connect(postgres_dsn, autocommit=True) as theirs,
    ):
        for statement in statements:
            assert outcome(ours, statement) == outcome(theirs, statement), statement


def test_nobody_else_sees_them(pair: tuple[Connection, Connection]) -> None:
    one, other = pair
    one.execute("CREATE TABLE seen_by_all (a int)")
    one.execute("CREATE TEMP TABLE seen_by_one (a int)")
    one.execute("CREATE TEMP VIEW seen_by_all AS SELECT 'mine' AS a")
    assert one.execute("SELECT a FROM seen_by_all").fetchall() == [("mine",)]
    assert other.execute("SELECT a FROM seen_by_all").fetchall() == []
    for statement in (
        "SELECT * FROM seen_by_one",
        "SELECT * FROM mz_temp.seen_by_one",
        "DROP TABLE seen_by_one",
        "INSERT INTO mz_temp.seen_by_one VALUES (1)",
    ):
        with pytest.raises(psycopg.Error) as refused:
            other.execute(statement.encode())
        assert refused.value.sqlstate in ("42P01", "3F000"), statement
    listed = "SELECT count(*) FROM mz_objects WHERE name = 'seen_by_one'"
    assert one.execute(listed).fetchone() == (1,)
    assert other.execute(listed).fetchone() == (0,)
    # The same name for something else, at the same time.
    other.execute("CREATE TEMP TABLE seen_by_one (b text)")
    other.execute("INSERT INTO seen_by_one VALUES ('theirs')")
    assert one.execute("SELECT * FROM seen_by_one").fetchall() == []
    assert other.execute("SELECT * FROM seen_by_one").fetchall() == [("theirs",)]


def test_prepared_statements_follow_what_hides_a_name(pair: tuple[Connection, Connection]) -> None:
    one, other = pair
    one.execute("CREATE TABLE twice (a int)")
    one.execute("INSERT INTO twice VALUES (1)")
    query = "SELECT a FROM twice WHERE a > %s"
    for _ in range(2):
        assert one.execute(query, [0], prepare=True).fetchall() == [(1,)]
        assert other.execute(query, [0], prepare=True).fetchall() == [(1,)]
    one.execute("CREATE TEMP TABLE twice (a int)")
    assert one.execute(query, [0], prepare=True).fetchall() == []
    assert other.execute(query, [0], prepare=True).fetchall() == [(1,)]
    for number in range(3):
        assert one.execute(f"SELECT a FROM twice WHERE a = {number}".encode()).fetchall() == []
    assert other.execute("SELECT a FROM twice WHERE a = 1").fetchall() == [(1,)]
    one.execute("DROP TABLE twice")
    assert one.execute(query, [0], prepare=True).fetchall() == [(1,)]


def test_a_view_goes_with_what_others_drop_and_follows_what_they_rename(
    pair: tuple[Connection, Connection],
) -> None:
    one, other = pair
    one.execute("CREATE SCHEMA moving")
    for name in ("a", "b"):
        one.execute(f"CREATE TABLE moving.{name} (x text)".encode())
        one.execute(f"INSERT INTO moving.{name} VALUES ('{name}')".encode())
    one.execute("CREATE TEMP VIEW over_a AS SELECT a.x FROM moving.a")
    one.execute("CREATE TEMP VIEW over_both AS SELECT v.x, b.x AS y FROM over_a v, moving.b")
    other.execute("ALTER TABLE moving.a RENAME TO c")
    other.execute("ALTER TABLE moving.b RENAME TO a")
    assert one.execute("SELECT * FROM over_both").fetchall() == [("a", "b")]
    shown = one.execute("SHOW CREATE VIEW over_a").fetchone()
    assert shown is not None
    assert "moving.c" in shown[1].replace('"', "")
    other.execute("DROP TABLE moving.c")
    with pytest.raises(psycopg.errors.UndefinedTable):
        one.execute("SELECT * FROM over_both")
    assert one.execute("SELECT count(*) FROM mz_views WHERE schema_id = '0'").fetchone() == (0,)
    assert one.execute("SELECT * FROM moving.a").fetchall() == [("b",)]


def test_they_are_read_together_with_stored_rows_and_by_subscriptions(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE stored (k int, v text)")
        connection.execute("INSERT INTO stored VALUES (1, 'one'), (2, 'two'), (3, 'three')")
        connection.execute("CREATE INDEX ON stored (k)")
        connection.execute("CREATE MATERIALIZED VIEW kept AS SELECT k, v FROM stored WHERE k < 3")
        connection.execute("CREATE TEMP TABLE wanted (k int)")
        with connection.cursor().copy("COPY wanted FROM STDIN") as copied:
            copied.write("2\n3\n")
        joined = "SELECT v FROM {} JOIN wanted USING (k) ORDER BY v"
        assert connection.execute(joined.format("kept").encode()).fetchall() == [("two",)]
        rows = connection.execute(joined.format("stored").encode()).fetchall()
        assert rows == [("three",), ("two",)]
        lines = connection.execute("EXPLAIN SELECT * FROM wanted").fetchall()
        assert any("session's memory" in line for line, *_ in lines)
        connection.execute("BEGIN")
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE (SELECT k FROM wanted)")
        fetched = connection.execute("FETCH ALL c WITH (TIMEOUT = '10s')").fetchall()
        assert sorted(row[-1] for row in fetched) == [2, 3]
        connection.execute("COMMIT")


def test_rows_are_bounded(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TEMP TABLE large (a text)")
        connection.execute("INSERT INTO large VALUES (repeat('x', 1000000))")
        for _ in range(5):
            connection.execute("INSERT INTO large SELECT a || 'y' FROM large")
        with pytest.raises(psycopg.Error, match="limited to") as refused:
            connection.execute(
                "INSERT INTO large SELECT a || b FROM large, (VALUES ('y'), ('z')) AS v (b)"
            )
        assert refused.value.sqlstate == "53000"
        assert connection.execute("SELECT count(*) FROM large").fetchone() == (32,)
        connection.execute("DELETE FROM large")
        connection.execute("INSERT INTO large VALUES ('room again')")


def stored_files(data: Path) -> set[str]:
    return {str(path.relative_to(data)) for path in (data / "blob").rglob("*")}


def test_a_lost_connection_takes_them_with_it(server: Server) -> None:
    with server.connect() as watcher:
        shards = "SELECT count(*) FROM mz_internal.mz_storage_shards"
        before = watcher.execute(shards).fetchone()
        audited = watcher.execute("SELECT count(*) FROM mz_audit_events").fetchone()
        files = stored_files(server.data)
        lost = server.connect()
        lost.execute("CREATE TEMP TABLE lost (a int)")
        lost.execute("INSERT INTO lost SELECT generate_series(1, 1000)")
        lost.execute("BEGIN")
        lost.execute("INSERT INTO lost VALUES (0)")
        assert watcher.execute(shards).fetchone() == before
        lost.close()
        assert watcher.execute("SELECT count(*) FROM mz_audit_events").fetchone() == audited
        assert stored_files(server.data) == files
    with server.connect() as again, pytest.raises(psycopg.errors.UndefinedTable):
        again.execute("SELECT * FROM lost")
