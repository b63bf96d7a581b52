"""The dataflow suite runs once per tick engine: both must keep the same views."""

from collections.abc import Iterator

import pytest

from tests.support.server import Server, eventually, running_server

ENGINES = ("auto", "spark")


@pytest.fixture(scope="session", params=ENGINES)
def engine_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server under one tick engine, once its ticks run on Spark."""
    data = tmp_path_factory.mktemp(request.param) / "data"
    with running_server(data, ["--tick-engine", request.param]) as server:
        wait_for_executor(server, {"auto": "resident", "spark": "job"}[request.param])
        yield server


def wait_for_executor(server: Server, executor: str) -> None:
    """Returns once a probe view is ticked by this executor."""
    with server.connect() as connection:
        # The first job of a Spark application is slow where much else runs.
        connection.execute("SET statement_timeout = '240s'")
        connection.execute("CREATE TABLE probe (a int)")
        connection.execute("CREATE MATERIALIZED VIEW probe_view AS SELECT count(*) AS n FROM probe")

        def ticked() -> bool:
            connection.execute("INSERT INTO probe VALUES (1)")
            connection.execute("SELECT n FROM probe_view")
            found = connection.execute(
                "SELECT executor FROM mz_internal.mz_tick_records ORDER BY started_at DESC LIMIT 1"
            ).fetchone()
            return found == (executor,)

        eventually(ticked, seconds=240, pause=0.5)
