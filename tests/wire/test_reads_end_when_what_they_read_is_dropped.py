"""Goal: a SELECT that waits for a view is told when the view is dropped, instead of waiting on.

Method: views in a cluster without replicas, so that nobody ever computes them.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.server import Server

CLUSTER = "deserted"
WAITING = (
    "SELECT * FROM {view}",
    "SELECT * FROM {view} WHERE a = 1",
    "SELECT count(*) FROM {view} JOIN left_alone USING (a)",
    "INSERT INTO left_alone SELECT a FROM {view}",
)


@pytest.fixture(scope="module")
def deserted(server: Server) -> Iterator[Server]:
    with server.connect() as connection:
        connection.execute(f"CREATE CLUSTER {CLUSTER} (SIZE '1', REPLICATION FACTOR 0)")
        connection.execute("CREATE TABLE left_alone (a int)")
        yield server
        connection.execute("DROP TABLE left_alone CASCADE")
        connection.execute(f"DROP CLUSTER {CLUSTER} CASCADE")


@pytest.mark.parametrize("number", range(len(WAITING)))
def test_a_waiting_read_is_told(deserted: Server, number: int) -> None:
    view = f"never_{number}"
    text = WAITING[number].format(view=view)
    with (
        ThreadPoolExecutor(1) as reader,
        deserted.connect() as reading,
        deserted.connect() as dropping,
    ):
        dropping.execute(
            f"CREATE MATERIALIZED VIEW {view} IN CLUSTER {CLUSTER} AS SELECT a FROM left_alone"
        )
        reading.execute("SET statement_timeout = '50s'")
        read = reader.submit(reading.execute, text)
        with pytest.raises(TimeoutError):
            read.result(0.5)
        dropping.execute(f"DROP MATERIALIZED VIEW {view}")
        with pytest.raises(psycopg.errors.UndefinedTable) as told:
            read.result()
    assert str(told.value).startswith(
        f"query could not complete because relation materialize.public.{view} was dropped"
    )
