"""Where no two rows are equal nothing is sorted, and what comes out is what went in."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from evertide.expr.columnar import batch as batches
from evertide.expr.columnar.batch import Entry, add_up, all_differ, batch_of, share_hash
from evertide.vocab.sql_type import INT8, TEXT

TYPES = (INT8, TEXT)
DIFFS = (-1, 0, 1, 2)


def check_adding_up(seed: int) -> None:
    rng = Random(seed)
    different = rng.choice([3, 40, 10**9])
    entries: list[Entry] = [
        (
            (rng.randrange(different), rng.choice([None, "", "a"])),
            rng.randrange(2),
            rng.choice(DIFFS),
        )
        for _ in range(rng.choice([2, 60, 900]))
    ]
    expected: dict[tuple[object, int], int] = {}
    for row, ts, diff in entries:
        expected[row, ts] = expected.get((row, ts), 0) + diff
    found = add_up(batch_of(TYPES, entries)).entries()
    assert {(row, ts): diff for row, ts, diff in found} == {k: d for k, d in expected.items() if d}
    assert len({(row, ts) for row, ts, _ in found}) == len(found)


def check_many() -> None:
    for seed in range(20):
        check_adding_up(seed)


@pytest.mark.parametrize("seed", range(60))
def test_sums_are_right_however_many_are_equal(seed: int) -> None:
    check_adding_up(seed)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_known_whether_two_are_equal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 60, 50), rng.integers(0, 60, 50)]
    rows = list(zip(*[code.tolist() for code in codes], strict=True))
    assert all_differ(codes) is (len(set(rows)) == len(rows))


def test_no_answer_is_better_than_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows that only have one hash are not taken for different without a look."""
    monkeypatch.setattr(batches, "_mixed", lambda codes: np.zeros(len(codes[0]), np.int64))
    assert not all_differ([np.array([1, 2])])
    check_many()


def test_rows_that_differ_stay_where_they_are() -> None:
    entries: list[Entry] = [((number, "a"), 1, 1) for number in range(700)]
    batch = batch_of(TYPES, entries)
    assert add_up(batch) is batch


def test_taking_all_for_different_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "all_differ", lambda _: True)
    with pytest.raises(AssertionError):
        check_many()


@pytest.mark.parametrize("seed", range(30))
def test_rows_that_are_equal_to_another_share_its_hash(seed: int) -> None:
    """Few of many, or most of them; the others are left out where they are many."""
    rng = Random(seed)
    different = rng.choice([40, 10**9])
    rows = [(rng.randrange(different), rng.randrange(2)) for _ in range(400)]
    rows += rng.sample(rows, rng.choice([0, 1, 5]))
    rng.shuffle(rows)
    shared = share_hash([np.array(column, np.int64) for column in zip(*rows, strict=True)])
    counts = Counter(rows)
    several = [counts[row] > 1 for row in rows]
    assert all(mask for mask, twice in zip(shared, several, strict=True) if twice)
    if different > 40:
        assert shared.tolist() == several
