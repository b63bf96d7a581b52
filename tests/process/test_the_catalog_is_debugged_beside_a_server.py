"""Goal: looking into the catalog leaves a running server alone; changing it by hand fences it."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.support.server import running_server


def _debug(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evertide.cli.main", "catalog-debug", *arguments,
         "--data", str(data)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("catalog", ["persist", "stash", "shadow"])
def test_an_edit_fences_the_server_and_the_next_one_shows_it(tmp_path: Path, catalog: str) -> None:
    data = tmp_path / "data"
    with running_server(data, ["--catalog", catalog, "--adapters", "2"]) as first:
        with first.connect() as one, first.connect(adapter=1) as two:
            one.execute("CREATE TABLE t (a int)")
            two.execute("CREATE INDEX i ON t (a)")
            one.execute("INSERT INTO t VALUES (1)")
        assert _debug(data, "upgrade-check").returncode == 0
        lines = [json.loads(line) for line in _debug(data, "dump").stdout.splitlines()]
        assert _debug(data, "epoch").stdout == "1\n"
        with first.connect() as connection:
            connection.execute("INSERT INTO t VALUES (2)")
        (cluster,) = [line for line in lines if line["kind"] == "cluster"]
        value = json.dumps({**cluster["value"], "name": "renamed"})
        edited = _debug(data, "edit", "cluster", json.dumps(cluster["key"]), value)
        assert edited.returncode == 0, edited.stderr
        with pytest.raises(psycopg.Error), first.connect() as connection:
            connection.execute("CREATE TABLE never (a int)")
        assert first.process.wait(60) == 3
    with running_server(data) as second, second.connect() as connection:
        assert connection.execute("SELECT name FROM mz_clusters").fetchall() == [("renamed",)]
        connection.execute("SET cluster = renamed")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)
        tables = connection.execute("SELECT name FROM mz_tables WHERE id LIKE 'u%'").fetchall()
        assert tables == [("t",)]


def test_a_server_whose_two_catalogs_differ_ends_and_says_how(tmp_path: Path) -> None:
    """Method: a row of the stash is changed while the server does not look."""
    data = tmp_path / "data"
    with running_server(data, ["--catalog", "shadow"]) as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE t (a int)")
        assert server.stop() == 0
    with closing(sqlite3.connect(data / "consensus.db")) as stored, stored:
        stored.execute("UPDATE stash_item SET value = replace(value, '\"t\"', '\"x\"')")
    answer = subprocess.run(
        [sys.executable, "-m", "evertide.cli.main", "serve", "--data", str(data),
         "--sql-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0",
         "--internal-sql-addr", "127.0.0.1:0"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert answer.returncode == 5
    assert "the two catalogs of the shadow differ" in answer.stderr
    assert "persist has item" in answer.stderr
    assert "stash has item" in answer.stderr
