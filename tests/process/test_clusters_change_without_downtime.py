"""Goal: a cluster changes its size with no failed read, whoever leaves; lent replicas go in time.

Method: one real server under load; the client that asked goes away, and all processes are killed.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import psycopg

from tests.support.server import Server, eventually, running_server, start_server

RESIZE = (
    "ALTER CLUSTER c SET (SIZE = '{}') WITH (WAIT UNTIL READY (TIMEOUT = '{}', ON TIMEOUT = {}))"
)
SIZES = (
    "SELECT r.name, r.size FROM mz_cluster_replicas r JOIN mz_clusters c"
    " ON c.id = r.cluster_id WHERE c.name = 'c' ORDER BY r.name"
)
HYDRATED = (
    "SELECT r.name, h.hydrated FROM mz_internal.mz_hydration_statuses h"
    " JOIN mz_cluster_replicas r ON r.id = h.replica_id"
    " JOIN mz_clusters c ON c.id = r.cluster_id WHERE c.name = 'c'"
)
PENDING = "SELECT count(*) FROM mz_internal.mz_cluster_reconfigurations"


def system(server: Server) -> "psycopg.Connection[tuple]":
    """As the system's own user, on the internal address."""
    host, port = server.internal[0].rsplit(":", 1)
    return psycopg.connect(
        host=host, port=int(port), user="mz_system", dbname="materialize", autocommit=True
    )


class Reads:
    """What a reader met."""

    def __init__(self) -> None:
        self.count = 0
        self.failed: list[str] = []
        self.stop = threading.Event()


@contextmanager
def reading(server: Server) -> Iterator[Reads]:
    """Writes a row, and reads what depends on it from the index and the view, again and again."""
    reads = Reads()

    def read() -> None:
        with server.connect() as connection:
            connection.execute("SET cluster = c")
            while not reads.stop.is_set():
                reads.count += 1
                try:
                    connection.execute("INSERT INTO t VALUES (%s)", (reads.count,))
                    row = connection.execute(
                        "SELECT b FROM twice WHERE a = %s", (reads.count,)
                    ).fetchone()
                    assert row == (2 * reads.count,), row
                    row = connection.execute("SELECT n FROM v").fetchone()
                    assert row == (reads.count,), row
                except (psycopg.Error, AssertionError) as error:
                    reads.failed.append(repr(error))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield reads
    finally:
        reads.stop.set()
        thread.join(60)


def prepare(connection: "psycopg.Connection[tuple]") -> None:
    connection.execute("CREATE CLUSTER c (SIZE = '1')")
    connection.execute("CREATE TABLE t (a int)")
    connection.execute("CREATE VIEW twice AS SELECT a, 2 * a AS b FROM t")
    connection.execute("CREATE INDEX twice_a IN CLUSTER c ON twice (a)")
    connection.execute("CREATE MATERIALIZED VIEW v IN CLUSTER c AS SELECT count(*) AS n FROM t")
    connection.execute("SELECT n FROM v")


def test_no_read_fails_while_a_cluster_is_resized(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        prepare(connection)
        with reading(server) as reads:
            eventually(lambda: reads.count > 10)
            connection.execute(RESIZE.format("2", "120s", "ROLLBACK").encode())
            assert connection.execute(HYDRATED).fetchall() == [("r1", True), ("r1", True)]
            assert connection.execute(SIZES).fetchall() == [("r1", "2")]
            after = reads.count
            eventually(lambda: reads.count > after + 10)
        assert not reads.failed, reads.failed[:3]

        _expires(server, connection)


def _expires(server: Server, connection: "psycopg.Connection[tuple]") -> None:
    """An unbilled profile on the same server: it comes, costs apart, and goes by itself."""
    with system(server) as internal:
        internal.execute(
            "CREATE CLUSTER PROFILE c.support"
            " (SIZE '4', BILLED AS 'unbilled', EXPIRES AFTER '2 seconds')"
        )
    assert ("support_r1", "4") in connection.execute(SIZES).fetchall()
    eventually(lambda: connection.execute(SIZES).fetchall() == [("r1", "2")])
    events = connection.execute(
        "SELECT event_type, object_type, details->>'reason', \"user\" FROM mz_audit_events"
        " WHERE details->>'profile_name' = 'support' ORDER BY id"
    ).fetchall()
    assert events == [
        ("create", "cluster-profile", "manual", "mz_system"),
        ("create", "cluster-replica", "manual", "mz_system"),
        ("drop", "cluster-replica", "expired", None),
        ("drop", "cluster-profile", "expired", None),
    ]
    lived = connection.execute(
        "SELECT sum(CASE WHEN event_type = 'drop' THEN 1 ELSE -1 END * extract(epoch FROM"
        " occurred_at)) FROM mz_audit_events WHERE object_type = 'cluster-replica'"
        " AND details->>'profile_name' = 'support'"
    ).fetchone()
    spent = connection.execute(
        "SELECT sum(credits) FROM mz_internal.mz_cluster_usage WHERE NOT billed"
    ).fetchone()
    assert lived is not None
    assert spent is not None
    assert abs(spent[0] - 4 * lived[0] / 3600) < Decimal("0.00001")
    billed = connection.execute(
        "SELECT DISTINCT billed_as FROM mz_internal.mz_cluster_usage WHERE billed"
    ).fetchall()
    assert billed == [(None,)]


def test_a_resize_goes_on_when_everybody_has_gone(tmp_path: Path) -> None:
    server = start_server(tmp_path / "data")
    try:
        with server.connect() as connection, server.connect() as other:
            prepare(connection)
            asking = threading.Thread(target=_ask_in_vain, args=(other,))
            asking.start()
            eventually(lambda: connection.execute(PENDING).fetchone() == (1,), pause=0.01)
            server.kill_all()
            asking.join(30)
    finally:
        server.kill_all()
    with running_server(tmp_path / "data") as again, again.connect() as connection:
        eventually(lambda: connection.execute(SIZES).fetchall() == [("r1", "2")])
        assert connection.execute(PENDING).fetchone() == (0,)
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT n FROM v").fetchone() == (1,)


def _ask_in_vain(connection: "psycopg.Connection[tuple]") -> None:
    try:
        connection.execute(RESIZE.format("2", "600s", "ROLLBACK").encode())
    except psycopg.OperationalError:
        return
    raise AssertionError("the server was killed before it could answer")
