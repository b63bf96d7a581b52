"""Goal: an fsync that fails is never taken for a commit; clients are told SQLSTATE 58030.

Method: every fsync of a real server is answered by the test, with EIO for some files and for some
time. Acknowledged rows must be there whatever happens then; a row whose client was told 58030 may
be there or not, once at most, also after the whole tree was killed and started again.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.fault_injection import FsyncGate
from tests.support.ledger import LARGE, SMALL, Ledger
from tests.support.server import eventually
from tests.support.site import Site, running_site

IO_ERROR = "58030"


@pytest.fixture
def gate() -> Iterator[FsyncGate]:
    gate = FsyncGate()
    yield gate
    gate.close()


@pytest.fixture
def site(tmp_path: Path, gate: FsyncGate) -> Iterator[Site]:
    with running_site(tmp_path / "data", prefix=gate.prefix) as site:
        yield site


def _begin(ledger: Ledger, connection: "psycopg.Connection[tuple]") -> None:
    ledger.create(connection)
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) n, sum(id) total FROM t")
    for size in (SMALL, LARGE):
        assert ledger.insert(connection, size) == "acknowledged"
    _check(ledger, connection)


def _check(ledger: Ledger, connection: "psycopg.Connection[tuple]") -> None:
    ledger.check(connection)
    rows = ledger.acknowledged
    assert connection.execute("SELECT n, total FROM v").fetchall() == [(len(rows), sum(rows))]


def _of_consensus(path: str) -> bool:
    return "consensus.db" in path


def _of_parts(path: str) -> bool:
    return ".writing-" in path


def _of_directories_of_parts(path: str) -> bool:
    return "/blob" in path and ".writing-" not in path


def test_commits_that_may_not_have_reached_the_disk_are_not_acknowledged(
    site: Site, gate: FsyncGate
) -> None:
    ledger = Ledger("t")
    with site.connect() as connection:
        _begin(ledger, connection)
        processes = site.processes()
        with gate.failing(_of_consensus) as failed:
            for size in (SMALL, LARGE, SMALL):
                assert ledger.insert(connection, size) == IO_ERROR
            for statement in ("UPDATE t SET pad = 'x'", "CREATE TABLE u (a int)"):
                with pytest.raises(psycopg.Error) as error:
                    connection.execute(statement)
                assert error.value.sqlstate == IO_ERROR
            rows = connection.execute("SELECT id FROM t ORDER BY id").fetchall()
            assert [row[0] for row in rows] == ledger.acknowledged, "told as failed, and seen"
            eventually(lambda: len(failed) > 8)  # time tries to move on, too
        for size in (SMALL, LARGE):
            assert ledger.insert(connection, size) == "acknowledged"
        _check(ledger, connection)
        assert site.processes() == processes
    site.restart()
    with site.connect() as connection:
        _check(ledger, connection)


def test_a_commit_in_doubt_when_the_server_is_killed_is_there_whole_or_not_at_all(
    site: Site, gate: FsyncGate
) -> None:
    ledger = Ledger("t")
    with site.connect() as connection:
        _begin(ledger, connection)
        connection.execute("CREATE TABLE twin (id int, pad text)")
        with gate.failing(_of_consensus):
            for _ in range(3):
                assert ledger.insert(connection) == IO_ERROR
            connection.execute("BEGIN")
            connection.execute("INSERT INTO t VALUES (100, 'both')")
            connection.execute("INSERT INTO twin VALUES (100, 'both')")
            with pytest.raises(psycopg.Error) as error:
                connection.execute("COMMIT")
            assert error.value.sqlstate == IO_ERROR
            ledger.in_doubt.append(100)
            site.server.kill_all()
    site.restart()
    with site.connect() as connection:
        _check(ledger, connection)
        both = connection.execute("SELECT id FROM t WHERE id = 100").fetchall()
        assert connection.execute("SELECT id FROM twin").fetchall() == both
        assert ledger.insert(connection) == "acknowledged"
        _check(ledger, connection)


@pytest.mark.parametrize("fails", [_of_parts, _of_directories_of_parts])
def test_parts_that_may_not_have_reached_the_disk_are_not_referred_to(
    site: Site, gate: FsyncGate, fails: Callable[[str], bool]
) -> None:
    ledger = Ledger("t")
    with site.connect() as connection:
        _begin(ledger, connection)
        parts = sorted(site.server.data.rglob("*.parquet"))
        with gate.failing(fails) as failed:
            assert ledger.insert(connection, LARGE) == IO_ERROR
            assert failed
            assert ledger.insert(connection, SMALL) == "acknowledged"
            _check(ledger, connection)
            assert sorted(site.server.data.rglob("*.parquet")) == parts
            assert not list(site.server.data.rglob(".writing-*"))
        assert ledger.insert(connection, LARGE) == "acknowledged"
        _check(ledger, connection)
    site.restart()
    with site.connect() as connection:
        _check(ledger, connection)
