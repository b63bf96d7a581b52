"""`python tools/make_venv.py DIRECTORY [PYTHON]`: the virtual environment that `make setup` fills.

Two builds of the same Python may differ by a fifth in speed: one was compiled along a profile of
what it does most, the other was not. Of those on PATH the former is taken, so that the server is
as quick as this machine allows. With PYTHON, that one is taken and no other.

An interpreter that cannot make an environment with pip, or lacks what the server imports, is passed
over for the next one: a slower server is better than none.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# The release that the project is developed and tested with; a newer one is taken if it is missing.
TRIED = (3, 11)
NAMES = ("python3.11", "python3")
ASK_SECONDS = 30
# Parts of Python's library that some builds lack, and the server needs.
NEEDED = "ctypes, lzma, sqlite3, ssl, venv, zlib"
ABOUT = f"""
import json, os, sys, sysconfig
import {NEEDED}
names = "CONFIG_ARGS", "PGO_PROF_GEN_FLAG", "PGO_PROF_USE_FLAG"
print(json.dumps({{
    "path": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "version": sys.version_info[:2],
    "settings": {{name: sysconfig.get_config_var(name) for name in names}},
}}))
"""


class NoEnvironment(Exception):
    """This interpreter cannot make one; the message says why."""


@dataclass(frozen=True)
class Interpreter:
    """A Python that could be used."""

    path: str
    version: tuple[int, int]
    profiled: bool


def is_profiled(settings: Mapping[str, str | None]) -> bool:
    """Whether it was compiled along a profile, going by what the build left in sysconfig.

    Mostly `configure` was told so. Debian asks its makefile instead, and afterwards takes the flag
    for using a profile out of what is left, lest extensions be compiled with it; where nobody did
    so, `configure` has set that flag beside the one for making a profile, used or not.
    """
    if "--enable-optimizations" in (settings.get("CONFIG_ARGS") or ""):
        return True
    return bool(settings.get("PGO_PROF_GEN_FLAG")) and settings.get("PGO_PROF_USE_FLAG") == ""


def candidates(search: str) -> Iterator[str]:
    """Programs that may be a Python, those of the tried release first."""
    for name in NAMES:
        for directory in search.split(os.pathsep):
            if directory and (found := shutil.which(name, path=directory)):
                yield found


def ask(program: str) -> Interpreter | None:
    """What a program says of itself; None if it is too old, lacks something, or is no Python."""
    try:
        told = subprocess.run(
            [program, "-c", ABOUT],
            capture_output=True,
            check=True,
            text=True,
            timeout=ASK_SECONDS,
        )
        about = json.loads(told.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    major, minor = about["version"]
    if (major, minor) < TRIED:
        return None
    return Interpreter(about["path"], (major, minor), is_profiled(about["settings"]))


def in_order(programs: Iterable[str]) -> list[Interpreter]:
    """Each interpreter once: the tried release first, then profiled builds, then by PATH."""
    found: dict[str, Interpreter] = {}
    for program in programs:
        interpreter = ask(program)
        if interpreter is not None:
            found.setdefault(interpreter.path, interpreter)
    return sorted(found.values(), key=lambda one: (one.version != TRIED, not one.profiled))


def make(directory: Path, interpreter: Interpreter, others: Sequence[Interpreter]) -> None:
    """An environment with pip; raises NoEnvironment, and then leaves nothing behind.

    Some builds come without what puts pip into an environment. There the pip of another one does.
    """
    python = str(directory / "bin" / "python")
    try:
        try:
            _run(interpreter.path, "-m", "venv", str(directory))
        except NoEnvironment:
            shutil.rmtree(directory, ignore_errors=True)
            _run(interpreter.path, "-m", "venv", "--without-pip", str(directory))
            _add_pip(python, [interpreter, *others])
        _run(python, "-c", f"import {NEEDED}")
        _run(python, "-m", "pip", "--version")
    except NoEnvironment:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _add_pip(python: str, givers: Sequence[Interpreter]) -> None:
    why = NoEnvironment("it has no pip to give")
    for giver in givers:
        try:
            _run(giver.path, "-m", "pip", "--python", python, "install", "--quiet", "pip")
        except NoEnvironment as problem:
            why = problem
        else:
            return
    raise why


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NoEnvironment(said[-1] if said else f"exit code {done.returncode}")


def main(arguments: Sequence[str]) -> int:
    """Make it with the first interpreter that can."""
    directory, wanted = Path(arguments[0]), arguments[1:]
    listed = in_order(candidates(os.environ.get("PATH", os.defpath)))
    for interpreter in in_order(wanted) if wanted else listed:
        try:
            make(directory, interpreter, [one for one in listed if one != interpreter])
        except NoEnvironment as problem:
            print(f"{interpreter.path} makes no environment: {problem}", file=sys.stderr)
            continue
        built = "profiled" if interpreter.profiled else "plain"
        release = ".".join(map(str, interpreter.version))
        print(f"using {interpreter.path}, Python {release}, a {built} build")
        return 0
    print("no Python 3.11 or newer that can make an environment with pip", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
