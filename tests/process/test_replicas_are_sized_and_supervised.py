"""Goal: replicas are held to their sizes, watched, and started again; with two, none is missed.

Method: one real server; its processes are killed by pid, or made to take more than they may.
"""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.support.server import (
    Server,
    alive,
    command_line,
    descendants_of,
    eventually,
    running_server,
    start_server,
)

STATUSES = (
    "SELECT s.status, s.reason FROM mz_internal.mz_cluster_replica_statuses s"
    " JOIN mz_cluster_replicas r ON r.id = s.replica_id"
    " JOIN mz_clusters c ON c.id = r.cluster_id WHERE c.name = %s ORDER BY r.name"
)
RESTARTS = (
    "SELECT details->>'reason' FROM mz_audit_events"
    " WHERE event_type = 'restart' AND details->>'cluster_name' = %s ORDER BY id"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("supervised")
    sizes = directory / "sizes.json"
    sizes.write_text('{"tiny": {"cores": 1, "memory_mb": 1024, "credits_per_hour": 0.5}}')
    with running_server(directory / "data", ["--sizes", str(sizes), "--experimental"]) as running:
        eventually(lambda: running.pids_of("replica"))  # that of the virtual clusters
        yield running


@pytest.fixture
def connection(server: Server) -> Iterator["psycopg.Connection[tuple]"]:
    with server.connect() as connected:
        connected.execute("SET statement_timeout = '60s'")
        yield connected


def processes(server: Server, since: set[int]) -> list[int]:
    """Replica processes that were not there before."""
    return sorted(set(server.pids_of("replica")) - since)


def java_below(pid: int) -> list[int]:
    return [below for below in descendants_of(pid) if "java" in command_line(below)[:200]]


def _options_below(pid: int) -> list[str]:
    """What the JVMs below a process were started with."""
    return [word for java in java_below(pid) for word in command_line(java).split()]


def create(
    server: Server, connection: "psycopg.Connection[tuple]", name: str, options: str, count: int
) -> list[int]:
    """A cluster whose replicas are online, and their processes."""
    before = set(server.pids_of("replica"))
    connection.execute(f"CREATE CLUSTER {name} ({options})".encode())
    online = [("online", None)] * count
    eventually(lambda: connection.execute(STATUSES, (name,)).fetchall() == online)
    return processes(server, before)


def test_with_two_replicas_either_may_be_killed(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    replicas = create(server, connection, "two", "SIZE '1', REPLICATION FACTOR 2", 2)
    assert len(replicas) == 2
    connection.execute("CREATE TABLE t (a int)")
    connection.execute("CREATE VIEW twice AS SELECT a, 2 * a AS b FROM t")
    connection.execute("CREATE INDEX twice_a IN CLUSTER two ON twice (a)")
    connection.execute("CREATE MATERIALIZED VIEW v IN CLUSTER two AS SELECT sum(a) AS n FROM t")
    connection.execute("SET cluster = two")
    total = 0

    def is_well_again(restarts: int) -> bool:
        if len(connection.execute(RESTARTS, ("two",)).fetchall()) != restarts:
            return False
        return connection.execute(STATUSES, ("two",)).fetchall() == [("online", None)] * 2

    for number, replica in enumerate(replicas, start=1):
        os.kill(replica, signal.SIGKILL)
        connection.execute("INSERT INTO t VALUES (%s)", (number,))
        total += number
        assert connection.execute("SELECT n FROM v").fetchone() == (total,)
        found = connection.execute("SELECT b FROM twice WHERE a = %s", (number,)).fetchone()
        assert found == (2 * number,)
        eventually(partial(is_well_again, number))
    reasons = connection.execute(RESTARTS, ("two",)).fetchall()
    assert reasons == [("signal 9 (SIGKILL)",)] * 2
    connection.execute("DROP CLUSTER two CASCADE")
    eventually(lambda: len(server.pids_of("replica")) == 1)


def test_nothing_is_left_of_a_killed_replica_nor_of_one_whose_jvm_was(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    (replica,) = create(server, connection, "one", "SIZE '1'", 1)
    (java,) = eventually(lambda: java_below(replica), seconds=120)
    os.kill(java, signal.SIGKILL)
    eventually(lambda: connection.execute(RESTARTS, ("one",)).fetchall() == [("exit code 1",)])
    eventually(lambda: not alive(replica))
    eventually(lambda: connection.execute(STATUSES, ("one",)).fetchall() == [("online", None)])
    history = connection.execute(
        "SELECT h.status, h.reason FROM mz_internal.mz_cluster_replica_status_history h"
        " JOIN mz_cluster_replicas r ON r.id = h.replica_id JOIN mz_clusters c"
        " ON c.id = r.cluster_id WHERE c.name = 'one' ORDER BY h.occurred_at"
    ).fetchall()
    assert history == [
        ("offline", "starting"), ("online", None), ("offline", "exit code 1"), ("online", None)
    ]  # fmt: skip
    others = set(server.pids_of("replica"))
    (replica,) = [p for p in others if len(os.sched_getaffinity(p)) == 1]
    eventually(lambda: java_below(replica), seconds=120)
    below = descendants_of(replica)
    os.kill(replica, signal.SIGKILL)
    eventually(lambda: not any(alive(pid) for pid in below))
    connection.execute("DROP CLUSTER one CASCADE")
    eventually(lambda: set(server.pids_of("replica")) == others - {replica})


def test_a_size_limits_cores_and_memory(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    (replica,) = create(server, connection, "tight", "SIZE 'tiny'", 1)
    heaps = partial(_options_below, replica)
    eventually(lambda: "-Xmx512m" in heaps(), seconds=120)
    for pid in (replica, *descendants_of(replica)):
        for thread in os.listdir(f"/proc/{pid}/task"):
            assert len(os.sched_getaffinity(int(thread))) == 1, command_line(pid)

    def shown() -> list[tuple[object, ...]]:
        return connection.execute(
            "SELECT m.heap_limit::text, u.cpu_percent < 150, u.memory_percent < 100"
            " FROM mz_internal.mz_cluster_replica_metrics m"
            " JOIN mz_internal.mz_cluster_replica_utilization u ON u.replica_id = m.replica_id"
            " JOIN mz_cluster_replicas r ON r.id = m.replica_id WHERE r.size = 'tiny'"
        ).fetchall()

    eventually(lambda: shown() == [(str(1 << 30), True, True)])
    connection.execute("CREATE TABLE few (a int)")
    connection.execute("INSERT INTO few SELECT * FROM generate_series(1, 40)")
    connection.execute("CREATE VIEW wide AS SELECT a, repeat('x', 40000000) || a AS b FROM few")
    connection.execute("CREATE INDEX wide_a IN CLUSTER tight ON wide (a)")

    def said() -> bool:
        return ("oom-killed",) in connection.execute(RESTARTS, ("tight",)).fetchall()

    eventually(said, seconds=120)
    assert not alive(replica)
    connection.execute("DROP CLUSTER tight CASCADE")


def test_all_that_is_told_of_clusters_agrees(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    (replica,) = create(server, connection, "told", "SIZE '1'", 1)

    def measured() -> list[tuple[object, ...]]:
        return connection.execute(
            "SELECT c.cpu_nano_cores = m.cpu_nano_cores, u.memory_bytes = m.memory_bytes,"
            " m.memory_bytes > 1000000 FROM mz_internal.mz_cluster_replica_metrics m"
            " JOIN mz_cluster_replicas r ON r.id = m.replica_id JOIN mz_clusters n"
            " ON n.id = r.cluster_id JOIN mz_internal.mz_cluster_cpu_usage c"
            " ON c.cluster_id = n.id JOIN mz_internal.mz_cluster_memory_usage u"
            " ON u.cluster_id = n.id WHERE n.name = 'told'"
        ).fetchall()

    eventually(lambda: measured() == [(True, True, True)])
    # A supervisor that stands still keeps nobody waiting.
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        relation = "mz_internal.mz_cluster_replica_metrics"
        assert connection.execute(f"SELECT count(*) FROM {relation}".encode()).fetchone() == (0,)
        assert connection.execute(STATUSES, ("told",)).fetchall() == [("online", None)]
        assert time.monotonic() - started < 30
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    connection.execute("DROP CLUSTER told")
    eventually(lambda: not alive(replica))


def test_a_pool_that_is_wanted_again_waits_for_the_end_of_the_old(
    server: Server, connection: "psycopg.Connection[tuple]"
) -> None:
    (old,) = server.pids_of("replica")
    eventually(lambda: java_below(old), seconds=120)
    connection.execute('DROP CLUSTER "default" CASCADE')
    connection.execute("CREATE CLUSTER again VIRTUAL")
    connection.execute("SET cluster = again")
    connection.execute("CREATE TABLE seen (a int)")
    connection.execute("INSERT INTO seen VALUES (7)")
    connection.execute("CREATE MATERIALIZED VIEW sees IN CLUSTER again AS SELECT a FROM seen")
    (new,) = eventually(lambda: set(server.pids_of("replica")) - {old})
    assert not alive(old), "both at once would share a socket and a directory"
    assert connection.execute("SELECT a FROM sees").fetchone() == (7,)
    eventually(lambda: connection.execute(STATUSES, ("again",)).fetchall() == [("online", None)])
    assert alive(new)


def test_nothing_is_left_of_a_killed_supervisor(tmp_path: Path) -> None:
    server = start_server(tmp_path / "data")
    try:
        with server.connect() as connection:
            eventually(lambda: server.pids_of("replica"))
            create(server, connection, "c", "SIZE '1', REPLICATION FACTOR 2", 2)
        eventually(lambda: len([p for r in server.pids_of("replica") for p in java_below(r)]) == 3)
        below = descendants_of(server.process.pid)
        assert len(below) >= 7, "an adapter, three replicas and their JVMs"
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(30)
        eventually(lambda: not [pid for pid in below if alive(pid)])
    finally:
        server.kill_all()
