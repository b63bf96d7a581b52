"""Goal: a row that is removed without having been there is reported, not swallowed.

Method: between two lives of a server a removal of a row that is not there is appended to a table
with the library itself. The table, every kind of view over it, old or new, and subscriptions are
in error then and name the table's shard; other tables are not. The counterpart mends it all.
"""

from pathlib import Path

import psycopg
import pytest

from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT4
from tests.support.server import eventually
from tests.support.site import running_site
from tests.support.stray import append_stray

Connection = psycopg.Connection[tuple]
DESC = RelationDesc((ColumnDesc("k", INT4), ColumnDesc("v", INT4)))
STRAY = (9, 90)
VIEWS = {
    "linear": "SELECT v, k + 1 AS k FROM t WHERE v > 0",
    "summed": "SELECT k, count(*) AS n, sum(v) AS total FROM t GROUP BY k",
    "whole": "SELECT count(*) AS n, max(v) AS last FROM t",
    "different": "SELECT DISTINCT k FROM t",
    "first": "SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v DESC",
    "joined": "SELECT t.v, u.w FROM t JOIN u ON t.k = u.k",
    "above": "SELECT count(*) AS n FROM summed",
}


def shard_of(connection: Connection, table: str) -> str:
    row = connection.execute(
        "SELECT s.shard_id FROM mz_internal.mz_storage_shards s JOIN mz_catalog.mz_objects o"
        f" ON o.id = s.object_id WHERE o.name = '{table}'"
    ).fetchone()
    assert row is not None
    return str(row[0])


def refused(connection: Connection, statement: str, shard: str) -> None:
    with pytest.raises(psycopg.errors.InternalError_, match="less than zero times") as error:
        connection.execute(statement).fetchall()
    assert shard in str(error.value), statement


def check(connection: Connection, views: dict[str, str]) -> None:
    for name, query in views.items():
        found = sorted(connection.execute(f"SELECT * FROM {name}").fetchall())
        assert found == sorted(connection.execute(query).fetchall()), name


def test_all_that_follows_from_it_is_in_error_until_it_is_mended(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_site(data) as site, site.connect() as connection:
        connection.execute("CREATE TABLE t (k int, v int)")
        connection.execute("CREATE TABLE u (k int, w int)")
        connection.execute("INSERT INTO t VALUES (1, 10), (1, 11), (2, 20)")
        connection.execute("INSERT INTO u VALUES (1, 7), (9, 8)")
        for name, query in VIEWS.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        check(connection, VIEWS)
        shard = shard_of(connection, "t")
    append_stray(data, shard, DESC, STRAY, -1)
    with running_site(data) as site, site.connect() as connection:
        for name in ("t", *VIEWS):
            refused(connection, f"SELECT * FROM {name}", shard)
        refused(connection, "SELECT count(*) FROM t", shard)
        refused(connection, "SUBSCRIBE summed", shard)
        refused(connection, "SUBSCRIBE t", shard)
        assert connection.execute("SELECT * FROM u ORDER BY k").fetchall() == [(1, 7), (9, 8)]
        connection.execute("CREATE MATERIALIZED VIEW late AS SELECT k, max(v) FROM t GROUP BY k")
        refused(connection, "SELECT * FROM late", shard)
        connection.execute("INSERT INTO t VALUES (3, 30)")
        for name in ("late", *VIEWS):
            refused(connection, f"SELECT * FROM {name}", shard)
        connection.execute("INSERT INTO t VALUES (%s, %s)", STRAY)
        eventually(lambda: readable(connection))
        assert sorted(connection.execute("SELECT * FROM t").fetchall()) == [
            (1, 10), (1, 11), (2, 20), (3, 30),
        ]  # fmt: skip
        check(connection, VIEWS | {"late": "SELECT k, max(v) FROM t GROUP BY k"})


def readable(connection: Connection) -> bool:
    try:
        connection.execute("SELECT * FROM t")
    except psycopg.errors.InternalError_:
        return False
    return True
