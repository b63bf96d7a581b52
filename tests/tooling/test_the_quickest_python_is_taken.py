"""`make setup` takes a Python that was compiled along a profile, and any other if it must."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.make_venv import ask, in_order, is_profiled, main

PROFILED = {"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}
PLAIN = {
    "CONFIG_ARGS": "'--prefix=/usr/local'",
    "PGO_PROF_GEN_FLAG": "-fprofile-generate",
    "PGO_PROF_USE_FLAG": "-fprofile-use -fprofile-correction",
}
# As Debian leaves them.
FLAG_TAKEN_OUT = {**PLAIN, "PGO_PROF_USE_FLAG": ""}

# What a planted program does: it says what it is, makes environments, and gives pip to others, as
# far as files beside it do not say that it cannot.
PROGRAM = """#!/bin/sh
here=$(dirname "$0")
echo "$(basename "$here")" "$@" >> "$here/../calls"
case "$1 $2 $3" in
    "-c "*) cat "$here/about" ;;
    "-m venv --without-pip")
        [ ! -e "$here/no-venv" ] || { echo "no venv at all" >&2; exit 1; }
        mkdir -p "$4/bin" && cp "$here/environment" "$4/bin/python" ;;
    "-m venv "*)
        mkdir -p "$3/half-made"
        [ ! -e "$here/no-venv" ] || { echo "no venv at all" >&2; exit 1; }
        [ ! -e "$here/no-ensurepip" ] || { echo "ensurepip is not available" >&2; exit 1; }
        mkdir -p "$3/bin" && cp "$here/environment" "$3/bin/python" && touch "$3/pip" ;;
    "-m pip --python")
        [ ! -e "$here/no-pip" ] || { echo "No module named pip" >&2; exit 1; }
        touch "$(dirname "$(dirname "$4")")/pip" ;;
    *) exit 9 ;;
esac
"""
# The python of an environment that it makes.
ENVIRONMENT = """#!/bin/sh
case "$1 $2" in
    "-m pip") [ -e "$(dirname "$0")/../pip" ] ;;
    *) exit 0 ;;
