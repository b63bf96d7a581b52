"""Where a subscription begins and ends, and in which form clients may ask for it."""

import asyncio
import threading
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest

from tests.support.server import Server, eventually
from tests.support.subscriber import held_at, metric, subscribed


@pytest.fixture
def connection(server: Server) -> "Iterator[psycopg.Connection[tuple]]":
    with server.connect() as opened:
        opened.execute("CREATE SCHEMA IF NOT EXISTS follow")
        opened.execute("SET search_path = follow")
        opened.execute("DROP TABLE IF EXISTS t CASCADE")
        opened.execute("CREATE TABLE t (a int, b text)")
        opened.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        yield opened


def now(connection: "psycopg.Connection[tuple]") -> int:
    row = connection.execute("SELECT mz_now()::text").fetchone()
    assert row is not None
    return int(row[0])


def rows_of(connection: "psycopg.Connection[tuple]", text: str) -> list[tuple]:
    return list(connection.cursor().stream(text))


def test_a_table_is_told_as_it_is_and_as_it_changes(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    with subscribed(server, "TAIL t", "follow") as follower:
        snapshot = follower.wait_for(2)
        assert {row[1:] for row in snapshot} == {(1, 1, "x"), (1, 2, "y")}
        assert len({row[0] for row in snapshot}) == 1
        connection.execute("UPDATE t SET b = 'z' WHERE a = 1")
        changes = follower.wait_for(4)[2:]
        assert {row[1:] for row in changes} == {(-1, 1, "x"), (1, 1, "z")}
        assert len({row[0] for row in changes}) == 1
        follower.stop()
        assert isinstance(follower.error, psycopg.errors.QueryCanceled)


def test_up_to_ends_it(server: Server, connection: "psycopg.Connection[tuple]") -> None:
    end = now(connection) + 1_500
    with subscribed(server, f"SUBSCRIBE t WITH (PROGRESS) UP TO {end}", "follow") as follower:
        follower.wait_for(2)
        connection.execute("INSERT INTO t VALUES (3, 'z')")
        assert follower.wait_ended() is None
    assert all(row[0] < end or row[1] for row in follower.rows)
    assert follower.rows[-1][:2] == (end, True)
    assert (3, "z") in held_at(follower.rows, end, progress=True)


def test_as_of_begins_in_the_past(connection: "psycopg.Connection[tuple]") -> None:
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM t")
    past = now(connection)
    connection.execute("COMMIT")
    connection.execute("INSERT INTO t VALUES (3, 'z')")
    end = now(connection) + 1
    text = f"SUBSCRIBE t AS OF {past} UP TO {end}"
    told = rows_of(connection, text)
    assert sorted(row[1:] for row in told[:2]) == [(1, 1, "x"), (1, 2, "y")]
    assert [int(row[0]) for row in told[:2]] == [past, past]
    assert [row[1:] for row in told[2:]] == [(1, 3, "z")]
    without = rows_of(connection, f"SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {past} UP TO {end}")
    assert without == told[2:]


def test_bounds_that_cannot_be_are_refused(connection: "psycopg.Connection[tuple]") -> None:
    ts = now(connection)
    with pytest.raises(psycopg.errors.DataException, match="UP TO"):
        rows_of(connection, f"SUBSCRIBE t AS OF {ts + 10} UP TO {ts}")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    with pytest.raises(psycopg.errors.DataException, match="valid timestamp"):
        rows_of(connection, "SUBSCRIBE m AS OF 5")
    assert rows_of(connection, f"SUBSCRIBE t AS OF {ts} UP TO {ts}") == []
    told = rows_of(connection, f"SUBSCRIBE t AS OF AT LEAST 5 UP TO {now(connection) + 800}")
    assert len(told) == 2


def test_as_of_in_the_future_waits(server: Server, connection: "psycopg.Connection[tuple]") -> None:
    future = now(connection) + 1_200
    with subscribed(server, f"SUBSCRIBE t AS OF {future}", "follow") as follower:
        connection.execute("DELETE FROM t WHERE a = 1")
        assert follower.wait_for(1) == [(future, 1, 2, "y")]


def test_a_constant_ends_after_its_rows(connection: "psycopg.Connection[tuple]") -> None:
    told = rows_of(connection, "SUBSCRIBE (VALUES (1), (2), (2))")
    assert sorted(row[1:] for row in told) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("options", ["", "WITH (SNAPSHOT = false)", "WITH (PROGRESS)"])
def test_a_view_that_is_complete_ends_after_its_rows(
    connection: "psycopg.Connection[tuple]", options: str
) -> None:
    connection.execute("DROP MATERIALIZED VIEW IF EXISTS complete")
    connection.execute("CREATE MATERIALIZED VIEW complete AS SELECT 7 AS a")
    told = rows_of(connection, f"SUBSCRIBE complete {options}")
    changes = [row[-2:] for row in told if row[1] is not True]
    assert changes == ([] if "SNAPSHOT" in options else [(1, 7)])


def test_parameters_are_part_of_the_query(
    connection: "psycopg.Connection[tuple]",
) -> None:
    text = f"SUBSCRIBE (SELECT b FROM t WHERE a = %s) UP TO {now(connection) + 500}"
    told = list(connection.cursor().stream(text, (2,)))
    assert [row[1:] for row in told] == [(1, "y")]


def test_copy_sends_the_same(connection: "psycopg.Connection[tuple]") -> None:
    with connection.cursor().copy("COPY (SUBSCRIBE t WITH (PROGRESS)) TO STDOUT") as lines:
        first = lines.read_row()
        assert first is not None
        assert first[1:] == ("t", None, None, None)
        rows = [lines.read_row(), lines.read_row()]
        assert sorted(row[1:] for row in rows if row) == [
            ("f", "1", "1", "x"),
            ("f", "1", "2", "y"),
        ]
        connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            list(lines.rows())


def test_a_cursor_gives_what_came_in_time(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    with server.connect() as writer, connection.transaction():
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE t")
        described = connection.execute("FETCH 0 c")
        assert [c.name for c in described.description or ()] == [
            "mz_timestamp",
            "mz_diff",
            "a",
            "b",
        ]
        assert described.fetchall() == []
        assert len(connection.execute("FETCH 1 c").fetchall()) == 1
        rest = connection.execute("FETCH ALL c WITH (TIMEOUT = '300ms')").fetchall()
        assert len(rest) == 1
        assert connection.execute("FETCH 5 c WITH (TIMEOUT = '0s')").fetchall() == []
        writer.execute("INSERT INTO follow.t VALUES (3, 'z'), (4, 'w')")
        assert len(connection.execute("FETCH 1 c WITH (TIMEOUT = '1h')").fetchall()) == 1
        assert len(connection.execute("FETCH 10 c").fetchall()) == 1, (
            "without timeout what is there"
        )


def test_a_fetch_outlasts_the_statement_timeout_and_can_be_cancelled(
    connection: "psycopg.Connection[tuple]",
) -> None:
    connection.execute("SET statement_timeout = '200ms'")
    connection.execute("BEGIN")
    connection.execute("DECLARE c CURSOR FOR SUBSCRIBE t WITH (SNAPSHOT = false)")
    timer = threading.Timer(1.0, connection.cancel_safe)
    timer.start()
    with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
        connection.execute("FETCH 1 c")
    timer.join()
    connection.execute("ROLLBACK")


def test_a_stream_outlasts_the_statement_timeout(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    end = now(connection) + 2_000
    connection.execute("SET statement_timeout = '300ms'")
    assert len(rows_of(connection, f"SUBSCRIBE t UP TO {end}")) == 2


async def _portal(server: Server) -> list[tuple[int, str]]:
    opened = await asyncpg.connect(server.dsn())
    try:
        async with opened.transaction():
            cursor = await opened.cursor("SUBSCRIBE follow.t")
            rows = [*await cursor.fetch(1), *await cursor.fetch(1)]
            return [(row["a"], row["b"]) for row in rows]
    finally:
        await opened.close(timeout=5)


@pytest.mark.usefixtures("connection")
def test_a_portal_gives_some_at_a_time(server: Server) -> None:
    assert sorted(asyncio.run(_portal(server))) == [(1, "x"), (2, "y")]


def test_a_transaction_may_do_nothing_else(connection: "psycopg.Connection[tuple]") -> None:
    declare = "DECLARE c CURSOR FOR SUBSCRIBE t"
    for first, second, code in (
        (declare, "SELECT * FROM t", "25000"),
        ("SELECT * FROM t", declare, "25006"),
        (declare, "DECLARE d CURSOR FOR SUBSCRIBE t", "25000"),
        (declare, "INSERT INTO t VALUES (9, 'n')", "25006"),
        ("INSERT INTO t VALUES (9, 'n')", declare, "25000"),
    ):
        connection.execute("BEGIN")
        connection.execute(first)
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(second)
        assert refused.value.sqlstate == code, (first, second)
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("source", ["t", "m", "v", "(SELECT count(*) FROM v)"])
def test_dropping_what_is_followed_ends_it(
    server: Server, connection: "psycopg.Connection[tuple]", source: str
) -> None:
    connection.execute("CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM v")
    with subscribed(server, f"SUBSCRIBE {source}", "follow") as follower:
        follower.wait_for(1)
        connection.execute("DROP TABLE t CASCADE")
        error = follower.wait_ended()
    assert isinstance(error, psycopg.errors.UndefinedTable)
    name = "v" if source.startswith("(") else source
    assert f"follow.{name} was dropped" in str(error)


@pytest.mark.parametrize("source", ["v", "m"])
def test_an_error_in_the_rows_ends_it_at_its_timestamp(
    server: Server, connection: "psycopg.Connection[tuple]", source: str
) -> None:
    connection.execute("CREATE VIEW v AS SELECT 10 / a AS q FROM t")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM v")
    with subscribed(server, f"SUBSCRIBE {source}", "follow") as follower:
        follower.wait_for(2)
        connection.execute("INSERT INTO t VALUES (5, 'five')")
        follower.wait_for(3)
        connection.execute("INSERT INTO t VALUES (0, 'zero')")
        assert isinstance(follower.wait_ended(), psycopg.errors.DivisionByZero)
        assert sorted(row[1:] for row in follower.rows) == [(1, 2), (1, 5), (1, 10)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        rows_of(connection, f"SUBSCRIBE {source}")
    connection.execute("DELETE FROM t WHERE a = 0")
    with subscribed(server, f"SUBSCRIBE {source}", "follow") as again:
        assert sorted(row[1:] for row in again.wait_for(3)) == [(1, 2), (1, 5), (1, 10)]


def test_envelopes_tell_keys(server: Server, connection: "psycopg.Connection[tuple]") -> None:
    upsert = "SUBSCRIBE t ENVELOPE UPSERT (KEY (b))"
    debezium = "SUBSCRIBE t ENVELOPE DEBEZIUM (KEY (b))"
    with (
        subscribed(server, upsert, "follow") as one,
        subscribed(server, debezium, "follow") as other,
    ):
        assert sorted(r[1:] for r in one.wait_for(2)) == [("upsert", "x", 1), ("upsert", "y", 2)]
        assert sorted(r[1:] for r in other.wait_for(2)) == [
            ("insert", "x", None, 1),
            ("insert", "y", None, 2),
        ]
        connection.execute("UPDATE t SET a = 7 WHERE b = 'x'")
        connection.execute("DELETE FROM t WHERE b = 'y'")
        connection.execute("INSERT INTO t VALUES (5, 'x'), (6, 'x')")
        assert [r[1:] for r in one.wait_for(5)[2:]] == [
            ("upsert", "x", 7),
            ("delete", "y", None),
            ("key_violation", "x", None),
        ]
        assert [r[1:] for r in other.wait_for(5)[2:]] == [
            ("upsert", "x", 1, 7),
            ("delete", "y", 2, None),
            ("key_violation", "x", None, None),
        ]


def test_order_within_a_timestamp(connection: "psycopg.Connection[tuple]") -> None:
    connection.execute("INSERT INTO t VALUES (4, 'a'), (3, 'b'), (NULL, 'c')")
    end = now(connection) + 500
    for order, expected in (("a DESC NULLS LAST", [4, 3, 2, 1, None]), ("b", [4, 3, None, 1, 2])):
        told = rows_of(connection, f"SUBSCRIBE t WITHIN TIMESTAMP ORDER BY {order} UP TO {end}")
        assert [row[2] for row in told] == expected
        end += 1_000


def test_subscriptions_of_one_relation_share_what_follows_it(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    before = metric(server, "evertide_subscription_feeds")
    with subscribed(server, "SUBSCRIBE t", "follow") as one:
        one.wait_for(2)
        with subscribed(server, "SUBSCRIBE t", "follow") as other:
            other.wait_for(2)
            assert metric(server, "evertide_subscription_feeds") == before + 1
            connection.execute("INSERT INTO t VALUES (3, 'z')")
            assert one.wait_for(3)[2] == other.wait_for(3)[2]
        connection.execute("INSERT INTO t VALUES (4, 'z')")
        assert one.wait_for(4)[3][1:] == (1, 4, "z")
        assert metric(server, "evertide_subscription_feeds") == before + 1
    eventually(lambda: metric(server, "evertide_subscription_feeds") == before)


@pytest.mark.parametrize("source", ["t", "(SELECT count(*) FROM t)"])
def test_a_client_that_leaves_leaves_nothing(
    server: Server, connection: "psycopg.Connection[tuple]", source: str
) -> None:
    before = metric(server, "evertide_subscriptions")
    leaving = server.connect()
    leaving.execute("SET search_path = follow")
    rows = leaving.cursor().stream(f"SUBSCRIBE {source}")
    next(rows)
    assert metric(server, "evertide_subscriptions") == before + 1
    leaving.pgconn.finish()
    eventually(lambda: metric(server, "evertide_subscriptions") == before)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)


@pytest.mark.parametrize(
    "end", ["COMMIT", "ROLLBACK", "ROLLBACK TO SAVEPOINT s", "CLOSE c", "CLOSE ALL", None]
)
def test_a_cursor_that_ends_leaves_nothing(
    server: Server, connection: "psycopg.Connection[tuple]", end: str | None
) -> None:
    before = metric(server, "evertide_subscriptions")
    connection.execute("BEGIN")
    connection.execute("SAVEPOINT s")
    connection.execute("DECLARE c CURSOR FOR SUBSCRIBE t")
    assert metric(server, "evertide_subscriptions") == before + 1
    if end is None:
        connection.close()
    else:
        connection.execute(end)
    eventually(lambda: metric(server, "evertide_subscriptions") == before)


def test_a_cursor_at_its_end_holds_nothing(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    before = metric(server, "evertide_subscriptions")
    end = now(connection) + 500
    with connection.transaction():
        connection.execute(f"DECLARE c CURSOR FOR SUBSCRIBE t UP TO {end}")
        assert len(connection.execute("FETCH ALL c WITH (TIMEOUT = '1h')").fetchall()) == 2
        assert metric(server, "evertide_subscriptions") == before
        assert connection.execute("FETCH ALL c").fetchall() == []


def test_a_fetch_tells_what_was_before_an_error(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    connection.execute("BEGIN")
    connection.execute("DECLARE c CURSOR FOR SUBSCRIBE t")
    with server.connect() as other:
        timer = threading.Timer(1.0, other.execute, ["DROP TABLE follow.t"])
        timer.start()
        assert len(connection.execute("FETCH ALL c WITH (TIMEOUT = '1h')").fetchall()) == 2
        timer.join()
    with pytest.raises(psycopg.errors.UndefinedTable, match="was dropped"):
        connection.execute("FETCH ALL c")
    connection.execute("ROLLBACK")


def test_short_timeouts_get_there(connection: "psycopg.Connection[tuple]") -> None:
    connection.execute("BEGIN")
    connection.execute("DECLARE c CURSOR FOR SUBSCRIBE (VALUES (7))")
    found: list[tuple] = []

    def fetched() -> bool:
        found.extend(connection.execute("FETCH ALL c WITH (TIMEOUT = '0s')").fetchall())
        return bool(found)

    eventually(fetched)
    assert [row[1:] for row in found] == [(1, 7)]
    connection.execute("COMMIT")


def test_dropping_ends_what_has_not_begun(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    before = metric(server, "evertide_subscriptions")
    future = now(connection) + 3_600_000
    with subscribed(server, f"SUBSCRIBE t AS OF {future}", "follow") as follower:
        eventually(lambda: metric(server, "evertide_subscriptions") == before + 1)
        connection.execute("DROP TABLE t")
        assert isinstance(follower.wait_ended(), psycopg.errors.UndefinedTable)
    assert follower.rows == []


def test_system_relations_follow_the_catalog(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    connection.execute("CREATE VIEW names AS SELECT name FROM mz_catalog.mz_tables")
    text = "SUBSCRIBE (SELECT name FROM names WHERE name LIKE 'sys%') WITH (PROGRESS)"
    with subscribed(server, text, "follow") as follower:
        follower.wait_for(2)
        for ddl, there in (
            ("CREATE TABLE sys1 (a int)", {("sys1",): 1}),
            ("ALTER TABLE sys1 RENAME TO sys2", {("sys2",): 1}),
            ("DROP TABLE sys2", {}),
        ):
            connection.execute(ddl)
            eventually(lambda: held_at(follower.rows, 2**62, progress=True) == there)  # noqa: B023
        times = [row[0] for row in follower.rows]
        assert times == sorted(times)
        connection.execute("DROP VIEW names")
        assert isinstance(follower.wait_ended(), psycopg.errors.UndefinedTable)
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        rows_of(connection, "SUBSCRIBE (SELECT a FROM t, mz_catalog.mz_tables)")
