"""The PostgreSQL of the tests is a real one, and so are the clients that come with it."""

import os
import subprocess

import psycopg
import pytest

from tests.support import postgres
from tests.support.postgres import PGBENCH, PSQL, running_postgres


def test_its_version_is_16(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        row = connection.execute("select version()").fetchone()
    assert row is not None
    assert row[0].startswith("PostgreSQL 16.")


def test_psql_talks_to_it(postgres_dsn: str) -> None:
    reply = subprocess.check_output([PSQL, postgres_dsn, "-Atc", "select 6 * 7"], text=True)
    assert reply == "42\n"


def test_pgbench_is_there() -> None:
    assert "16." in subprocess.check_output([PGBENCH, "--version"], text=True)


def test_it_leaves_nothing_behind() -> None:
    with running_postgres() as dsn, psycopg.connect(dsn) as connection:
        directory = connection.info.host
        row = connection.execute("select pg_backend_pid()").fetchone()
        assert os.path.isdir(directory)
    assert row is not None
    assert not os.path.exists(directory)
    assert not os.path.exists(f"/proc/{row[0]}")


def test_root_runs_it_from_a_closed_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a checkout below a home that only root may enter. Method: pretend it is one."""
    if os.geteuid() != 0:
        pytest.skip("only root hands the server to another user")
    monkeypatch.setattr(postgres, "_reachable_by_others", lambda _: False)
    with running_postgres() as dsn, psycopg.connect(dsn) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
