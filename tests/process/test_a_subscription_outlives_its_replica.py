"""Goal: a subscription of a query goes on, exact, when replicas that compute it are killed.

Method: a real server; replicas of a cluster of one and of a cluster of two are killed while rows
are written and followed.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.support.server import eventually, running_server
from tests.support.subscriber import Subscriber, held_at

QUERY = "SELECT a % 7, count(*) FROM t GROUP BY a % 7"


@pytest.mark.parametrize("replicas", [1, 2])
def test_nothing_is_missing_and_nothing_told_twice(tmp_path: Path, replicas: int) -> None:
    with (
        running_server(tmp_path / "data") as server,
        server.connect() as writer,
        server.connect() as reader,
    ):
        writer.execute("CREATE TABLE t (a int)")
        writer.execute("INSERT INTO t VALUES (0)")
        if replicas > 1:
            writer.execute("CREATE CLUSTER two (SIZE '1', REPLICATION FACTOR 2)")
            reader.execute("SET cluster = two")
        follower = Subscriber(reader, f"SUBSCRIBE ({QUERY}) WITH (PROGRESS)")
        try:
            follower.wait_for(2)
            for round_ in range(2):
                running = eventually(lambda: server.pids_of("replica"))
                os.kill(running[-1 if round_ else 0], signal.SIGKILL)
                for i in range(10):
                    writer.execute(f"INSERT INTO t VALUES ({round_ * 10 + i})")
                row = writer.execute("SELECT mz_now()::text").fetchone()
                assert row is not None
                follower.wait_beyond(int(row[0]))
                told = held_at(follower.rows, int(row[0]), progress=True)
                assert sorted(told) == sorted(writer.execute(QUERY).fetchall())
                assert set(told.values()) == {1}
            changes = [(row[0], *row[2:]) for row in follower.rows if not row[1]]
            assert len(changes) == len(set(changes))
        finally:
            follower.stop()
