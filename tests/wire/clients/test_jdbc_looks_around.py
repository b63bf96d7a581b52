"""Goal: the JDBC driver prepares, pages and reads metadata. Not run where it is not installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.server import Server

PROGRAM = Path(__file__).parent / "jdbc" / "Lookups.java"
# Where Debian's libpostgresql-jdbc-java puts it.
DRIVER = Path("/usr/share/java/postgresql.jar")


@pytest.mark.slow
def test_a_program_on_jdbc(server: Server) -> None:
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None or not DRIVER.exists():
        pytest.skip("not run: no Java compiler, or no libpostgresql-jdbc-java")
    url = f"jdbc:postgresql://{server.sql[0]}/materialize?user=materialize"
    told = subprocess.run(
        [java, "-cp", str(DRIVER), str(PROGRAM), url],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert [line for line in lines if line.startswith("row")] == [f"row n{n}" for n in range(8)]
    assert f"pages {list(range(10))}" in lines
    assert "table by_jdbc" in lines
    assert [line for line in lines if line.startswith("column")] == [
        "column id int4",
        "column name text",
    ]
