"""Goal: what was asked of a replacement happens though whoever asked is gone, and every process is
killed in between.

Method: a real server; replacements that apply themselves, and a power cut before they could.
"""

from pathlib import Path

import psycopg

from tests.support.server import eventually
from tests.support.site import running_site

Connection = psycopg.Connection[tuple]
AUTOMATIC = (
    "CREATE MATERIALIZED VIEW r REPLACING mv WITH (APPLY WHEN HYDRATED)"
    " AS SELECT a + {} AS a FROM t"
)
EVENTS = (
    "SELECT event_type, details->>'reason' FROM mz_audit_events"
    " WHERE object_type = 'materialized-view' ORDER BY id"
)


def read(connection: Connection) -> list[tuple]:
    return connection.execute("SELECT a FROM mv").fetchall()


def versions(connection: Connection) -> list[tuple]:
    return connection.execute(
        "SELECT v.version, v.current FROM mz_internal.mz_materialized_view_versions v"
        " JOIN mz_materialized_views m ON m.id = v.id WHERE m.name = 'mv' ORDER BY v.version"
    ).fetchall()


def test_it_is_applied_by_itself_and_after_a_power_cut(tmp_path: Path) -> None:
    with running_site(tmp_path / "data") as site:
        with site.connect() as connection:
            connection.execute("CREATE TABLE t (a int)")
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("CREATE MATERIALIZED VIEW mv AS SELECT a FROM t")
            connection.execute("CREATE MATERIALIZED VIEW above AS SELECT a * 10 AS a FROM mv")
            assert read(connection) == [(1,)]
            connection.execute(AUTOMATIC.format(1).encode())
            eventually(lambda: read(connection) == [(2,)])
            assert versions(connection) == [(1, False), (2, True)]
            told = connection.execute(EVENTS).fetchall()
            assert told[-4:] == [
                ("create", None),
                ("hydrated", None),
                ("drop", "applied"),
                ("alter", None),
            ]
            connection.execute(AUTOMATIC.format(2).encode())
        site.restart()
        with site.connect() as connection:
            eventually(lambda: read(connection) == [(3,)])
            connection.execute("INSERT INTO t VALUES (5)")
            eventually(lambda: sorted(read(connection)) == [(3,), (7,)])
            above = connection.execute("SELECT a FROM above ORDER BY a").fetchall()
            assert above == [(30,), (70,)]
            pending = connection.execute("SELECT count(*) FROM mz_internal.mz_replacements")
            assert pending.fetchone() == (0,)
            connection.execute("CREATE MATERIALIZED VIEW s REPLACING mv AS SELECT a FROM t")
            connection.execute("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT s WHEN READY")
            eventually(lambda: sorted(read(connection)) == [(1,), (5,)])
