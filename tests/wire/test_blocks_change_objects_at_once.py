"""Goal: a transaction block changes objects at COMMIT, all of them or none.

Method: two connections; the second looks, or interferes, while the first one's block is open.
"""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Connection, Connection]]:
    """Two sessions in a schema that is new."""
    with server.connect() as one, server.connect() as other:
        one.execute("DROP SCHEMA IF EXISTS block CASCADE")
        one.execute("CREATE SCHEMA block")
        for connection in (one, other):
            connection.execute("SET search_path = block")
        yield one, other


def names(connection: Connection) -> list[str]:
    found = connection.execute(
        "SELECT o.name FROM mz_objects o JOIN mz_schemas s ON s.id = o.schema_id"
        " WHERE s.name = 'block' ORDER BY o.name"
    )
    return [name for (name,) in found]


def test_all_of_it_is_seen_after_commit_and_nothing_before(
    pair: tuple[Connection, Connection],
) -> None:
    one, other = pair
    one.execute("BEGIN")
    one.execute("CREATE TABLE t (a int)")
    one.execute("CREATE VIEW v AS SELECT a + 1 AS b FROM t")
    one.execute("COMMENT ON VIEW v IS 'one more'")
    one.execute("ALTER VIEW v RENAME TO w")
    one.execute("CREATE INDEX ON t (a)")
    assert names(other) == []
    one.execute("COMMIT")
    assert names(other) == ["t", "t_a_idx", "w"]
    other.execute("INSERT INTO t VALUES (1)")
    assert other.execute("SELECT b FROM w").fetchall() == [(2,)]
    comments = "SELECT comment FROM mz_internal.mz_comments WHERE comment = 'one more'"
    assert other.execute(comments).fetchall() == [("one more",)]


def test_rollback_and_errors_leave_nothing(pair: tuple[Connection, Connection]) -> None:
    one, other = pair
    one.execute("BEGIN")
    one.execute("CREATE TABLE t (a int)")
    one.execute("ROLLBACK")
    assert names(one) == []
    one.execute("BEGIN")
    one.execute("CREATE TABLE t (a int)")
    with pytest.raises(psycopg.errors.DuplicateTable):
        one.execute("CREATE TABLE t (b int)")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        one.execute("CREATE TABLE u (b int)")
    assert one.execute("COMMIT").statusmessage == "ROLLBACK"
    assert names(other) == []


def test_what_others_do_meanwhile_is_reckoned_with(pair: tuple[Connection, Connection]) -> None:
    one, other = pair
    other.execute("CREATE TABLE base (a int)")
    one.execute("BEGIN")
    one.execute("CREATE VIEW over_base AS SELECT a FROM base")
    one.execute("CREATE TABLE mine (a int)")
    other.execute("CREATE TABLE theirs (a int)")
    one.execute("COMMIT")
    assert names(other) == ["base", "mine", "over_base", "theirs"]
    one.execute("BEGIN")
    one.execute("CREATE TABLE again (a int)")
    one.execute("CREATE VIEW over_theirs AS SELECT a FROM theirs")
    other.execute("DROP TABLE theirs")
    with pytest.raises(psycopg.errors.UndefinedTable):
        one.execute("COMMIT")
    assert "again" not in names(other)
    one.execute("BEGIN")
    one.execute("CREATE TABLE again (a int)")
    other.execute("CREATE TABLE again (b text)")
    with pytest.raises(psycopg.errors.DuplicateTable):
        one.execute("COMMIT")
    assert one.execute("SELECT count(b) FROM again").fetchone() == (0,)


def test_a_block_that_changes_objects_does_nothing_else(
    pair: tuple[Connection, Connection],
) -> None:
    one, _ = pair
    one.execute("CREATE TABLE t (a int)")
    for statement in ("SELECT 1", "SELECT a FROM t", "INSERT INTO t VALUES (1)", "SUBSCRIBE t"):
        one.execute("BEGIN")
        one.execute("CREATE TABLE u (a int)")
        with pytest.raises(psycopg.Error, match="restricted to just modifying objects") as refused:
            one.execute(statement.encode())
        assert refused.value.sqlstate == "25000"
        one.execute("ROLLBACK")
    for statement, sqlstate in (("SELECT a FROM t", "25006"), ("DELETE FROM t", "25000")):
        one.execute("BEGIN")
        one.execute(statement.encode())
        with pytest.raises(psycopg.Error) as refused:
            one.execute("CREATE TABLE u (a int)")
        assert refused.value.sqlstate == sqlstate
        one.execute("ROLLBACK")


def test_what_needs_its_inputs_history_comes_alone(pair: tuple[Connection, Connection]) -> None:
    one, other = pair
    one.execute("CREATE TABLE t (a int)")
    one.execute("INSERT INTO t VALUES (3)")
    one.execute("BEGIN")
    one.execute("CREATE MATERIALIZED VIEW mv AS SELECT a FROM t")
    assert names(other) == ["t"]
    one.execute("COMMIT")
    assert other.execute("SELECT a FROM mv").fetchall() == [(3,)]
    one.execute("BEGIN")
    one.execute("CREATE MATERIALIZED VIEW mv2 AS SELECT a FROM t")
    with pytest.raises(psycopg.Error, match="can only execute a single statement") as refused:
        one.execute("CREATE TABLE u (a int)")
    assert refused.value.sqlstate == "25001"
    one.execute("ROLLBACK")


def test_a_driver_that_begins_by_itself_can_create_tables(server: Server) -> None:
    with server.connect(autocommit=False) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS by_driver (a int)")
        connection.commit()
        connection.execute("INSERT INTO by_driver VALUES (1)")
        connection.commit()
        assert connection.execute("SELECT a FROM by_driver").fetchall() == [(1,)]
        connection.commit()
        connection.execute("DROP TABLE by_driver")
        connection.rollback()
        assert connection.execute("SELECT a FROM by_driver").fetchall() == [(1,)]
        connection.commit()
        connection.execute("DROP TABLE by_driver")
        connection.commit()
