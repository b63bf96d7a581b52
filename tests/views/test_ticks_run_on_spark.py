"""Goal: once Spark is up every tick runs there; the replica's own evaluator is never seen again."""

from tests.support.server import Server


def test_no_tick_after_warm_up_is_run_by_the_driver(engine_server: Server) -> None:
    with engine_server.connect() as connection:
        started = connection.execute(
            "SELECT max(started_at) FROM mz_internal.mz_tick_records"
        ).fetchone()
        connection.execute("CREATE TABLE late (a int)")
        connection.execute("CREATE MATERIALIZED VIEW late_view AS SELECT sum(a) AS t FROM late")
        for number in range(3):
            connection.execute("INSERT INTO late VALUES (%s)", (number,))
            connection.execute("SELECT t FROM late_view")
        executors = connection.execute(
            "SELECT DISTINCT executor FROM mz_internal.mz_tick_records WHERE started_at > %s",
            started,
        ).fetchall()
    assert len(executors) == 1
    assert executors[0][0] in ("resident", "job")
