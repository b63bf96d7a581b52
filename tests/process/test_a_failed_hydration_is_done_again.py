"""Goal: a view whose state Spark SQL cannot build says why, and is built once that can be done.

Method: a size whose views are built by Spark SQL however small they are. A part of the table is
damaged between two lives of the server, and mended while the second one runs.
"""

import json
from pathlib import Path

import psycopg

from tests.support.server import eventually
from tests.support.site import running_site

Connection = psycopg.Connection[tuple]
QUERY = "SELECT k, count(*) AS n, max(pad) AS pad FROM t GROUP BY k"


def reason(connection: Connection) -> str:
    rows = connection.execute(
        "SELECT h.reason FROM mz_internal.mz_hydration_statuses h JOIN mz_catalog.mz_objects o"
        " ON o.id = h.object_id WHERE o.name = 'v' AND h.reason IS NOT NULL"
    ).fetchall()
    return " ".join(str(row[0]) for row in rows)


def executors(connection: Connection) -> list[tuple]:
    return connection.execute(
        "SELECT DISTINCT r.executor FROM mz_internal.mz_tick_records r JOIN mz_catalog.mz_objects o"
        " ON o.id = r.object_id WHERE o.name = 'v'"
    ).fetchall()


def test_a_part_that_cannot_be_read_delays_the_view(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps({"by_spark": {"hydrate_records": 1}}))
    flags = ["--sizes", str(sizes)]
    with running_site(tmp_path / "data", flags) as site, site.connect() as connection:
        connection.execute("CREATE TABLE t (k int, pad text)")
        connection.execute(
            "INSERT INTO t SELECT i % 9, repeat('p', 500) || i::text"
            " FROM generate_series(1, 3000) AS i"
        )
    parts = list((tmp_path / "data").rglob("*.parquet"))
    assert parts, "the rows are in files"
    sound = {part: part.read_bytes() for part in parts}
    for part, value in sound.items():
        part.write_bytes(value[: len(value) // 2] + b"?" + value[len(value) // 2 + 1 :])
    with running_site(tmp_path / "data", flags) as site, site.connect() as connection:
        connection.execute("CREATE CLUSTER c (SIZE 'by_spark', REPLICATION FACTOR 1)")
        connection.execute("CREATE TABLE other (a int)")
        connection.execute("INSERT INTO other VALUES (1)")
        connection.execute(f"CREATE MATERIALIZED VIEW v IN CLUSTER c AS {QUERY}")
        connection.execute(
            "CREATE MATERIALIZED VIEW w IN CLUSTER c AS SELECT count(*) AS n FROM other"
        )
        assert connection.execute("SELECT n FROM w").fetchall() == [(1,)]
        assert "part" in eventually(lambda: reason(connection), seconds=120)
        for part, value in sound.items():
            part.write_bytes(value)
        found = sorted(connection.execute("SELECT * FROM v").fetchall())
        assert found == sorted(connection.execute(QUERY).fetchall())
        assert not reason(connection)
        eventually(lambda: ("spark",) in executors(connection), seconds=120)
        connection.execute("DELETE FROM t WHERE k > 0")
        found = connection.execute("SELECT * FROM v").fetchall()
        assert found == connection.execute(QUERY).fetchall()
