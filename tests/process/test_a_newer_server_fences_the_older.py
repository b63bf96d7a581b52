"""Goal: two generations never write to one environment.

Method: a second server opens the data of a running one; the first must end with code 3, frozen or
not, and must have written nothing afterwards.
"""

import os
import signal
from pathlib import Path

import psycopg
import pytest

from tests.support.server import alive, running_server

pytestmark = pytest.mark.wire


def test_the_first_server_exits_with_code_3_and_the_second_serves(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as first:
        with first.connect() as connection:
            connection.execute("CREATE TABLE t (a int)")
            connection.execute("INSERT INTO t VALUES (1)")
        with running_server(tmp_path / "data") as second:
            assert first.process.wait(60) == 3
            with second.connect() as connection:
                connection.execute("INSERT INTO t VALUES (2)")
                rows = connection.execute("SELECT a FROM t ORDER BY a").fetchall()
                assert rows == [(1,), (2,)]


@pytest.mark.parametrize("catalog", ["persist", "stash", "shadow"])
def test_a_server_frozen_over_the_takeover_can_write_nothing(tmp_path: Path, catalog: str) -> None:
    flags = ["--catalog", catalog]
    with running_server(tmp_path / "data", flags) as first, first.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        frozen = first.descendants()
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        with running_server(tmp_path / "data") as second:
            for pid in frozen:
                if alive(pid):
                    os.kill(pid, signal.SIGCONT)
            with pytest.raises(psycopg.Error):
                connection.execute("CREATE TABLE never (a int)")
            assert first.process.wait(60) == 3
            assert "fenced" in first.log_text()
            with second.connect() as later:
                names = later.execute("SELECT name FROM mz_tables WHERE id LIKE 'u%'").fetchall()
                assert names == [("t",)]


def test_nothing_is_left_behind_after_sigterm(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        with server.connect() as connection:
            connection.execute("SELECT 1")
        pids = server.descendants()
        assert server.stop() == 0
        assert [pid for pid in pids if alive(pid)] == []
