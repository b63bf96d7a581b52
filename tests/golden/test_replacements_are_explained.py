"""Goal: EXPLAIN REPLACEMENT tells what applying it would do, and when that can be done.

Method: one real server; the text of a replacement that adds a column and moves to another cluster.
"""

from tests.support.server import Server, eventually

EXPLAINED = """Replacement: materialize.explained.r
Target: materialize.explained.mv
New columns: c text
Cluster: default
State: ready to be applied
Rows that come: 3
Rows that go: 2
- 1, it's, NULL
+ 2, NULL, B
- 2, NULL, NULL
+ 3, x, B (2 times)"""


def test_the_text_tells_state_and_changes(server: Server) -> None:
    with server.connect(options="-c statement_timeout=60s") as connection:
        connection.execute("DROP SCHEMA IF EXISTS explained CASCADE")
        connection.execute("CREATE SCHEMA explained")
        connection.execute("SET search_path = explained")
        connection.execute("CREATE TABLE t (a int, b text)")
        connection.execute("INSERT INTO t VALUES (1, 'it''s'), (2, NULL)")
        connection.execute("CREATE TABLE u (a int, b text)")
        connection.execute("INSERT INTO u VALUES (2, NULL), (3, 'x'), (3, 'x')")
        connection.execute("CREATE MATERIALIZED VIEW mv AS SELECT a, b FROM t")
        connection.execute(
            "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a, b, nullif('B', '') AS c FROM u"
        )

        def explained() -> str:
            row = connection.execute("EXPLAIN REPLACEMENT r").fetchone()
            assert row is not None
            return str(row[0])

        assert explained().startswith("Replacement: materialize.explained.r\n")
        eventually(lambda: "State: ready to be applied" in explained())
        assert explained() == EXPLAINED
        connection.execute("DROP MATERIALIZED VIEW r")
        connection.execute("CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a, b FROM t")
        assert "Rows that come: 0\nRows that go: 0" in explained()
        connection.execute("CREATE CLUSTER explained_idle REPLICAS ()")
        connection.execute("ALTER MATERIALIZED VIEW r SET CLUSTER explained_idle")
        text = explained()
        assert "Cluster: default, then explained_idle" in text
        assert 'makes no progress because cluster "explained_idle" has no replicas' in text
        assert "Applied:" not in text
        connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WHEN READY")
        assert "Applied: by itself, as soon as it is ready\nRows that come" in explained()
        connection.execute("DROP CLUSTER explained_idle CASCADE")


def test_an_index_without_the_new_columns_is_told_before_and_after(server: Server) -> None:
    with server.connect(options="-c statement_timeout=60s") as connection:
        connection.execute("DROP SCHEMA IF EXISTS explained_index CASCADE")
        connection.execute("CREATE SCHEMA explained_index")
        connection.execute("SET search_path = explained_index")
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("CREATE MATERIALIZED VIEW mv AS SELECT a FROM t")
        connection.execute("CREATE INDEX old ON mv (a)")

        def explained(what: str) -> str:
            row = connection.execute(f"EXPLAIN {what}").fetchone()
            assert row is not None
            return str(row[0])

        lookup = "SELECT a FROM mv WHERE a = 1"
        assert "index lookup in old" in explained(lookup)
        connection.execute("CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a + 0 AS a FROM t")
        assert "serve no queries" not in explained("REPLACEMENT r")
        connection.execute("DROP MATERIALIZED VIEW r")
        connection.execute(
            "CREATE MATERIALIZED VIEW r REPLACING mv AS SELECT a, nullif(a, 0) AS b FROM t"
        )
        told = (
            "New columns: b integer\nIndexes that lack them, and serve no queries any more: old\n"
        )
        assert told in explained("REPLACEMENT r")
        connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
        assert "shard read; made before it got more columns: old" in explained(lookup)
        connection.execute("CREATE INDEX new ON mv (a)")
        assert "index lookup in new" in explained(lookup)
