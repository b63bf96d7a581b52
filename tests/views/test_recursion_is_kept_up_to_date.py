"""Goal: views, indexes and subscriptions with WITH MUTUALLY RECURSIVE are exact, and say how."""

from random import Random

import psycopg
import pytest

from tests.support.server import Server

WAYS = (
    "WITH MUTUALLY RECURSIVE r (a int, b int) AS ("
    " SELECT a, b FROM {0} UNION SELECT r.a, e.b FROM r JOIN {0} e ON r.b = e.a) SELECT a, b FROM r"
)


def closure(edges: set[tuple[int, int]]) -> list[tuple[int, int]]:
    found = set(edges)
    while True:
        longer = {(a, d) for a, b in found for c, d in edges if b == c}
        if longer <= found:
            return sorted(found)
        found |= longer


def change(connection: psycopg.Connection, rng: Random, edges: set[tuple[int, int]]) -> None:
    """Some edges more, some less, in one transaction."""
    gone = [edge for edge in sorted(edges) if rng.random() < 0.25]
    come = {(rng.randrange(8), rng.randrange(8)) for _ in range(rng.randrange(4))} - edges
    with connection.transaction():
        for a, b in gone:
            connection.execute("DELETE FROM edges WHERE a = %s AND b = %s", (a, b))
        for a, b in come:
            connection.execute("INSERT INTO edges VALUES (%s, %s)", (a, b))
    edges -= set(gone)
    edges |= come


def test_views_and_indexes_follow(engine_server: Server) -> None:
    rng = Random(4)
    edges: set[tuple[int, int]] = set()
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE edges (a int, b int)")
        connection.execute(f"CREATE MATERIALIZED VIEW ways AS {WAYS.format('edges')}")
        connection.execute(f"CREATE VIEW shown AS {WAYS.format('edges')}")
        connection.execute("CREATE DEFAULT INDEX ON shown")
        connection.execute(
            "CREATE MATERIALIZED VIEW ways_counted AS SELECT a, count(*) AS n FROM ways GROUP BY a"
        )
        for _ in range(10):
            change(connection, rng, edges)
            expected = closure(edges)
            for name in ("ways", "shown"):
                found = connection.execute(f"SELECT a, b FROM {name} ORDER BY a, b").fetchall()
                assert found == expected, name
            total = connection.execute("SELECT sum(n) FROM ways_counted").fetchone()
            assert total == ((len(expected) or None),)
        executors = connection.execute(
            "SELECT o.name, r.executor FROM mz_internal.mz_tick_records r"
            " JOIN mz_objects o ON o.id = r.object_id"
            " WHERE o.name IN ('ways', 'ways_counted') GROUP BY 1, 2 ORDER BY 1, 2"
        ).fetchall()
        explained = connection.execute("EXPLAIN MATERIALIZED VIEW ways").fetchone()
    assert ("ways", "recompute") in executors
    assert [who for name, who in executors if name == "ways"] == ["recompute"]
    assert "recompute" not in [who for name, who in executors if name == "ways_counted"]
    assert explained is not None
    assert "recomputes: recursion (WITH MUTUALLY RECURSIVE) is computed anew" in explained[0]


def test_errors_come_and_go(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE starts (n int)")
        connection.execute(
            "CREATE MATERIALIZED VIEW halves AS WITH MUTUALLY RECURSIVE r (n int) AS ("
            " SELECT n FROM starts UNION SELECT 12 / n - 1 FROM r) SELECT n FROM r"
        )
        connection.execute("INSERT INTO starts VALUES (3)")
        assert connection.execute("SELECT n FROM halves").fetchall() == [(3,)]
        connection.execute("INSERT INTO starts VALUES (12)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT n FROM halves")
        connection.execute("DELETE FROM starts WHERE n = 12")
        assert connection.execute("SELECT n FROM halves").fetchall() == [(3,)]


def test_a_subscription_tells_what_changes(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE arcs (a int, b int)")
        connection.execute("INSERT INTO arcs VALUES (1, 2)")
        with connection.transaction(), engine_server.connect() as other:
            connection.execute(
                f"DECLARE c CURSOR FOR SUBSCRIBE ({WAYS.format('arcs')}) WITH (PROGRESS = false)"
            )
            first = connection.execute("FETCH 1 FROM c WITH (timeout = '30s')").fetchall()
            assert [row[1:] for row in first] == [(1, 1, 2)]
            other.execute("INSERT INTO arcs VALUES (2, 3)")
            more = connection.execute("FETCH 2 FROM c WITH (timeout = '30s')").fetchall()
            assert sorted(row[1:] for row in more) == [(1, 1, 3), (1, 2, 3)]


ENDLESS = (
    "WITH MUTUALLY RECURSIVE r (n int8) AS (SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM r))"
    " SELECT n FROM r"
)


def test_one_that_does_not_end_is_ended(engine_server: Server) -> None:
    """By the statement's timeout, and others are answered meanwhile."""
    with engine_server.connect() as connection, engine_server.connect() as other:
        connection.execute("SET statement_timeout = '300 ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(ENDLESS)
        assert other.execute("SELECT 1").fetchone() == (1,)
        connection.execute("RESET statement_timeout")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="recursion limit"):
            connection.execute(ENDLESS)


def test_a_replica_does_those_over_many_rows(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE chain (a int, b int)")
        connection.execute("INSERT INTO chain SELECT x, x + 1 FROM generate_series(1, 200) AS x")
        query = f"SELECT count(*), max(b) FROM ({WAYS.format('chain')}) AS found"
        explained = connection.execute(f"EXPLAIN {query}").fetchone()
        assert explained is not None
        assert "delta plans on a replica" in explained[0]
        assert connection.execute(query).fetchone() == (200 * 201 // 2, 201)
        connection.execute("SET statement_timeout = '300 ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(
                "WITH MUTUALLY RECURSIVE r (n int) AS ("
                " SELECT a FROM chain WHERE NOT EXISTS (SELECT 1 FROM r)) SELECT n FROM r"
            )
        connection.execute("RESET statement_timeout")
        assert connection.execute("SELECT count(*) FROM chain").fetchone() == (200,)


def test_what_recomputes_can_be_refused(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE links (a int, b int)")
        connection.execute(f"CREATE VIEW linked AS {WAYS.format('links')}")
        connection.execute("SET require_incremental = on")
        for statement in (
            f"CREATE MATERIALIZED VIEW refused AS {WAYS.format('links')}",
            "CREATE INDEX refused ON linked (a)",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="would recompute"):
                connection.execute(statement)
        connection.execute("RESET require_incremental")
        connection.execute("CREATE INDEX allowed ON linked (a)")
