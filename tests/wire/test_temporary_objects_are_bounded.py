"""Goal: what a session has of its own takes bounded memory, and a text that fails leaves nothing.

Method: sessions that ask for more than there is room for, and look what they have then.
"""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]


@pytest.fixture
def session(server: Server) -> Iterator[Connection]:
    with server.connect() as connection:
        yield connection


def refusal(connection: Connection, statement: str) -> tuple[str | None, str | None]:
    """The SQLSTATE and the hint."""
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(statement.encode())
    return refused.value.sqlstate, refused.value.diag.message_hint


def filled(connection: Connection, name: str, rows: int, value: str = "g") -> None:
    connection.execute(f"CREATE TEMP TABLE {name} (k int, v text)".encode())
    series = f"SELECT g, {value} FROM generate_series(1, {rows}) AS g"
    connection.execute(f"INSERT INTO {name} {series}".encode())


def test_few_rows_go_into_a_subscription(session: Connection) -> None:
    session.execute("CREATE TABLE subscribed_with (k int)")
    session.execute("INSERT INTO subscribed_with VALUES (2), (9999), (10001)")
    filled(session, "few", 10_000)
    query = "SELECT f.k FROM few f JOIN subscribed_with s ON s.k = f.k"
    session.execute("BEGIN")
    session.execute(f"DECLARE c CURSOR FOR SUBSCRIBE ({query})".encode())
    rows = session.execute("FETCH 2 c WITH (TIMEOUT = '60s')").fetchall()
    session.execute("ROLLBACK")
    assert sorted(row[-1] for row in rows) == [2, 9999]
    session.execute("INSERT INTO few VALUES (0, '')")
    for text in (query, "SELECT * FROM few"):
        assert refusal(session, f"COPY (SUBSCRIBE ({text})) TO STDOUT") == (
            "54000",
            "Keep the rows in a table that is not temporary.",
        )
    # As often as they are read, and by bytes too.
    session.execute("DELETE FROM few WHERE k > 5000")
    twice = "SELECT a.k FROM few a JOIN few b ON b.k = a.k JOIN subscribed_with s ON s.k = a.k"
    assert refusal(session, f"COPY (SUBSCRIBE ({twice})) TO STDOUT")[0] == "54000"
    filled(session, "wide", 5, "repeat('x', 1000000)")
    assert refusal(session, "COPY (SUBSCRIBE (SELECT k FROM wide)) TO STDOUT")[0] == "54000"
    # A query has no such bound.
    counted = "SELECT count(*) FROM few a JOIN few b ON b.k = a.k"
    assert session.execute(counted.encode()).fetchone() == (5001,)


def test_what_a_block_adds_is_counted_before_commit(session: Connection) -> None:
    session.execute("CREATE TEMP TABLE added (a text)")
    session.execute("CREATE TEMP TABLE beside (a text)")
    session.execute("BEGIN")
    million = "SELECT repeat('x', 1000000) FROM generate_series(1, 30)"
    session.execute(f"INSERT INTO added {million}".encode())
    session.execute("SAVEPOINT s")
    session.execute(f"INSERT INTO beside {million}".encode())
    refused = refusal(session, f"INSERT INTO added {million}")
    assert refused[0] == "53000"
    assert str(refused[1]).startswith("Commit more often")
    # What is taken back is not counted any more.
    session.execute("ROLLBACK TO s")
    session.execute(f"INSERT INTO added {million}".encode())
    session.execute("COMMIT")
    assert session.execute("SELECT count(*) FROM added").fetchone() == (60,)
    assert session.execute("SELECT count(*) FROM beside").fetchone() == (0,)


def test_columns_that_are_too_many_rows_are_refused(session: Connection) -> None:
    session.execute("CREATE TEMP TABLE copied (a int)")
    lines = "1\n" * 1_000_000
    with (
        pytest.raises(psycopg.Error, match="limited to") as refused,
        session.cursor().copy("COPY copied FROM STDIN") as copied,
    ):
        copied.write(lines)
    assert refused.value.sqlstate == "53000"
    assert session.execute("SELECT count(*) FROM copied").fetchone() == (0,)


def test_a_text_whose_commit_fails_leaves_no_objects(session: Connection) -> None:
    filled(session, "large", 40, "repeat('x', 1000000) || g")
    text = "CREATE TEMP TABLE left_over (a int); INSERT INTO large SELECT * FROM large"
    assert refusal(session, text)[0] == "53000"
    assert refusal(session, "SELECT * FROM left_over")[0] == "42P01"
    assert session.execute("SELECT count(*) FROM large").fetchone() == (40,)
    session.execute("CREATE TEMP TABLE left_over (a int)")


def test_many_rows_change_in_and_out_of_blocks(session: Connection) -> None:
    filled(session, "changing", 20_000)
    session.execute("BEGIN")
    session.execute("UPDATE changing SET v = 'even' WHERE k % 2 = 0")
    session.execute("DELETE FROM changing WHERE v = 'even' AND k > 10000")
    session.execute("COMMIT")
    session.execute("DELETE FROM changing WHERE k = 7")
    query = "SELECT v = 'even', count(*), min(k), max(k) FROM changing GROUP BY 1 ORDER BY 1"
    assert session.execute(query).fetchall() == [
        (False, 9_999, 1, 19_999),
        (True, 5_000, 2, 10_000),
    ]
