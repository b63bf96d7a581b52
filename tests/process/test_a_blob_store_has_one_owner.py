"""Goal: an environment never works over a blob store that is not its own, and a copy of an
environment leaves the original alone.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.support.server import running_server

ADDRESSES = [
    "--sql-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--internal-sql-addr", "127.0.0.1:0",
]  # fmt: skip


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "evertide.cli.main", *arguments, *ADDRESSES]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_another_blob_store_is_refused_before_anything_is_fenced(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    with running_server(other) as ending:
        owner = other / "blob" / "environment"
        assert json.loads(owner.read_bytes())["counter"] == 1
        assert ending.stop() == 0
        assert json.loads(owner.read_bytes())["counter"] == 2, "a copy made before it is an old one"
    with running_server(data) as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        consensus, blobs = f"sqlite:{data}/consensus.db", (f"{other}/blob", f"{tmp_path}/new")
        for blob in blobs:
            for program in (["serve"], ["adapter", "--join"]):
                answer = run(*program, "--consensus", consensus, "--blob", f"file:{blob}")
                assert answer.returncode == 2, answer.stderr
                assert "belongs to" in answer.stderr
                assert "Traceback" not in answer.stderr
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_copy_runs_beside_the_original(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with running_server(data) as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("INSERT INTO t SELECT g FROM generate_series(1, 20000) g")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        assert connection.execute("SELECT n FROM v").fetchone() == (20_000,)
        copy.mkdir(mode=0o700)
        source = sqlite3.connect(data / "consensus.db")
        target = sqlite3.connect(copy / "consensus.db")
        source.backup(target)
        source.close()
        target.close()
        shutil.copytree(data / "blob", copy / "blob")
        connection.execute("INSERT INTO t VALUES (0)")
        with running_server(copy) as copied, copied.connect() as elsewhere:
            assert elsewhere.execute("SELECT n FROM v").fetchone() == (20_000,)
            elsewhere.execute("INSERT INTO t VALUES (1), (2)")
            assert elsewhere.execute("SELECT n FROM v").fetchone() == (20_002,)
            # The original's processes still find one another.
            (replica,) = server.pids_of("replica")
            connection.execute("CREATE INDEX ON v (n)")
            assert connection.execute("SELECT n FROM v WHERE n = 20001").fetchone() == (20_001,)
            os.kill(replica, 0)


def test_debugging_what_cannot_be_reached_ends_with_4(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "evertide.cli.main", "catalog-debug", "epoch",
        "--consensus", "postgresql://127.0.0.1:1/none", "--blob", f"file:{tmp_path}",
    ]  # fmt: skip
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 4
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
