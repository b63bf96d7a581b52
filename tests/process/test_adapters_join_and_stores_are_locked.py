"""Goal: one more adapter can join a running server; a store that cannot be had ends with code 4."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg

from tests.support.server import running_server


def test_a_joined_adapter_serves_the_same_environment(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE shared (a int)")
        connection.execute("CREATE MATERIALIZED VIEW shared_view AS SELECT sum(a) AS t FROM shared")
        joined = subprocess.Popen(
            [
                sys.executable, "-m", "evertide.cli.main", "adapter", "--join",
                "--data", str(tmp_path / "data"), "--sql-addr", "127.0.0.1:0",
                "--http-addr", "127.0.0.1:0", "--internal-sql-addr", "127.0.0.1:0",
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert joined.stdout is not None
        try:
            line = joined.stdout.readline()
            address = dict(part.split("=", 1) for part in line.split()[2:])["sql"]
            dsn = f"postgresql://materialize@{address}/materialize"
            with psycopg.connect(dsn, autocommit=True) as other:
                other.execute("INSERT INTO shared VALUES (5)")
                assert connection.execute("SELECT t FROM shared_view").fetchone() == (5,)
                connection.execute("INSERT INTO shared VALUES (6)")
                assert other.execute("SELECT t FROM shared_view").fetchone() == (11,)
        finally:
            joined.terminate()
            assert joined.wait(30) == 0
            joined.stdout.close()
        connection.execute("INSERT INTO shared VALUES (7)")
        assert connection.execute("SELECT t FROM shared_view").fetchone() == (18,)


def test_a_locked_store_ends_with_code_4_and_names_the_holder(tmp_path: Path) -> None:
    with running_server(tmp_path / "data"):
        pass
    holder = sqlite3.connect(tmp_path / "data" / "consensus.db", isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        answer = subprocess.run(
            [sys.executable, "-m", "evertide.cli.main", "serve", "--data", str(tmp_path / "data")],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        holder.close()
    assert answer.returncode == 4
    assert str(os.getpid()) in answer.stderr


def test_an_adapter_with_another_oracle_store_is_refused(tmp_path: Path) -> None:
    """Else acknowledged writes through it would be missed by reads elsewhere."""
    data = tmp_path / "data"
    with running_server(data, ["--oracle", f"sqlite:{tmp_path / 'oracle.db'}"]):
        answer = subprocess.run(
            [
                sys.executable, "-m", "evertide.cli.main", "adapter", "--join",
                "--data", str(data), "--sql-addr", "127.0.0.1:0",
                "--http-addr", "127.0.0.1:0", "--internal-sql-addr", "127.0.0.1:0",
            ],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert answer.returncode == 2
    assert "--oracle" in answer.stderr
