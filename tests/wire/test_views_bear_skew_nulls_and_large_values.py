"""Goal: views stay right where one key has half of all rows, keys are NULL, or values are large.

Method: the same writes on a server and on PostgreSQL; views of every kind are compared after each.
"""

from collections import Counter

import psycopg
import pytest

from tests.support.server import Server
from tests.support.subscriber import held_at, subscribed

Connection = psycopg.Connection[tuple]
LARGE = 1_000_000
ROWS = 6_000

SKEWED = {
    "joined": "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k WHERE b.v < 3",
    "outer_joined": "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k AND b.v = 1",
    "counted": "SELECT k, count(*) AS n, sum(v) AS total FROM a GROUP BY k",
    "extremes": "SELECT k, min(v) AS lo, max(v) AS hi FROM a GROUP BY k",
    "first": "SELECT DISTINCT ON (k) k, v, id FROM a ORDER BY k, v DESC, id",
    "different": "SELECT DISTINCT k, v FROM a",
    "few": "SELECT id, v FROM a ORDER BY v DESC NULLS LAST, id LIMIT 5",
    "missing": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "kinds": "SELECT k, count(DISTINCT v) AS n FROM a GROUP BY k",
}
SKEWED_WRITES = (
    # Half of all rows have key 0; every tenth has none.
    f"INSERT INTO a SELECT i, CASE WHEN i % 2 = 0 THEN 0 WHEN i % 10 = 1 THEN NULL ELSE i END,"
    f" i % 97 FROM generate_series(1, {ROWS}) AS i",
    "INSERT INTO b SELECT i % 40, i FROM generate_series(0, 79) AS i",
    "INSERT INTO b VALUES (NULL, 1), (NULL, NULL), (0, NULL)",
    "UPDATE a SET v = v + 1 WHERE k = 0 AND id < 900",
    "UPDATE a SET k = 0 WHERE k IS NULL AND id < 300",
    "UPDATE a SET k = NULL WHERE k = 0 AND id > 5000",
    "DELETE FROM a WHERE k = 0 AND id % 3 = 0",
    "DELETE FROM b WHERE k = 0",
    "DELETE FROM a WHERE k IS NULL",
    "DELETE FROM a WHERE k = 0",
)


def prepared(server: Connection, postgres: Connection, schema: str) -> None:
    postgres.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    for connection in (server, postgres):
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path = {schema}")


def test_half_of_the_rows_have_one_key(server: Server, postgres_dsn: str) -> None:
    with server.connect() as connection, psycopg.connect(postgres_dsn, autocommit=True) as postgres:
        prepared(connection, postgres, "skewed")
        for each in (connection, postgres):
            each.execute("CREATE TABLE a (id int, k int, v int)")
            each.execute("CREATE TABLE b (k int, v int)")
        for name, query in SKEWED.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        connection.execute("CREATE INDEX a_by_key ON a (k)")
        for statement in SKEWED_WRITES:
            for each in (connection, postgres):
                each.execute(statement)
            for name, query in SKEWED.items():
                found = Counter(connection.execute(f"SELECT * FROM {name}").fetchall())
                assert found == Counter(postgres.execute(query).fetchall()), (name, statement)
            for key in ("k = 0", "k IS NULL", "k = 7"):
                query = f"SELECT id, v FROM a WHERE {key}"
                found = Counter(connection.execute(query).fetchall())
                assert found == Counter(postgres.execute(query).fetchall()), (key, statement)


LARGE_VIEWS = {
    "filtered": "SELECT id, big || '!' AS big FROM t WHERE id >= 0",
    "grouped": "SELECT big, count(*) AS n, max(id) AS last FROM t GROUP BY big",
    "joined": "SELECT t.id, u.big FROM t JOIN u ON t.big = u.big",
    "different": "SELECT DISTINCT big FROM t",
    "greatest": "SELECT max(big) AS big FROM t",
    "first": "SELECT DISTINCT ON (big) big, id FROM t ORDER BY big, id DESC",
}


@pytest.mark.timeout(300)
def test_values_of_a_megabyte_go_everywhere(server: Server) -> None:
    """Through a table, views, an index, a subscription, and as keys; and away again."""
    one, other = "ä" * (LARGE // 2) + "1", "x" * LARGE + "2"
    with server.connect() as connection:
        connection.execute("CREATE SCHEMA large")
        connection.execute("SET search_path = large")
        connection.execute("CREATE TABLE t (id int, big text)")
        connection.execute("CREATE TABLE u (big text)")
        for name, query in LARGE_VIEWS.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        connection.execute("CREATE INDEX t_by_big ON t (big)")
        connection.execute("CREATE INDEX filtered_by_id ON filtered (id)")
        with subscribed(server, "SUBSCRIBE grouped WITH (PROGRESS)", "large") as follower:
            connection.execute("INSERT INTO t VALUES (1, %s), (2, %s), (3, %s)", (one, other, one))
            connection.execute("INSERT INTO u VALUES (%s), (%s)", (one, None))
            check_large(connection, [(1, one), (2, other), (3, one)], [one])
            connection.execute("UPDATE t SET big = big || '3' WHERE id = 2")
            connection.execute("DELETE FROM t WHERE id = 1")
            rows = [(2, other + "3"), (3, one)]
            check_large(connection, rows, [one])
            row = connection.execute("SELECT mz_now()::text FROM t").fetchone()
            assert row is not None
            follower.wait_beyond(int(row[0]))
            told = held_at(follower.rows, int(row[0]), progress=True)
            assert told == Counter([(big, 1, number) for number, big in rows])
            connection.execute("DELETE FROM t")
            check_large(connection, [], [one])
        connection.execute("DROP SCHEMA large CASCADE")


def check_large(connection: Connection, t: list[tuple[int, str]], u: list[str]) -> None:
    """What each view must hold, said in Python."""
    groups: dict[str, list[int]] = {}
    for number, big in t:
        groups.setdefault(big, []).append(number)
    expected: dict[str, list[tuple]] = {
        "filtered": [(number, big + "!") for number, big in t],
        "grouped": [(big, len(numbers), max(numbers)) for big, numbers in groups.items()],
        "joined": [(number, big) for number, big in t if big in u],
        "different": [(big,) for big in groups],
        "greatest": [(max(groups, default=None),)],
        "first": [(big, max(numbers)) for big, numbers in groups.items()],
    }
    for name, rows in expected.items():
        assert Counter(connection.execute(f"SELECT * FROM {name}").fetchall()) == Counter(rows), (
            name
        )
    for number, big in t:
        found = connection.execute("SELECT id FROM t WHERE big = %s", (big,)).fetchall()
        assert sorted(found) == sorted((n,) for n in groups[big])
        found = connection.execute(f"SELECT big FROM filtered WHERE id = {number}").fetchall()
        assert found == [(big + "!",)]
