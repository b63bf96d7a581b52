"""Goal: a failing row puts its view in error, leaves others alone, and goes with the row."""

import psycopg
import pytest

from tests.support.server import Server


def test_a_view_recovers_when_the_row_is_gone(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE ratios (id int, n int, d int)")
        connection.execute("INSERT INTO ratios VALUES (1, 10, 2)")
        connection.execute("CREATE MATERIALIZED VIEW quotient AS SELECT id, n / d AS q FROM ratios")
        connection.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM ratios")
        connection.execute(
            "CREATE MATERIALIZED VIEW grouped AS SELECT q, count(*) AS n FROM quotient GROUP BY q"
        )
        assert connection.execute("SELECT * FROM quotient").fetchall() == [(1, 5)]
        connection.execute("INSERT INTO ratios VALUES (2, 1, 0), (3, 9, 3)")
        for view in ("quotient", "grouped"):
            with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
                connection.execute(f"SELECT * FROM {view}")
        assert connection.execute("SELECT n FROM counted").fetchall() == [(3,)]
        connection.execute("DELETE FROM ratios WHERE id = 2")
        assert connection.execute("SELECT * FROM quotient ORDER BY id").fetchall() == [
            (1, 5),
            (3, 3),
        ]
        assert connection.execute("SELECT * FROM grouped ORDER BY q").fetchall() == [
            (3, 1),
            (5, 1),
        ]
