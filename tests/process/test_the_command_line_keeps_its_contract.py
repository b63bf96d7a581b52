"""Goal: flags parse from the first day, and exit codes mean what the guide says."""

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.server import running_server


def _evertide(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evertide.cli.main", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--consensus", "mysql://me:secret@localhost/x"], "mysql://me:…@localhost/x"),
        (["--blob", "http://bucket/prefix"], "s3://BUCKET/PREFIX"),
        (["--oracle", "sqlite:"], "--oracle must be sqlite:PATH"),
        (["--catalog", "sock"], "persist, stash, shadow"),
        (["--sizes", "no-such-sizes.json"], "no-such-sizes.json cannot be read"),
        (["--tick-engine", "steam"], "auto, spark"),
        (["--sql-addr", "0.0.0.0:6875"], "loopback"),
        (["--sql-addr", "0.0.0.0:6875", "--auth", "scram-sha-256"], "--tls-cert"),
        (["--auth", "guess"], "trust, scram-sha-256"),
        (["--tls-cert", "no-such.pem"], "belong together"),
        (["--tls-cert", "no-such.pem", "--tls-key", "no-such.pem"], "No such file"),
        (["--adapters", "0"], "--adapters"),
    ],
)
def test_values_that_do_not_exist_yet_exit_with_2(
    tmp_path: Path, flags: list[str], said: str
) -> None:
    answer = _evertide("serve", "--data", str(tmp_path / "data"), *flags)
    assert answer.returncode == 2
    assert said in answer.stderr
    assert not (tmp_path / "data").exists()


def test_serve_without_data_exits_with_2() -> None:
    assert _evertide("serve").returncode == 2
    assert _evertide("no-such-command").returncode == 2


def test_join_without_a_server_exits_with_2(tmp_path: Path) -> None:
    answer = _evertide("adapter", "--join", "--data", str(tmp_path))
    assert answer.returncode == 2
    assert "evertide serve" in answer.stderr


def test_health_joining_and_debugging_beside_a_server(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        for path in ("/api/livez", "/api/readyz", "/metrics"):
            with urllib.request.urlopen(f"http://{server.http[0]}{path}") as answer:
                assert answer.status == 200
        with server.connect() as connection:
            connection.execute("CREATE TABLE kept (a int)")
        dump = _evertide("catalog-debug", "dump", "--data", str(tmp_path / "data"))
        assert dump.returncode == 0
        assert "kept" in dump.stdout
        epoch = _evertide("catalog-debug", "epoch", "--data", str(tmp_path / "data"))
        assert epoch.stdout.strip() == "1"
        with server.connect() as connection:
            connection.execute("INSERT INTO kept VALUES (1)")
