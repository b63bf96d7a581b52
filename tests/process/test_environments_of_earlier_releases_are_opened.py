"""Goal: what an earlier release wrote is checked, opened and served by this one.

version_N.tar.xz holds the data directory that the last release with catalog version N left behind
after these statements, stopped by SIGTERM:

    CREATE TABLE orders (id int NOT NULL, amount int DEFAULT 7, note text)
    INSERT INTO orders VALUES (1, 10, 'one'), (2, 20, NULL), (3, 30, 'three')
    CREATE SCHEMA other
    CREATE VIEW large AS SELECT * FROM orders WHERE amount > 15
    CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(amount) AS total FROM large
    CREATE INDEX orders_by_id ON orders (id)
    DELETE FROM orders WHERE id = 3
    CREATE TABLE gone (a int)
    DROP TABLE gone

In version 2 a view was added, before the index, that has what upgrades may stumble over:

    CREATE MATERIALIZED VIEW "named (x" (id, "a ""b"", c") AS SELECT id, amount FROM orders
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evertide.catalog.durable.codec import CATALOG_VERSION
from tests.support.server import running_server

VERSIONS = range(1, CATALOG_VERSION)


@pytest.fixture(params=VERSIONS, ids=lambda version: f"version {version}")
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shutil.unpack_archive(Path(__file__).parent / f"version_{request.param}.tar.xz", tmp_path)
    return tmp_path / "data"


def debug(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evertide.cli.main", "catalog-debug", *arguments]
    return subprocess.run(
        [*command, "--data", str(data)], capture_output=True, text=True, check=False
    )


def contents(data: Path) -> dict[str, bytes]:
    files = (path for path in data.rglob("*") if path.is_file())
    return {str(path.relative_to(data)): path.read_bytes() for path in files}


def test_an_upgrade_check_succeeds_and_changes_nothing(data: Path) -> None:
    before = contents(data)
    checked = debug(data, "upgrade-check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert contents(data) == before


def test_everything_is_there_and_goes_on(data: Path, request: pytest.FixtureRequest) -> None:
    later = 0 if request.node.callspec.params["data"] == 1 else 1
    with running_server(data) as server, server.connect() as connection:
        rows = connection.execute("SELECT * FROM orders ORDER BY id").fetchall()
        assert rows == [(1, 10, "one"), (2, 20, None)]
        assert connection.execute("SELECT * FROM totals").fetchall() == [(1, 20)]
        connection.execute("INSERT INTO orders (id, note) VALUES (4, 'defaults'), (5, NULL)")
        connection.execute("UPDATE orders SET amount = 100 WHERE id = 4")
        assert connection.execute("SELECT * FROM totals").fetchall() == [(2, 120)]
        if later:
            named = connection.execute('SELECT id, "a ""b"", c" FROM "named (x" ORDER BY 1')
            assert named.fetchall() == [(1, 10), (2, 20), (4, 100), (5, 7)]
        assert connection.execute("SELECT amount FROM orders WHERE id = 5").fetchall() == [(7,)]
        connection.execute("CREATE TABLE other.later (a int)")
        kinds = connection.execute(
            "SELECT name, type FROM mz_catalog.mz_objects WHERE id LIKE 'u%' ORDER BY name"
        ).fetchall()
        assert kinds == [
            ("large", "view"),
            ("later", "table"),
            *[("named (x", "materialized-view")] * later,
            ("orders", "table"),
            ("orders_by_id", "index"),
            ("totals", "materialized-view"),
        ]
        events = connection.execute(
            "SELECT count(*), count(DISTINCT id), max(object_type) FILTER (WHERE event_type ="
            " 'drop') FROM mz_catalog.mz_audit_events"
        ).fetchall()
        assert events == [(13 + later, 13 + later, "table")]
    assert debug(data, "upgrade-check").returncode == 0
    dump = debug(data, "dump")
    assert f'"key": {{"name": "catalog_version"}}, "value": {{"value": {CATALOG_VERSION}}}' in (
        dump.stdout
    )


@pytest.mark.parametrize("data", [1], indirect=True, ids=["version 1"])
def test_its_id_is_not_made_anew(data: Path) -> None:
    """It would have another catalog then, and seem to be empty. Later it is in the store."""
    stores = ["--consensus", f"sqlite:{data}/consensus.db", "--blob", f"file:{data}/blob"]
    refused = subprocess.run(
        [sys.executable, "-m", "evertide.cli.main", "serve", *stores],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode == 2
    assert "--data" in refused.stderr
    with running_server(data) as server, server.connect() as connection:
        assert connection.execute("SELECT * FROM totals").fetchall() == [(1, 20)]
