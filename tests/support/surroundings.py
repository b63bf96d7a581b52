"""The same surroundings for every run: no test's outcome depends on whose shell started it.

Clients and libraries read many variables: libpq PG*, S3 clients AWS_* and proxies, every program
its locale and zone, and dot files in HOME. A run keeps only what a machine needs to find programs
and libraries, and what was said to the tests themselves.
"""

import os
import shutil
import tempfile
import time
from collections.abc import MutableMapping
from pathlib import Path

KEPT = {"CI", "JAVA_HOME", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTHONPATH",
        "PYTHONPYCACHEPREFIX", "TMPDIR", "VIRTUAL_ENV"}  # fmt: skip
KEPT_PREFIXES = ("COVERAGE", "HYPOTHESIS_", "LD_", "NIX_", "PYTEST_")
# The path of a Unix socket may be 107 bytes long at most, and some lie below a test's directory.
TMPDIR_BYTES = 30

# As plain as can be: bytes decide the order of texts, and PostgreSQL makes its clusters so, too.
CHOSEN = {"LANG": "C.UTF-8", "TZ": "UTC"}

# For servers under test: their answers depend on none of this.
FOREIGN = {
    "LANG": "C", "LC_ALL": "C", "LANGUAGE": "tr", "TZ": "Asia/Kathmandu", "PGUSER": "nobody",
    "PGHOST": "nowhere.invalid", "PGPORT": "1", "PGTZ": "America/St_Johns", "PGDATABASE": "none",
    "PGDATESTYLE": "German", "PGOPTIONS": "-c nothing=1", "AWS_REGION": "nowhere", "COLUMNS": "7",
    "AWS_ENDPOINT_URL": "http://nowhere.invalid", "http_proxy": "http://nowhere.invalid:1",
    "HOME": "/nonexistent", "SPARK_LOCAL_IP": "192.0.2.1", "SPARK_CONF_DIR": "/nonexistent",
    "SPARK_HOME": "/nonexistent", "PYSPARK_PYTHON": "/nonexistent", "PYTHONWARNINGS": "ignore",
}  # fmt: skip


class Surroundings:
    """From `enter` to `leave`, this process and its children have the same as everywhere."""

    def __init__(self) -> None:
        self._home: str | None = None

    def enter(self) -> None:
        clean(os.environ)
        time.tzset()
        # Looked up again, as chosen now.
        tempfile.tempdir = None
        self._home = tempfile.mkdtemp(prefix="evertide-home-")
        os.environ["HOME"] = self._home
        # The repository may belong to somebody else, as in a container that it is mounted into.
        (Path(self._home) / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        # Whoever hands files to another user makes them readable.
        os.umask(0o022)

    def leave(self) -> None:
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)


def clean(environ: MutableMapping[str, str]) -> None:
    """Take out what nobody chose for the tests."""
    for name in list(environ):
        if name not in KEPT and not name.startswith(KEPT_PREFIXES):
            del environ[name]
    if len(os.fsencode(environ.get("TMPDIR", ""))) > TMPDIR_BYTES:
        del environ["TMPDIR"]
    environ.update(CHOSEN)
