"""Goal: what replicas tell of themselves can be asked while one is frozen, and says so.

Method: a cluster with a replica of its own is hydrated, then its process is stopped by SIGSTOP; the
pool goes on.
"""

import os
import signal
from pathlib import Path

from tests.support.server import eventually, running_server

STATUSES = (
    "SELECT o.name, h.hydrated, h.reason FROM mz_internal.mz_hydration_statuses h"
    " JOIN mz_objects o ON o.id = h.object_id ORDER BY o.name"
)
REPORTS = (
    "mz_internal.mz_tick_records",
    "mz_internal.mz_arrangement_sizes",
    "mz_internal.mz_frontiers",
    "mz_catalog.mz_cluster_replica_frontiers",
)


def test_a_frozen_replica_is_told_as_silent(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        (pool,) = eventually(lambda: server.pids_of("replica"))
        connection.execute("CREATE CLUSTER other REPLICAS (r1 (SIZE '1'))")
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM t")
        connection.execute("CREATE MATERIALIZED VIEW w IN CLUSTER other AS SELECT a FROM t")
        hydrated = [("v", True, None), ("w", True, None)]
        eventually(lambda: connection.execute(STATUSES).fetchall() == hydrated)
        (replica,) = set(server.pids_of("replica")) - {pool}
        os.kill(replica, signal.SIGSTOP)
        try:
            connection.execute("SET statement_timeout = '30s'")
            found = connection.execute(STATUSES).fetchall()
            told = {
                relation: connection.execute(
                    f"SELECT DISTINCT o.name FROM {relation} r"
                    " JOIN mz_objects o ON o.id = r.object_id".encode()
                ).fetchall()
                for relation in REPORTS
            }
        finally:
            os.kill(replica, signal.SIGCONT)
        assert found == [("v", True, None), ("w", False, "the replica does not answer")]
        assert told.pop("mz_internal.mz_frontiers")
        assert all(("w",) not in names and ("v",) in names for names in told.values())
        eventually(lambda: connection.execute(STATUSES).fetchall() == hydrated)
