"""Goal: with two replicas, reads of an index go on when one of them is frozen, and see every write.

Method: a real server with two replica processes, of which one is stopped by a signal.
"""

import os
import signal
from pathlib import Path

from tests.support.server import eventually, running_server
from tests.wire.test_index_lookups_equal_postgres import index_reads, wait_for_index


def test_the_other_replica_answers(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int, b int)")
        (pool,) = eventually(lambda: server.pids_of("replica"))
        connection.execute("CREATE CLUSTER two (SIZE '1', REPLICATION FACTOR 2)")
        connection.execute("SET cluster = two")
        connection.execute("CREATE INDEX t_key ON t (a, b)")
        wait_for_index(server, connection, "SELECT * FROM t WHERE a > 0")
        hydrated = "SELECT count(*) FROM mz_internal.mz_hydration_statuses WHERE hydrated"

        def both_hydrated() -> bool:
            return connection.execute(hydrated).fetchone() == (2,)

        eventually(both_hydrated, seconds=120, pause=0.5)
        replicas = set(server.pids_of("replica")) - {pool}
        assert len(replicas) == 2
        for frozen in sorted(replicas):
            os.kill(frozen, signal.SIGSTOP)
            try:
                unanswered = index_reads(server, "unanswered")
                for number in range(10):
                    connection.execute(f"INSERT INTO t VALUES ({frozen}, {number})")
                    read = f"SELECT count(*) FROM t WHERE a = {frozen} AND b >= 0"
                    assert connection.execute(read).fetchone() == (number + 1,)
                assert index_reads(server, "unanswered") == unanswered
            finally:
                os.kill(frozen, signal.SIGCONT)
