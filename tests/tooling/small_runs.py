"""Runs of pytest over a few small files, with what tests/conftest.py does for all tests."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFTEST = """
import pytest

from tests.support import progress, seeds
from tests.support.schedule import pytest_xdist_make_scheduler

pytest_addoption = seeds.add_options
pytest_report_header = seeds.header
pytest_generate_tests = seeds.parametrize
pytest_configure_node = pytest.hookimpl(optionalhook=True)(seeds.tell_worker)

@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    for mark in ("slow", "seeds"):
        config.addinivalue_line("markers", f"{mark}: as everywhere")
    seeds.choose(config)
    progress.begin(config)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    return seeds.with_replay(item, (yield))
"""


def run(directory: Path, files: Mapping[str, str], *options: str) -> tuple[int, str]:
    """Exit code and output of a run that has no terminal."""
    for name, text in {"conftest": CONFTEST, **files}.items():
        (directory / f"{name}.py").write_text(text)
    environ = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST_")}
    environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    ended = subprocess.run(
        command, cwd=directory, env=environ, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout
