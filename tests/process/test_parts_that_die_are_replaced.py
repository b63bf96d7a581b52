"""Goal: whichever part of a replica is killed, views go on; a bad start is told at once.

Method: real processes, killed with SIGKILL by pid.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg

from tests.support.server import (
    Server,
    alive,
    command_line,
    descendants_of,
    eventually,
    running_server,
    start_server,
)


def _java(server: Server) -> list[int]:
    replicas = server.pids_of("replica")
    below = [pid for replica in replicas for pid in descendants_of(replica)]
    return [pid for pid in below if "java" in command_line(pid)[:200]]


def test_a_killed_jvm_is_replaced_and_views_go_on(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        eventually(lambda: "resident task is up" in server.log_text(), seconds=120)
        java = _java(server)[0]
        os.kill(java, signal.SIGKILL)
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT n FROM v").fetchone() == (1,)
        eventually(lambda: not alive(java))


def test_an_occupied_port_is_told_with_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        answer = subprocess.run(
            [
                sys.executable, "-m", "evertide.cli.main", "serve",
                "--data", str(tmp_path / "data"), "--sql-addr", f"127.0.0.1:{port}",
                "--http-addr", "127.0.0.1:0", "--internal-sql-addr", "127.0.0.1:0",
            ],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert answer.returncode == 2
    assert "cannot listen" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_data_directory_that_cannot_be_is_told_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    answer = subprocess.run(
        [sys.executable, "-m", "evertide.cli.main", "serve", "--data", str(tmp_path / "file")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert answer.returncode == 2
    assert "cannot be used" in answer.stderr


def test_sigterm_before_the_server_is_ready_ends_it_cleanly(tmp_path: Path) -> None:
    server = start_server(tmp_path / "data", wait=False)
    try:
        eventually(lambda: "child started" in server.log_text(), pause=0.01)
        assert server.stop() == 0
    finally:
        server.close()


def test_a_restarted_adapter_listens_where_clients_know_it(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        (adapter,) = server.pids_of("adapter")
        os.kill(adapter, signal.SIGKILL)

        def answers() -> bool:
            try:
                with server.connect() as connection:
                    return connection.execute("SELECT 1").fetchone() == (1,)
            except psycopg.OperationalError:
                return False  # not up yet

        eventually(answers)
