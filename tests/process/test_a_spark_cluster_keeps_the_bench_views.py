"""Goal: on a real Spark cluster, with state spread over two tasks, views are kept and survive.

Method: a standalone master and two workers as processes on loopback; the views of the benchmark
under random changes, beside DuckDB with the same rows. Then the executor of a resident task is
killed while rows are written and read. A subscription and an index are followed all along.
"""

import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from bench.views.changes import draw_batch
from bench.views.definitions import VIEWS
from bench.views.model import Model, require_same
from bench.views.tables import TABLES
from tests.support.server import Server, command_line, descendants_of, eventually, running_server
from tests.support.spark_cluster import SparkCluster, spark_cluster
from tests.support.subscriber import Subscriber, held_at

Connection = psycopg.Connection[tuple]

SCALE = 0.004
BATCH = 40
SUBSCRIBED = (
    "SELECT o.status, count(*) FROM orders o JOIN lineitem l ON l.order_id = o.id GROUP BY 1"
)
TICKS = "SELECT DISTINCT object_id FROM mz_internal.mz_tick_records WHERE executor = %s"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@contextmanager
def served(directory: Path, cluster: SparkCluster, **size: object) -> Iterator[Server]:
    """A server with one cluster `far`, of two partitions."""
    sizes = cluster.size_table(directory / "sizes.json", pair={"cores": 2, "partitions": 2, **size})
    with running_server(directory / "data", ["--sizes", str(sizes)]) as server:
        with server.connect() as connection:
            # Its process would only take time from the others.
            connection.execute('DROP CLUSTER "default" CASCADE')
            connection.execute("CREATE CLUSTER far (SIZE 'pair')")
        yield server


def far(server: Server) -> Connection:
    return server.connect(options="-c cluster=far -c statement_timeout=240000")


@pytest.mark.timeout(600)
def test_views_are_kept_when_an_executor_is_killed(tmp_path: Path, cluster: SparkCluster) -> None:
    model = Model(SCALE)
    with served(tmp_path, cluster) as server, far(server) as connection, far(server) as reader:
        create_everything(connection, model)
        follower = Subscriber(reader, f"SUBSCRIBE ({SUBSCRIBED}) WITH (PROGRESS)")
        try:
            keep_through_a_kill(server, connection, model, cluster, follower)
        finally:
            follower.stop()
    model.close()


@pytest.mark.timeout(600)
def test_spark_builds_the_state_that_tasks_go_on_from(
    tmp_path: Path, cluster: SparkCluster
) -> None:
    """Executors read the tables' files; what they compute goes through the driver to the tasks."""
    model = Model(SCALE)
    view = VIEWS["distinct_bidders"]
    with served(tmp_path, cluster, hydrate_records=1) as server, far(server) as connection:
        create_tables(connection, model, view.reads)
        connection.execute(f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}")
        eventually(lambda: ticked(connection, "spark"), seconds=240)
        for number in range(3):
            for statement in draw_batch(model, view, BATCH, number, inserts=False).statements:
                connection.execute(statement)
            found = connection.execute(f"SELECT * FROM {view.name}").fetchall()
            require_same(found, model.everything(view), view.name)
        assert ticked(connection, "resident"), "the tasks went on from there"
        plan = connection.execute(f"EXPLAIN DELTA PLAN FOR MATERIALIZED VIEW {view.name}")
        assert "in 2 partitions: 2 stages" in str(plan.fetchall())
    model.close()


def keep_through_a_kill(
    server: Server,
    connection: Connection,
    model: Model,
    cluster: SparkCluster,
    follower: Subscriber,
) -> None:
    eventually(lambda: ticked(connection, "resident") >= views(connection), seconds=240)
    change_everything(connection, model, 0)
    check_everything(connection, model, follower)
    # One task has no share of half the keys: both hold some.
    assert tasks_up(server) == [2]
    check_secrets(server, cluster)

    killed = executor_of_a_task(server, cluster)
    change_everything(connection, model, 1)
    os.kill(killed, signal.SIGKILL)
    change_everything(connection, model, 2)
    check_everything(connection, model, follower)
    assert tasks_up(server) == [2, 2], "a lost task is replaced, and the others with it"
    change_everything(connection, model, 3)
    check_everything(connection, model, follower)
    assert killed not in cluster.executors()


def create_tables(connection: Connection, model: Model, names: Iterable[str]) -> None:
    for name in names:
        connection.execute(TABLES[name].create)
        for rows in model.stored_literals(name):
            connection.execute(f"INSERT INTO {name} VALUES {', '.join(rows)}")


def create_everything(connection: Connection, model: Model) -> None:
    create_tables(connection, model, TABLES)
    for view in VIEWS.values():
        connection.execute(f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}")
    connection.execute("CREATE INDEX bids_by_auction ON bids (auction)")


def change_everything(connection: Connection, model: Model, number: int) -> None:
    for view in VIEWS.values():
        for statement in draw_batch(model, view, BATCH, number, inserts=False).statements:
            connection.execute(statement)


def check_everything(connection: Connection, model: Model, follower: Subscriber) -> None:
    """Reads are strict serializable: each waits until its view has taken all changes in."""
    for view in VIEWS.values():
        found = connection.execute(f"SELECT * FROM {view.name}").fetchall()
        require_same(found, model.everything(view), view.name)
    auction = model.connection.execute("SELECT min(auction) FROM bids").fetchall()[0][0]
    for condition in (f"auction = {auction}", f"auction IN ({auction}, 3, 5)", "auction < 9"):
        query = f"SELECT auction, id, amount FROM bids WHERE {condition}"
        expected = model.connection.execute(query).fetchall()
        require_same(connection.execute(query).fetchall(), expected, condition)
    row = connection.execute("SELECT mz_now()::text").fetchone()
    assert row is not None
    follower.wait_beyond(int(row[0]))
    told = held_at(follower.rows, int(row[0]), progress=True)
    assert set(told.values()) == {1}
    require_same(list(told), model.connection.execute(SUBSCRIBED).fetchall(), "subscription")


def views(connection: Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT id FROM mz_materialized_views").fetchall()}


def ticked(connection: Connection, executor: str) -> set[str]:
    return {row[0] for row in connection.execute(TICKS, [executor]).fetchall()}


def tasks_up(server: Server) -> list[int]:
    """How many tasks there were each time that all of them were up."""
    found = re.findall(r'event="all resident tasks are up" partitions=(\d+)', server.log_text())
    return [int(count) for count in found]


def executor_of_a_task(server: Server, cluster: SparkCluster) -> int:
    """The JVM whose Python worker said hello last."""
    tasks = re.findall(r'event="resident task is up" pid=(\d+)', server.log_text())
    for executor in cluster.executors():
        if int(tasks[-1]) in descendants_of(executor):
            return executor
    raise AssertionError(f"no executor runs {tasks}")


def check_secrets(server: Server, cluster: SparkCluster) -> None:
    """No command line, which every user of the host can read, holds the cluster's secret."""
    secret = cluster.secret_file.read_text()
    pids = [*server.descendants(), *cluster.executors(), *(w.pid for w in cluster.workers)]
    lines = [command_line(pid) for pid in pids]
    assert any("CoarseGrainedExecutorBackend" in line for line in lines)
    assert not any(secret in line for line in lines)
