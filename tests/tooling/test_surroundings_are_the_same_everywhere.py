"""Goal: whoever starts a run, its tests see the same: no variable of a shell decides an outcome."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.surroundings import CHOSEN, KEPT, KEPT_PREFIXES, clean

# What Python sets by itself where the locale is none.
OWN = {"HOME", "LC_CTYPE"}


def test_nothing_else_is_left() -> None:
    strange = {name for name in os.environ if not name.startswith(KEPT_PREFIXES)}
    assert strange <= KEPT | CHOSEN.keys() | OWN
    assert {name: os.environ[name] for name in CHOSEN} == CHOSEN


def test_dot_files_are_nobody_s() -> None:
    assert Path.home().name.startswith("evertide-home-")


def test_times_and_modes_are_the_same() -> None:
    assert time.localtime(0).tm_gmtoff == 0
    umask = os.umask(0)
    os.umask(umask)
    assert umask == 0o022


def test_a_hostile_shell_is_forgotten(tmp_path: Path) -> None:
    long = str(tmp_path / "so" / "long")
    environ = {"PGHOST": "x", "AWS_PROFILE": "x", "LC_ALL": "tr_TR.UTF-8", "TMPDIR": long,
               "http_proxy": "x", "PATH": "p", "PYTHONPATH": "q"}  # fmt: skip
    clean(environ)
    assert environ == {"PATH": "p", "PYTHONPATH": "q", **CHOSEN}


def test_a_run_in_a_hostile_shell_is_like_any_other(tmp_path: Path) -> None:
    """Method: this file's other tests, from such a shell."""
    root = Path(__file__).parents[2]
    hostile = {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "PGOPTIONS": "x", "HOME": "/"}
    test = f"{Path(__file__).relative_to(root)}"
    command = [sys.executable, "-m", "pytest", test, "-k", "not hostile", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, "--basetemp", str(tmp_path / "base")],
        cwd=root, env={**os.environ, **hostile}, umask=0o077, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout
