"""Goal: a profile whose size names a Spark cluster runs there, and leaves it when dropped.

Method: a real standalone cluster; a cluster without replicas is lent some on it.
"""

from pathlib import Path

import psycopg
import pytest

from tests.process.test_clusters_change_without_downtime import system
from tests.support.server import eventually, running_server
from tests.support.spark_cluster import spark_cluster


@pytest.mark.spark
def test_a_profile_is_run_where_its_size_says(tmp_path: Path) -> None:
    with spark_cluster(tmp_path / "spark", workers=1, cores=3) as cluster:
        sizes = cluster.size_table(tmp_path / "sizes.json", far={"cores": 1})
        with (
            running_server(tmp_path / "data", ["--sizes", str(sizes)]) as server,
            server.connect() as connection,
            system(server) as internal,
        ):
            connection.execute("CREATE CLUSTER c (MANAGED = false)")
            connection.execute("CREATE TABLE t (a int)")
            connection.execute("INSERT INTO t VALUES (1), (2)")
            internal.execute("CREATE CLUSTER PROFILE c.lent (SIZE 'far', BILLED AS 'unbilled')")
            connection.execute("CREATE VIEW w AS SELECT a FROM t")
            connection.execute("CREATE INDEX w_a IN CLUSTER c ON w (a)")
            eventually(cluster.executors, seconds=120)
            eventually(lambda: _executor(connection) == [("resident",)], seconds=120)
            connection.execute("SET cluster = c")
            assert connection.execute("SELECT a FROM w WHERE a = 2").fetchall() == [(2,)]
            internal.execute("DROP CLUSTER PROFILE c.lent CASCADE")
            eventually(lambda: not cluster.executors())


def _executor(connection: "psycopg.Connection[tuple]") -> list[tuple[object, ...]]:
    """Who ran the newest tick; a write makes sure that there is one."""
    connection.execute("INSERT INTO t VALUES (3)")
    return connection.execute(
        "SELECT executor FROM mz_internal.mz_tick_records ORDER BY started_at DESC LIMIT 1"
    ).fetchall()
