"""Goal: views with REFRESH show what their query gave at the last refresh, alone, indexed, and
below other views; asserted columns are never NULL where a view can be read."""

from typing import Any

import psycopg
import pytest

from tests.support.server import Server, eventually
from tests.support.subscriber import Told, held_at, subscribed

Connection = psycopg.Connection[tuple[Any, ...]]


def one(connection: Connection, query: str) -> Any:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def changed_at(rows: list[Told]) -> set[int]:
    """The times at which a subscription with progress told changes."""
    return {int(row[0]) for row in rows if not row[1]}


def test_changes_come_at_refreshes_alone(engine_server: Server) -> None:
    """Method: subscriptions tell when everything changed, so what must be seen is known exactly."""
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE drops (a int)")
        connection.execute("INSERT INTO drops VALUES (0)")
        connection.execute(
            "CREATE MATERIALIZED VIEW pools WITH (REFRESH EVERY '700 ms' ALIGNED TO 123)"
            " AS SELECT a % 3 AS kind, count(*) AS n FROM drops GROUP BY a % 3"
        )
        connection.execute("CREATE INDEX ON pools (kind)")
        connection.execute("CREATE MATERIALIZED VIEW deepest AS SELECT max(n) AS n FROM pools")
        with (
            subscribed(engine_server, "SUBSCRIBE drops WITH (PROGRESS)") as drops,
            subscribed(engine_server, "SUBSCRIBE pools WITH (PROGRESS)") as pools,
            subscribed(engine_server, "SUBSCRIBE deepest WITH (PROGRESS)") as deepest,
        ):
            numbers = iter(range(1, 1_000_000))

            def refreshed_often() -> bool:
                connection.execute("INSERT INTO drops VALUES (%s)", (next(numbers),))
                return len(changed_at(pools.rows)) > 4

            eventually(refreshed_often, seconds=60, pause=0.05)
            last = max(changed_at(pools.rows))
            for subscriber in (drops, pools, deepest):
                subscriber.wait_beyond(last)
            times = sorted(changed_at(pools.rows))
            _, *later = times
            assert later
            assert all(ts % 700 == 123 for ts in later)
            assert changed_at(deepest.rows) <= {*times, min(changed_at(deepest.rows))}
            for ts in later:
                kinds = [row[0] % 3 for row in held_at(drops.rows, ts, progress=True).elements()]
                told = held_at(pools.rows, ts, progress=True)
                assert dict(told) == {(kind, kinds.count(kind)): 1 for kind in set(kinds)}
                before = held_at(pools.rows, ts - 1, progress=True)
                assert before != told
        kinds = one(connection, "SELECT count(*) FROM pools WHERE kind = 1")
        assert kinds == 1


def test_a_view_made_once_stays_as_it_was(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE facts (a int)")
        connection.execute("INSERT INTO facts VALUES (1), (2)")
        connection.execute(
            "CREATE MATERIALIZED VIEW as_created WITH (REFRESH AT CREATION) AS SELECT a FROM facts"
        )
        connection.execute("CREATE DEFAULT INDEX ON as_created")
        connection.execute("CREATE MATERIALIZED VIEW above AS SELECT sum(a) AS s FROM as_created")
        connection.execute("INSERT INTO facts VALUES (3)")
        for _ in range(3):
            both = "SELECT a FROM as_created UNION ALL SELECT -a FROM facts ORDER BY a"
            found = [row[0] for row in connection.execute(both).fetchall()]
            assert found[-2:] == [1, 2]
            assert one(connection, "SELECT s FROM above") == 3
            connection.execute("INSERT INTO facts VALUES (4)")
        sealed = (
            "SELECT write_frontier IS NULL FROM mz_internal.mz_frontiers f JOIN mz_objects o"
            " ON o.id = f.object_id WHERE o.name = 'as_created'"
        )
        eventually(lambda: one(connection, sealed), seconds=60)
        hydrated = (
            "SELECT bool_and(hydrated) FROM mz_internal.mz_hydration_statuses h JOIN mz_objects o"
            " ON o.id = h.object_id WHERE o.name = 'as_created'"
        )
        assert one(connection, hydrated)


def test_readers_wait_for_the_first_refresh(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE early (a int)")
        connection.execute("INSERT INTO early VALUES (1)")
        connection.execute(
            "CREATE MATERIALIZED VIEW lasting WITH"
            " (REFRESH EVERY '1 day' ALIGNED TO mz_now()::text::int8 + 2000)"
            " AS SELECT count(*) AS n FROM early"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW later WITH (REFRESH AT mz_now()::text::int8 + 2500)"
            " AS SELECT n FROM lasting"
        )
        connection.execute("INSERT INTO early VALUES (2)")
        stored = "SELECT create_sql FROM mz_materialized_views WHERE name = 'lasting'"
        text = one(connection, stored)
        aligned_to = int(text.partition("ALIGNED TO ")[2].partition("::")[0]) + 2_000
        found = connection.execute("SELECT mz_now()::text::int8, n FROM lasting").fetchone()
        assert found is not None
        assert found[0] >= aligned_to
        assert found[1] == 2, "what was written before the refresh counts"
        connection.execute("INSERT INTO early VALUES (3)")
        assert one(connection, "SELECT n FROM lasting") == 2
        assert one(connection, "SELECT n FROM later") == 2
        with pytest.raises(psycopg.DataError, match="not all the inputs are readable"):
            connection.execute(
                "CREATE MATERIALIZED VIEW x WITH (REFRESH AT '2001-01-01') AS SELECT a FROM early"
            )
        strategies = connection.execute(
            "SELECT v.name, type, interval::text, aligned_to IS NULL, at IS NULL"
            " FROM mz_internal.mz_materialized_view_refresh_strategies s"
            " JOIN mz_materialized_views v ON v.id = s.materialized_view_id"
            " WHERE v.name IN ('lasting', 'later', 'probe_view') ORDER BY v.name"
        ).fetchall()
        assert strategies == [
            ("lasting", "every", "24:00:00", False, True),
            ("later", "at", None, True, False),
            ("probe_view", "on-commit", None, True, True),
        ]


def test_asserted_columns(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE gaps (a int, b text)")
        connection.execute("INSERT INTO gaps VALUES (1, 'x'), (NULL, 'y')")
        connection.execute(
            "CREATE MATERIALIZED VIEW whole WITH (ASSERT NOT NULL a) AS SELECT a, b FROM gaps"
        )
        with pytest.raises(psycopg.errors.NotNullViolation, match='column "a" must not be null'):
            connection.execute("SELECT b FROM whole")
        connection.execute("UPDATE gaps SET a = 2 WHERE a IS NULL")
        assert connection.execute("SELECT a, b FROM whole ORDER BY a").fetchall() == [
            (1, "x"),
            (2, "y"),
        ]
        connection.execute("INSERT INTO gaps VALUES (3, NULL), (NULL, NULL)")
        with pytest.raises(psycopg.errors.NotNullViolation):
            connection.execute("SELECT count(*) FROM whole")
        connection.execute("DELETE FROM gaps WHERE a IS NULL")
        assert one(connection, "SELECT count(*) FROM whole") == 3