esac
"""


@dataclass(frozen=True)
class Planted:
    """A directory for PATH with one program."""

    directory: Path
    path: str


def plant(
    directory: Path,
    settings: dict[str, str],
    *lacks: str,
    version: tuple[int, int] = (3, 11),
    name: str = "python3.11",
) -> Planted:
    directory.mkdir()
    path = str(directory / name)
    about = {"path": path, "version": version, "settings": settings}
    (directory / "about").write_text(json.dumps(about))
    (directory / "environment").write_text(ENVIRONMENT)
    (directory / "environment").chmod(0o755)
    for lack in lacks:
        (directory / lack).touch()
    program = directory / name
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return Planted(directory, path)


def set_path(monkeypatch: pytest.MonkeyPatch, *planted: Planted) -> None:
    tools = os.environ["PATH"].split(os.pathsep)
    pythonless = [d for d in tools if not list(Path(d).glob("python3*"))]
    shell_tools = planted[0].directory.parent / "shell"
    shell_tools.mkdir()
    for tool in ("sh", "basename", "cat", "cp", "dirname", "mkdir", "touch"):
        found = subprocess.check_output(["/bin/sh", "-c", f"command -v {tool}"], text=True).strip()
        (shell_tools / tool).symlink_to(found)
    first = [str(one.directory) for one in planted]
    monkeypatch.setenv("PATH", os.pathsep.join([*first, str(shell_tools), *pythonless]))


@pytest.mark.parametrize(
    ("settings", "profiled"),
    [(PROFILED, True), (FLAG_TAKEN_OUT, True), (PLAIN, False), ({}, False)],
)
def test_a_build_is_known_by_its_settings(settings: dict[str, str], profiled: bool) -> None:
    assert is_profiled(settings) is profiled


def test_a_running_python_tells_what_it_is() -> None:
    found = ask(sys.executable)
    assert found is not None
    assert found.version == sys.version_info[:2]
    assert Path(found.path).samefile(sys._base_executable)  # type: ignore[attr-defined]


def test_a_profiled_build_comes_before_one_that_is_earlier_on_the_path(tmp_path: Path) -> None:
    plain, quick = plant(tmp_path / "a", PLAIN), plant(tmp_path / "b", PROFILED)
    assert [one.path for one in in_order([plain.path, quick.path])] == [quick.path, plain.path]


def test_the_release_that_was_tried_comes_before_a_newer_one(tmp_path: Path) -> None:
    newer = plant(tmp_path / "a", PROFILED, version=(3, 13))
    tried = plant(tmp_path / "b", PLAIN)
    assert [one.path for one in in_order([newer.path, tried.path])] == [tried.path, newer.path]


def test_each_interpreter_is_there_once_and_others_are_passed_over(tmp_path: Path) -> None:
    old = plant(tmp_path / "a", PROFILED, version=(3, 10))
    fit = plant(tmp_path / "b", PLAIN)
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    found = in_order([old.path, str(broken), fit.path, fit.path, str(tmp_path / "gone")])
    assert [one.path for one in found] == [fit.path]


def test_the_environment_is_made_by_the_profiled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, quick = plant(tmp_path / "a", PLAIN), plant(tmp_path / "b", FLAG_TAKEN_OUT)
    set_path(monkeypatch, plain, quick)
    assert main([str(tmp_path / "venv")]) == 0
    assert (tmp_path / "venv" / "pip").exists()
    assert capsys.readouterr().out == f"using {quick.path}, Python 3.11, a profiled build\n"


def test_one_that_makes_no_environment_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, quick = plant(tmp_path / "a", PLAIN), plant(tmp_path / "b", PROFILED, "no-venv")
    set_path(monkeypatch, plain, quick)
    assert main([str(tmp_path / "venv")]) == 0
    assert (tmp_path / "venv" / "pip").exists()
    told = capsys.readouterr()
    assert told.err == f"{quick.path} makes no environment: no venv at all\n"
    assert told.out == f"using {plain.path}, Python 3.11, a plain build\n"


def test_pip_comes_from_another_one_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = plant(tmp_path / "a", PLAIN)
    quick = plant(tmp_path / "b", PROFILED, "no-ensurepip", "no-pip")
    set_path(monkeypatch, plain, quick)
    venv = tmp_path / "venv"
    assert main([str(venv)]) == 0
    assert (venv / "pip").exists()
    assert not (venv / "half-made").exists(), "what the first try left is gone"
    python = shlex.quote(str(venv / "bin" / "python"))
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-1] == f"a -m pip --python {python} install --quiet pip"


def test_without_any_pip_the_next_one_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own environment has pip, though it cannot give that to another."""
    plain = plant(tmp_path / "a", PLAIN, "no-pip")
    quick = plant(tmp_path / "b", PROFILED, "no-ensurepip", "no-pip")
    set_path(monkeypatch, plain, quick)
    assert main([str(tmp_path / "venv")]) == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-1] == f"a -m venv {tmp_path / 'venv'}"


def test_the_one_that_was_asked_for_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, quick = plant(tmp_path / "a", PLAIN), plant(tmp_path / "b", PROFILED)
    set_path(monkeypatch, quick, plain)
    assert main([str(tmp_path / "venv"), plain.path]) == 0
    assert capsys.readouterr().out == f"using {plain.path}, Python 3.11, a plain build\n"


def test_where_none_can_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only = plant(tmp_path / "a", PROFILED, "no-venv")
    set_path(monkeypatch, only)
    assert main([str(tmp_path / "venv")]) == 1
    assert not (tmp_path / "venv").exists()
    assert "no Python 3.11 or newer" in capsys.readouterr().err


def test_a_real_python_makes_a_real_environment(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    assert main([str(venv), sys.executable]) == 0
    command = [str(venv / "bin" / "python"), "-m", "pip", "list", "--format=json"]
    listed = json.loads(subprocess.check_output(command, text=True))
    assert "pip" in {package["name"] for package in listed}
