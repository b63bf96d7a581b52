"""Goal: dbt loads, builds, tests and documents a small project.

dbt has an environment of its own, made by `make setup`: its dependencies contradict ours.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import Server

ROOT = Path(__file__).parents[3]
DBT = ROOT / ".venv-dbt" / "bin" / "dbt"
PROJECT = Path(__file__).parent / "dbt"
PROFILE = """
shop:
  target: test
  outputs:
    test:
      type: materialize
      host: {host}
      port: {port}
      user: materialize
      pass: ""
      database: materialize
      schema: shop
      cluster: default
      sslmode: disable
      threads: 2
"""


@pytest.fixture
def project(server: Server, tmp_path: Path) -> Iterator[Path]:
    """A copy, for dbt writes beside what it reads."""
    copy = tmp_path / "shop"
    shutil.copytree(PROJECT, copy)
    host, port = server.sql[0].rsplit(":", 1)
    (copy / "profiles.yml").write_text(PROFILE.format(host=host, port=port))
    yield copy
    with server.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")


def dbt(project: Path, *command: str) -> str:
    assert DBT.exists(), "make setup installs dbt into .venv-dbt"
    told = subprocess.run(
        [str(DBT), *command, "--profiles-dir", ".", "--no-use-colors"],
        cwd=project,
        env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


@pytest.mark.timeout(600)
def test_seed_run_test_and_docs(project: Path, server: Server) -> None:
    assert "PASS=1 WARN=0 ERROR=0" in dbt(project, "seed")
    assert "PASS=2 WARN=0 ERROR=0" in dbt(project, "run")
    assert "PASS=3 WARN=0 ERROR=0" in dbt(project, "test")
    with server.connect() as connection:
        totals = connection.execute("SELECT customer, total FROM shop.totals ORDER BY 1").fetchall()
        assert [(name, float(total)) for name, total in totals] == [("ada", 14.75), ("bob", 3.0)]
        connection.execute("INSERT INTO shop.orders VALUES (4, 'bob', 9.0)")
        rich = connection.execute("SELECT customer FROM shop.rich ORDER BY 1").fetchall()
        assert rich == [("ada",), ("bob",)]
    # What is there already is built again in its place.
    assert "PASS=2 WARN=0 ERROR=0" in dbt(project, "run")
    dbt(project, "docs", "generate")
    catalog = json.loads((project / "target" / "catalog.json").read_text())
    totals_node = catalog["nodes"]["model.shop.totals"]
    assert totals_node["metadata"]["type"] == "materialized_view"
    assert set(totals_node["columns"]) == {"customer", "total"}
