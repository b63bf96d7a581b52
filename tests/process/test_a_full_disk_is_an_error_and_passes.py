"""Goal: a full disk is an error that clients are told, SQLSTATE 53100, and nothing worse.

Method: consensus and blob lie on two small file systems; each is filled with ballast while clients
write, then freed. Reads go on meanwhile, the same connections and processes go on afterwards, and
what was acknowledged is all there is, also after the whole tree was killed and started again.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.support.fault_injection import full, mounting, small_disk
from tests.support.ledger import LARGE, SMALL, Ledger
from tests.support.server import eventually, running_server
from tests.support.site import Site, running_site

DISK_FULL = "53100"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(id) AS total FROM t"


@dataclass(frozen=True)
class Disks:
    """A small one for each of the two stores."""

    consensus: Path
    blob: Path


@contextmanager
def _two_disks(directory: Path) -> Iterator[tuple[Site, Disks]]:
    disks = Disks(directory / "consensus", directory / "blob")
    consensus, blob = disks.consensus / "consensus.db", disks.blob / "parts"
    flags = ["--consensus", f"sqlite:{consensus}", "--blob", f"file:{blob}"]
    with (
        small_disk(disks.consensus, 64),
        small_disk(disks.blob, 64),
        running_site(directory / "data", flags) as site,
    ):
        yield site, disks


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """For what a test opens by itself, because it may have to run elsewhere (see mounting)."""
    with ExitStack() as opened:
        yield opened


def _refused(connection: "psycopg.Connection[tuple]", *statements: str) -> None:
    """Run them; the last must end with 53100."""
    for statement in statements[:-1]:
        connection.execute(statement)
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(statements[-1])
    assert refused.value.sqlstate == DISK_FULL, refused.value
    assert "room" in str(refused.value)


def _check(ledger: Ledger, connection: "psycopg.Connection[tuple]") -> None:
    """The rows are those that clients were told of, and the view agrees."""
    ledger.check(connection)
    rows = ledger.acknowledged
    assert connection.execute("SELECT n, total FROM v").fetchall() == [(len(rows), sum(rows))]


@mounting
def test_without_room_in_consensus_nothing_is_written_and_everything_is_read(
    tmp_path: Path, stack: ExitStack
) -> None:
    site, disks = stack.enter_context(_two_disks(tmp_path))
    ledger = Ledger("t")
    with site.connect() as connection:
        ledger.create(connection)
        connection.execute(VIEW)
        assert [ledger.insert(connection, size) for size in (SMALL, LARGE)] == ["acknowledged"] * 2
        _check(ledger, connection)
        processes = site.processes()
        parts = sorted(disks.blob.rglob("*.parquet"))
        with full(disks.consensus):
            for size in (SMALL, LARGE, SMALL):
                assert ledger.insert(connection, size) == DISK_FULL
            _refused(connection, "UPDATE t SET pad = 'x' WHERE id = 1")
            _refused(connection, "DELETE FROM t")
            _refused(connection, "CREATE TABLE u (a int)")
            _refused(connection, "BEGIN", "INSERT INTO t VALUES (0, '')", "COMMIT")
            _check(ledger, connection)
            with site.connect() as other:
                _check(ledger, other)
            assert sorted(disks.blob.rglob("*.parquet")) == parts, "what was refused left parts"
        for size in (SMALL, LARGE):
            assert ledger.insert(connection, size) == "acknowledged"
        connection.execute("CREATE TABLE u (a int)")
        connection.execute("UPDATE t SET pad = 'x' WHERE id = 1")
        _check(ledger, connection)
        assert site.processes() == processes
    site.restart()
    with site.connect() as connection:
        _check(ledger, connection)
        assert ledger.insert(connection) == "acknowledged"
        _check(ledger, connection)


@mounting
def test_without_room_in_blob_small_writes_and_other_views_go_on(
    tmp_path: Path, stack: ExitStack
) -> None:
    site, disks = stack.enter_context(_two_disks(tmp_path))
    ledger, wide = Ledger("t"), Ledger("wide")
    with site.connect() as connection:
        ledger.create(connection)
        wide.create(connection)
        connection.execute(VIEW)
        # A small row more is a large one in the view.
        connection.execute(
            "CREATE MATERIALIZED VIEW amplified AS SELECT t.id, wide.pad || t.pad AS b FROM t, wide"
        )
        assert wide.insert(connection, LARGE) == "acknowledged"
        assert ledger.insert(connection) == "acknowledged"
        assert connection.execute("SELECT count(*) FROM amplified").fetchone() == (1,)
        processes = site.processes()
        with full(disks.blob):
            assert wide.insert(connection, LARGE) == DISK_FULL
            for _ in range(3):
                assert ledger.insert(connection) == "acknowledged"
                _check(ledger, connection)
            eventually(lambda: "up to date failed" in site.server.log_text())
            assert not list(disks.blob.rglob(".writing-*"))
            assert ledger.insert(connection) == "acknowledged"
            _check(ledger, connection)
        assert connection.execute("SELECT count(*) FROM amplified").fetchone() == (5,)
        assert wide.insert(connection, LARGE) == "acknowledged"
        assert connection.execute("SELECT count(*) FROM amplified").fetchone() == (10,)
        assert site.processes() == processes
    site.restart()
    with site.connect() as connection:
        _check(ledger, connection)
        found = connection.execute(
            "SELECT id, count(*), count(DISTINCT b) FROM amplified GROUP BY id ORDER BY id"
        )
        assert found.fetchall() == [(number, 2, 2) for number in range(1, 6)]


@mounting
def test_parts_of_a_server_killed_on_a_full_disk_start_again(
    tmp_path: Path, stack: ExitStack
) -> None:
    """Whoever joins a generation reads, and needs no room for that."""
    site, disks = stack.enter_context(_two_disks(tmp_path))
    ledger = Ledger("t")
    with site.connect() as connection:
        ledger.create(connection)
        connection.execute(VIEW)
        assert ledger.insert(connection) == "acknowledged"
        _check(ledger, connection)
    with full(disks.consensus), full(disks.blob):
        for pid in site.processes():
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: _answers(site))
        with site.connect() as connection:
            _check(ledger, connection)
            assert ledger.insert(connection) == DISK_FULL
    with site.connect() as connection:
        assert ledger.insert(connection) == "acknowledged"
        _check(ledger, connection)


@mounting
def test_a_server_that_finds_no_room_says_so_and_exits_with_4(
    tmp_path: Path, stack: ExitStack
) -> None:
    disk = stack.enter_context(small_disk(tmp_path / "disk", 64))
    command = [sys.executable, "-m", "evertide.cli.main", "serve", "--data", str(disk / "data")]
    with running_server(disk / "data"):
        pass
    with full(disk):
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 4
    assert "store full" in answer.stderr
    assert "Traceback" not in answer.stderr
    with running_server(disk / "data") as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")


def _answers(site: Site) -> bool:
    try:
        with site.connect():
            return True
    except psycopg.OperationalError:
        return False  # not up yet
