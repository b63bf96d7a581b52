"""Goal: pgbench makes its tables and looks keys up, by every protocol that it speaks."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import PGBENCH
from tests.support.server import Server

ACCOUNTS = 100_000
SCRIPT = """
\\set aid random(1, 1000)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (1, 1, :aid, 5);
"""


@pytest.fixture(scope="module")
def tables(server: Server) -> Iterator[Server]:
    """As pgbench makes them; its own filling wants TRUNCATE, so the rows come by COPY."""
    told = pgbench(server, "-i", "-I", "dt")
    assert "done" in told
    with server.connect() as connection:
        connection.execute("INSERT INTO pgbench_branches VALUES (1, 0, '')")
        with connection.cursor().copy(
            "COPY pgbench_accounts (aid, bid, abalance, filler) FROM STDIN"
        ) as copy:
            for aid in range(1, ACCOUNTS + 1):
                copy.write(f"{aid}\t1\t{aid % 7}\t\n")
        connection.execute("CREATE INDEX accounts_by_aid ON pgbench_accounts (aid)")
    yield server
    assert "done" in pgbench(server, "-i", "-I", "d")


def pgbench(server: Server, *arguments: str) -> str:
    host, port = server.sql[0].rsplit(":", 1)
    where = ["-h", host, "-p", port, "-U", "materialize", "materialize"]
    told = subprocess.run(
        [str(PGBENCH), *arguments, *where],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout + told.stderr


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_its_own_lookups(tables: Server, mode: str) -> None:
    told = pgbench(tables, "-n", "-S", "-M", mode, "-c", "4", "-t", "25")
    assert "processed: 100/100" in told
    assert re.search(r"failed transactions: 0 ", told)


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_a_script(tables: Server, tmp_path: Path, mode: str) -> None:
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    with tables.connect() as connection:
        before = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
        told = pgbench(tables, "-n", "-M", mode, "-c", "3", "-t", "10", "-f", str(script))
        assert "processed: 30/30" in told
        after = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
    assert before is not None
    assert after is not None
    assert after[0] - before[0] == 30
