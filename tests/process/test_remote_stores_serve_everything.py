"""Goal: an environment in PostgreSQL and S3 keeps every promise that one in local files keeps.

Method: real servers, a real PostgreSQL, a real S3 endpoint; processes are killed, stores go away.
"""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import PostgresServer, restartable_postgres
from tests.support.s3 import create_bucket, environment_of, running_s3
from tests.support.server import Server, eventually, running_server, start_server

FENCED, UNREACHABLE = 3, 4


@dataclass
class Remote:
    """Where an environment lives."""

    postgres: PostgresServer
    bucket: str

    @property
    def flags(self) -> list[str]:
        return ["--consensus", self.postgres.dsn, "--blob", f"s3://{self.bucket}/env"]


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    with restartable_postgres() as postgres, running_s3() as endpoint:
        for name, value in environment_of(endpoint).items():
            monkeypatch.setenv(name, value)
        yield Remote(postgres, create_bucket(endpoint))


def fill(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (a int, b text)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        # Large enough to lie in the bucket.
        connection.execute("INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 30000) g")


def counted(connection: "psycopg.Connection[tuple]") -> tuple[int, int]:
    (rows,) = connection.execute("SELECT count(*) FROM t").fetchone() or (None,)
    (seen,) = connection.execute("SELECT n FROM v").fetchone() or (None,)
    assert rows is not None
    assert seen is not None
    return int(rows), int(seen)


def test_adapters_agree_and_everything_survives_kills(remote: Remote, tmp_path: Path) -> None:
    with running_server(tmp_path / "one", [*remote.flags, "--adapters", "2"]) as server:
        fill(server)
        with server.connect(0) as first, server.connect(1) as second:
            for number in range(10):
                first.execute("INSERT INTO t VALUES (%s, 'more')", (number,))
                assert counted(second) == (30_001 + number, 30_001 + number)
        server.kill_all()
    # Another directory: nothing that matters was in the first one.
    with running_server(tmp_path / "two", remote.flags) as server, server.connect() as connection:
        assert counted(connection) == (30_010, 30_010)
        connection.execute("INSERT INTO t VALUES (1, 'again')")
        assert counted(connection) == (30_011, 30_011)


def test_a_newer_generation_fences_the_older(remote: Remote, tmp_path: Path) -> None:
    with running_server(tmp_path / "one", remote.flags) as older:
        fill(older)
        with running_server(tmp_path / "two", remote.flags) as newer:
            assert older.process.wait(60) == FENCED
            with newer.connect() as connection:
                assert counted(connection) == (30_000, 30_000)


def test_an_adapter_joins_by_the_stores_alone(remote: Remote, tmp_path: Path) -> None:
    with running_server(tmp_path / "one", remote.flags) as server:
        fill(server)
        command = [
            sys.executable, "-m", "evertide.cli.main", "adapter", "--join", *remote.flags,
            "--sql-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0",
            "--internal-sql-addr", "127.0.0.1:0",
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as joined:
            try:
                assert joined.stdout is not None
                line = joined.stdout.readline()
                assert line.startswith("evertide ready"), line
                address = line.split("sql=")[1].split()[0]
                host, port = address.rsplit(":", 1)
                with psycopg.connect(
                    host=host, port=int(port), user="materialize", dbname="materialize",
                    autocommit=True,
                ) as connection, server.connect() as other:  # fmt: skip
                    connection.execute("INSERT INTO t VALUES (1, 'joined')")
                    assert counted(other) == (30_001, 30_001)
                    assert counted(connection) == (30_001, 30_001)
            finally:
                joined.terminate()
                joined.wait(30)


def test_a_store_that_restarts_costs_time_only(remote: Remote, tmp_path: Path) -> None:
    with running_server(tmp_path / "one", remote.flags) as server:
        fill(server)
        with server.connect() as connection:
            for number in range(3):
                remote.postgres.stop("immediate" if number % 2 else "fast")
                remote.postgres.start()
                connection.execute("INSERT INTO t VALUES (1, 'after')")
                assert counted(connection) == (30_001 + number, 30_001 + number)
        assert server.process.poll() is None


def test_a_separate_oracle_store(remote: Remote, tmp_path: Path) -> None:
    """The clock lives elsewhere, moves elsewhere, and nothing acknowledged is missed by a read."""
    oracles = [
        f"sqlite:{tmp_path / 'oracle.db'}",
        remote.postgres.dsn + "&options=-csearch_path%3Dclock",
    ]
    for number, oracle in enumerate([*oracles, remote.postgres.dsn]):
        flags = [*remote.flags, "--oracle", oracle, "--adapters", "2"]
        with running_server(tmp_path / "one", flags) as server:
            if number == 0:
                fill(server)
            with server.connect(0) as first, server.connect(1) as second:
                assert counted(second) == (30_000 + number, 30_000 + number)
                first.execute("INSERT INTO t VALUES (1, 'more')")
                assert counted(second) == (30_001 + number, 30_001 + number)


def serve(tmp_path: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable, "-m", "evertide.cli.main", "serve", "--data", str(tmp_path / "data"),
        "--sql-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0",
        "--internal-sql-addr", "127.0.0.1:0", *flags,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_stores_that_cannot_be_reached_are_told(remote: Remote, tmp_path: Path) -> None:
    nobody = serve(tmp_path, "--consensus", "postgresql://me:secret@127.0.0.1:1/none")
    assert nobody.returncode == UNREACHABLE
    assert "secret" not in nobody.stderr
    assert "Traceback" not in nobody.stderr
    bucket = serve(tmp_path, "--consensus", remote.postgres.dsn, "--blob", "s3://no-such-bucket")
    assert bucket.returncode == UNREACHABLE
    assert "no-such-bucket" in bucket.stderr
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in bucket.stderr
    assert "Traceback" not in bucket.stderr


def status(server: Server, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://{server.http[0]}/api/{path}") as answer:
            return int(answer.status)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code


def test_a_store_that_stays_away_ends_the_server(remote: Remote, tmp_path: Path) -> None:
    server = start_server(tmp_path / "one", remote.flags)
    try:
        assert [status(server, path) for path in ("livez", "readyz")] == [200, 200]
        remote.postgres.stop("fast")
        # Alive, and of no use meanwhile: whoever balances load looks elsewhere.
        assert [status(server, path) for path in ("livez", "readyz")] == [200, 503]
        assert server.process.wait(120) == UNREACHABLE
        eventually(lambda: len(server.descendants()) == 1)
    finally:
        server.kill_all()
        remote.postgres.start()
