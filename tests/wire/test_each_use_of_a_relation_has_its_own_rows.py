"""A relation that a statement uses twice is read for both uses, whatever one of them leaves out.

Few rows are read whole anyway, so there are more than an image of a table is searched for.
"""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import Server

ROWS = 1_500
FILL = f"INSERT INTO reused SELECT i, i % 3, 'p' || i FROM generate_series(1, {ROWS}) AS i"
QUERIES = (
    "SELECT (SELECT count(*) FROM {r}), (SELECT count(*) FROM {r} WHERE d = 0)",
    "SELECT count(*) FROM {r} WHERE k NOT IN (SELECT k FROM {r} WHERE d = 0)",
    "SELECT count(*) FROM {r} WHERE k IN (SELECT k FROM {r} WHERE d = 0) OR d = 1",
    "SELECT count(*), count(b.k) FROM {r} a LEFT JOIN {r} b ON a.k = b.k AND b.d = 0",
    "SELECT count(*) FROM {r} a WHERE NOT EXISTS (SELECT FROM {r} b WHERE b.k = a.k AND b.d = 1)",
    "SELECT count(*) FROM (SELECT k FROM {r} EXCEPT SELECT k FROM {r} WHERE d = 0) AS rest",
    "SELECT count(*) FROM (SELECT k, d FROM {r} EXCEPT ALL SELECT k, d FROM {r} WHERE d = 2) AS x",
    "SELECT count(*) FROM (SELECT k FROM {r} UNION ALL SELECT k FROM {r} WHERE d = 2) AS more",
    "WITH c AS (SELECT k, d FROM {r}) SELECT count(*) FROM c WHERE d > (SELECT min(d) FROM c)",
    "WITH c AS (SELECT * FROM {r} WHERE d = 1) SELECT count(*) FROM c JOIN c AS e ON c.k = e.k",
    "SELECT a.k FROM {r} a JOIN {r} b ON a.d = b.d AND b.k = 7 WHERE a.k < 20 ORDER BY 1",
    "SELECT (SELECT pad FROM {r} WHERE k = 5), (SELECT max(k) FROM {r})",
)  # fmt: skip
CHANGES = (
    "INSERT INTO reused SELECT k + 10000, d, pad FROM reused a"
    " WHERE NOT EXISTS (SELECT FROM reused b WHERE b.k = a.k AND b.d = 1)",
    "UPDATE reused SET d = 5 WHERE k NOT IN (SELECT k FROM reused WHERE d = 2)",
    "DELETE FROM reused WHERE k NOT IN (SELECT k FROM reused WHERE d = 5)",
)  # fmt: skip


@pytest.fixture(scope="module")
def pair(server: Server, postgres_dsn: str) -> Iterator[tuple[psycopg.Connection, ...]]:
    with server.connect() as ours, psycopg.connect(postgres_dsn, autocommit=True) as theirs:
        theirs.execute("CREATE SCHEMA two_uses")
        theirs.execute("SET search_path = two_uses")
        for connection in (ours, theirs):
            connection.execute("CREATE TABLE reused (k int, d int, pad text)")
            connection.execute(FILL)
            connection.execute("CREATE VIEW reused_view AS SELECT * FROM reused WHERE k > 3")
        kept = "SELECT k, d, max(pad) AS pad FROM reused GROUP BY k, d"
        ours.execute(f"CREATE MATERIALIZED VIEW reused_kept AS {kept}")
        theirs.execute(f"CREATE VIEW reused_kept AS {kept}")
        yield ours, theirs
        theirs.execute("DROP SCHEMA two_uses CASCADE")


def check(pair: tuple[psycopg.Connection, ...]) -> None:
    ours, theirs = pair
    for relation in ("reused", "reused_view", "reused_kept"):
        for query in QUERIES:
            asked = query.format(r=relation)
            assert ours.execute(asked).fetchall() == theirs.execute(asked).fetchall(), asked


def test_every_query_counts_what_postgresql_counts(pair: tuple[psycopg.Connection, ...]) -> None:
    check(pair)
    # By an index of the session's cluster, the keys that one use asks for are not the other's.
    pair[0].execute("CREATE INDEX reused_by_d ON reused (d)")
    pair[0].execute("CREATE INDEX reused_by_k ON reused (k)")
    check(pair)


def test_every_change_changes_what_it_changes_in_postgresql(
    pair: tuple[psycopg.Connection, ...],
) -> None:
    for change in CHANGES:
        counts = [connection.execute(change).rowcount for connection in pair]
        assert counts[0] == counts[1] > 0, change
    check(pair)
