"""Goal: make test draws the same everywhere, make slow more, and says how to draw it again."""

import re
from pathlib import Path

import pytest

from tests.tooling.small_runs import run

NOT_SLOW = ("-m", "not slow")
DRAWN = """
import pytest

from tests.support.seeds import seeds

def drew(*drawn):
    with open("drawn", "a") as file:
        file.write(f"{drawn} ")

@seeds([1, 2], deep=[2, 5], fresh=3)
def test_one(seed): drew(seed)

@seeds(range(5), deep=range(10, 14), fresh=2, block=2)
def test_some(seeds): drew(*seeds)

@pytest.mark.slow
@seeds(deep=[7])
def test_shaped_otherwise(seed): drew(seed)
"""
FAILS = """
import pytest

from tests.support.seeds import seeds

@seeds(range(40))
def test_it(seed): assert seed != 33

@pytest.mark.slow
@seeds(deep=range(40))
def test_longer(seed): assert seed != 33
"""


def drawn(directory: Path, *options: str) -> list[tuple[int, ...]]:
    code, said = run(directory, {"test_a": DRAWN}, *options)
    assert code == 0, said
    found = re.findall(r"\(([\d, ]+)\)", (directory / "drawn").read_text())
    (directory / "drawn").unlink()
    return [tuple(int(n) for n in re.findall(r"\d+", text)) for text in found]


def test_a_usual_run_draws_the_fixed_ones(tmp_path: Path) -> None:
    expected = [(1,), (2,), (0, 1), (2, 3), (4,)]
    assert drawn(tmp_path, *NOT_SLOW) == expected


def test_a_slow_run_draws_the_deep_and_fresh_ones(tmp_path: Path) -> None:
    deep = [(5,), (10, 11), (12, 13), (7,)]
    fresh = [(900,), (901,), (902,), (900, 901)]
    found = drawn(tmp_path, "-m", "slow", "--fresh-from", "900")
    assert sorted(found) == sorted(deep + fresh)


def test_fresh_ones_are_others_each_time_and_told(tmp_path: Path) -> None:
    runs = [run(tmp_path, {"test_a": DRAWN}, "-m", "slow", *more) for more in ([], ["-n", "2"])]
    assert [code for code, _ in runs] == [0, 0]
    told = [re.findall(r"--fresh-from (\d+) draws the same", said) for _, said in runs]
    assert all(told)
    assert told[0] != told[1]
    for (first,) in told:
        assert f"({first},)" in (tmp_path / "drawn").read_text()


def test_one_seed_alone(tmp_path: Path) -> None:
    assert drawn(tmp_path, *NOT_SLOW, "--seed", "77") == [(77,), (77,)]


RUNS = [(NOT_SLOW, "test_it"), (("-m", "slow"), "test_longer")]


@pytest.mark.parametrize(("marks", "test"), RUNS)
def test_what_failed_says_how_to_see_it_again(
    tmp_path: Path, marks: tuple[str, ...], test: str
) -> None:
    code, said = run(tmp_path, {"test_a": FAILS}, *marks)
    assert code == 1
    assert "1 failed, 39 passed" in said
    again = re.search(r"again: python -m pytest (.*)", said)
    assert again is not None
    assert again[1].startswith(f"test_a.py::{test} --seed 33")
    code, said = run(tmp_path, {}, *NOT_SLOW, *again[1].split())
    assert code == 1
    assert "1 failed" in said
    assert "passed" not in said
