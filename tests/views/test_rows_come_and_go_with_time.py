"""Goal: a view with a temporal filter shows and hides rows as time passes, without any write."""

from collections.abc import Sequence

import psycopg
import pytest

from tests.support.server import Server, eventually
from tests.support.subscriber import subscribed

Connection = psycopg.Connection[tuple[object, ...]]


def now_ms(connection: Connection) -> int:
    row = connection.execute("SELECT mz_now()::text").fetchone()
    assert row is not None
    return int(str(row[0]))


def seen(connection: Connection, relation: str) -> tuple[int, Sequence[int]]:
    """When a read happened and the ids that it saw."""
    found = connection.execute(
        f"SELECT mz_now()::text, coalesce(string_agg(id::text, ',' ORDER BY id::text), '')"
        f" FROM {relation}"
    ).fetchone()
    assert found is not None
    return int(str(found[0])), [int(part) for part in str(found[1]).split(",") if part]


INTERVAL = "mz_now() >= valid_from AND mz_now() < valid_to"


def test_rows_appear_and_disappear(engine_server: Server) -> None:
    """Method: every read says its own timestamp, so what it must show is known exactly; and
    subscriptions say when each row came and went."""
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE stays (id int, valid_from bigint, valid_to bigint)")
        query = f"SELECT id FROM stays WHERE {INTERVAL}"
        connection.execute(f"CREATE MATERIALIZED VIEW current AS {query}")
        connection.execute(
            "CREATE VIEW now_valid AS SELECT id FROM stays"
            " WHERE mz_now() BETWEEN valid_from AND valid_to - 1"
        )
        connection.execute("CREATE INDEX ON now_valid (id)")
        connection.execute("CREATE MATERIALIZED VIEW tally AS SELECT count(*) AS n FROM current")
        with (
            subscribed(engine_server, "SUBSCRIBE current WITH (PROGRESS)") as stored,
            subscribed(engine_server, f"SUBSCRIBE ({query}) WITH (PROGRESS)") as computed,
        ):
            start = now_ms(connection)
            stays = {
                1: (start, start + 4_000),
                2: (start + 3_000, start + 5_000),
                3: (start + 600_000, start + 700_000),
                4: (0, start + 600_000),
                5: (start + 3_000, start + 3_000),
            }
            rows = ", ".join(f"({n}, {first}, {last})" for n, (first, last) in stays.items())
            connection.execute(f"INSERT INTO stays VALUES {rows}, (6, NULL, NULL)")

            def all_but_the_last_have_gone() -> bool:
                for relation in ("current", "now_valid"):
                    at, found = seen(connection, relation)
                    expected = [n for n, (first, last) in stays.items() if first <= at < last]
                    assert found == expected, f"{relation} at {at - start} ms"
                return found == [4]

            eventually(all_but_the_last_have_gone, seconds=60, pause=0.05)
            for subscriber in (stored, computed):
                subscriber.wait_beyond(start + 5_000)
                told = [(int(ts), diff, n) for ts, moved, diff, n in subscriber.rows if not moved]
                came = min(ts for ts, *_ in told)
                assert start < came < start + 3_000
                assert sorted(told) == [
                    (came, 1, 1),
                    (came, 1, 4),
                    (start + 3_000, 1, 2),
                    (start + 4_000, -1, 1),
                    (start + 5_000, -1, 2),
                ]
        assert connection.execute("SELECT n FROM tally").fetchone() == (1,)
        connection.execute("DELETE FROM stays WHERE id = 4")
        assert seen(connection, "current")[1] == []
        assert connection.execute("SELECT n FROM tally").fetchone() == (0,)


def test_times_of_other_types(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE events (id int, at timestamptz, day timestamp, n numeric)")
        connection.execute(
            "CREATE MATERIALIZED VIEW recent AS SELECT id FROM events"
            " WHERE mz_now() <= at + INTERVAL '1 hour' AND day <= mz_now() AND n < mz_now()"
        )
        connection.execute(
            "INSERT INTO events VALUES (1, now(), '2020-01-01', 5), (2, now(), '2200-01-01', 5),"
            " (3, '2020-01-01', '2020-01-01', 5), (4, now(), '2020-01-01', NULL)"
        )
        assert seen(connection, "recent")[1] == [1]
        connection.execute("INSERT INTO events VALUES (5, now(), '2020-01-01', -1)")
        with pytest.raises(psycopg.DataError, match="mz_timestamp out of range"):
            connection.execute("SELECT * FROM recent")
        connection.execute("DELETE FROM events WHERE id = 5")
        assert seen(connection, "recent")[1] == [1]


def test_table_functions_follow_their_rows(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE spans (id int, n int, step int, words text[])")
        connection.execute(
            "CREATE MATERIALIZED VIEW numbers AS SELECT id, g, o FROM spans,"
            " LATERAL generate_series(1, n, step) WITH ORDINALITY AS s (g, o)"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW words AS SELECT w, count(*) AS n FROM spans,"
            " unnest(words) AS u (w) GROUP BY w"
        )
        connection.execute(
            "INSERT INTO spans VALUES (1, 3, 2, ARRAY['a', 'b']), (2, 1, 1, ARRAY['a', NULL]),"
            " (3, NULL, 1, NULL)"
        )
        numbers = "SELECT id, g, o FROM numbers ORDER BY id, g"
        assert connection.execute(numbers).fetchall() == [(1, 1, 1), (1, 3, 2), (2, 1, 1)]
        words = "SELECT w, n FROM words ORDER BY w"
        assert connection.execute(words).fetchall() == [("a", 2), ("b", 1), (None, 1)]
        connection.execute("INSERT INTO spans VALUES (4, 9, 0, '{}')")
        with pytest.raises(psycopg.DataError, match="step size cannot equal zero"):
            connection.execute(numbers)
        connection.execute("DELETE FROM spans WHERE id IN (1, 4)")
        assert connection.execute(numbers).fetchall() == [(2, 1, 1)]
        assert connection.execute(words).fetchall() == [("a", 1), (None, 1)]


def test_constants_go_too(engine_server: Server) -> None:
    """Nothing moves the time of such a view: all of its future is known at once."""
    with engine_server.connect() as connection:
        start = now_ms(connection)
        connection.execute(
            f"CREATE MATERIALIZED VIEW fixed AS SELECT id FROM (VALUES (1, {start + 2_000}),"
            f" (2, {start + 900_000})) AS v (id, till) WHERE mz_now() < till"
        )

        def only_one_is_left() -> bool:
            at, found = seen(connection, "fixed")
            assert found == ([1, 2] if at < start + 2_000 else [2])
            return found == [2]

        eventually(only_one_is_left, seconds=60, pause=0.05)
