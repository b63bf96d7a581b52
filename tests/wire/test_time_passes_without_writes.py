"""Goal: views and indexes stay readable, and go on, after time passed without any write."""

from tests.support.server import Server, eventually


def test_a_write_after_idle_time_reaches_views_and_indexes(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE calm (a int)")
        connection.execute("CREATE MATERIALIZED VIEW calm_sum AS SELECT sum(a) AS t FROM calm")
        connection.execute("CREATE VIEW calm_view AS SELECT a, count(*) AS n FROM calm GROUP BY a")
        connection.execute("CREATE INDEX calm_index ON calm_view (a)")
        connection.execute("INSERT INTO calm VALUES (1)")

        def frontier() -> int:
            found = connection.execute(
                "SELECT max(write_frontier) FROM mz_internal.mz_frontiers"
            ).fetchone()
            assert found is not None
            return int(found[0])

        before = frontier()
        eventually(lambda: frontier() > before + 2_000, pause=0.2)
        assert connection.execute("SELECT t FROM calm_sum").fetchall() == [(1,)]
        assert connection.execute("SELECT n FROM calm_view WHERE a = 1").fetchall() == [(1,)]
        connection.execute("INSERT INTO calm VALUES (1), (2)")
        assert connection.execute("SELECT t FROM calm_sum").fetchall() == [(4,)]
        assert connection.execute("SELECT n FROM calm_view WHERE a = 1").fetchall() == [(2,)]
