"""Goal: a run of several workers says how far it is, ends in time, and fails if anything failed.

Method: small runs of pytest, with the same scheduler and the same reports as `make test`.
"""

import re
from pathlib import Path

import pytest

from tests.support.schedule import next_file
from tests.tooling.small_runs import run

WORKERS = ("--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder")
TELLS_WHO = """
import os
import pytest

@pytest.mark.parametrize("n", range(20))
def test_it(n):
    with open("{name}.workers", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""
FAILS = """
import pytest

def test_well(): ...
def test_wrong(): assert 6 * 7 == 43
@pytest.mark.skip
def test_not(): ...
@pytest.fixture
def lost(): raise RuntimeError
def test_nothing(lost): ...
"""
SLEEPS = """
import time
import pytest

@pytest.mark.parametrize("n", range(40))
def test_it(n): time.sleep(0.25)
"""


def test_each_file_is_one_worker_s_and_told_once(tmp_path: Path) -> None:
    names = [f"test_{n}" for n in range(4)]
    code, said = run(tmp_path, {name: TELLS_WHO.format(name=name) for name in names}, *WORKERS)
    assert code == 0, said
    ran_by = [(tmp_path / f"{name}.workers").read_text().split() for name in names]
    assert [len(workers) for workers in ran_by] == [20] * 4
    assert [len(set(workers)) for workers in ran_by] == [1] * 4
    assert len({workers[0] for workers in ran_by}) == 2
    lines = re.findall(r"^ *\d+\.\d min +(\d+)/4 (test_\d\.py) 20 passed in ", said, re.MULTILINE)
    assert sorted(name for _, name in lines) == [f"{name}.py" for name in names]
    assert [int(done) for done, _ in lines] == [1, 2, 3, 4]
    assert said.splitlines()[-1].strip("= ").startswith("80 passed in ")


def test_what_fails_is_told_at_once_and_makes_the_run_fail(tmp_path: Path) -> None:
    code, said = run(tmp_path, {"test_a": FAILS, "test_b": "def test_b(): ..."}, *WORKERS)
    assert code == 1, said
    assert "FAILED test_a.py::test_wrong (call)" in said
    assert "FAILED test_a.py::test_nothing (setup)" in said
    last = said.splitlines()[-1]
    assert "1 failed, 2 passed, 1 skipped, 1 error" in last


def test_a_run_that_takes_too_long_ends_and_fails(tmp_path: Path) -> None:
    code, said = run(
        tmp_path, {"test_a": SLEEPS, "test_b": SLEEPS}, *WORKERS, "--session-timeout=1"
    )
    assert code != 0
    assert "session-timeout" in said
    passed = re.search(r"(\d+) passed", said)
    assert passed is None or int(passed[1]) < 80


@pytest.mark.parametrize("own", [[], ["tests/wire/test_x.py"]])
def test_what_shares_nothing_is_taken_in_order(own: list[str]) -> None:
    left = ["tests/spark/test_s.py", "tests/sql/test_a.py", "tests/wire/test_w.py"]
    assert next_file(left, own, []) == "tests/sql/test_a.py"


def test_a_worker_stays_where_it_is_and_else_goes_where_nobody_is() -> None:
    left = ["tests/spark/test_s.py", "tests/views/test_v.py", "tests/wire/test_w.py"]
    assert next_file(left, ["tests/wire/test_x.py"], []) == "tests/wire/test_w.py"
    assert next_file(left, [], ["tests/spark/test_x.py"]) == "tests/views/test_v.py"
    assert next_file(left[:1], [], ["tests/spark/test_x.py"]) == "tests/spark/test_s.py"
