"""Goal: a directory over sorted hashes leads to the same places as a binary search does.

Method: random hashes, the least and the greatest among them, some of them many times; needles that
are there and that are not. Whoever has many hashes has a directory, however it came to be.
"""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from evertide.expr.columnar.batch import batch_of
from evertide.expr.columnar.column import Ints
from evertide.expr.columnar.hashes import hash_bytes
from evertide.persist.coding.keys import encode_row_key
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.arrangements.finding import LEAST_LISTED, Directory, find
from evertide.spark.arrangements.runs import open_run, table_of, write_run
from evertide.vocab.sql_type import INT8

LEAST, GREATEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("seed", range(20))
def test_a_directory_leads_where_a_search_does(seed: int) -> None:
    """In the order of the needles, and of the hashes where there are several."""
    rng = np.random.default_rng(seed)
    hashes = random_hashes(rng)
    needles = random_needles(rng, hashes)
    directory = Directory.of(hashes)
    assert directory is not None
    by_directory = directory.find(hashes, needles)
    assert by_directory is not None
    searched = find(hashes, needles)
    assert len(searched[0]), "some are there"
    for mine, theirs in zip(by_directory, searched, strict=True):
        assert mine.tolist() == theirs.tolist()
    for mine, theirs in zip(find(hashes, needles, directory), searched, strict=True):
        assert mine.tolist() == theirs.tolist()


def random_hashes(rng: np.random.Generator) -> Ints:
    """Any number of them, so that buckets are anything from half full to full."""
    different = rng.integers(LEAST, GREATEST, rng.integers(LEAST_LISTED, 4 * LEAST_LISTED))
    several = rng.choice(different, 200).repeat(rng.integers(1, 12, 200))
    edges = np.array([LEAST, LEAST, -1, 0, GREATEST, GREATEST])
    return np.sort(np.concatenate([different, several, edges]))


def random_needles(rng: np.random.Generator, hashes: Ints) -> Ints:
    there = rng.choice(hashes, 100)
    edges = np.array([LEAST, LEAST + 1, -1, 0, 1, GREATEST - 1, GREATEST])
    needles = np.concatenate([there, there + 1, rng.integers(LEAST, GREATEST, 100), edges])
    return rng.permutation(np.unique(needles))


def test_a_key_that_is_there_very_often_is_searched_for() -> None:
    """Going through its neighbours would be slower, but what is found is the same."""
    rng = np.random.default_rng(1)
    hashes = np.sort(np.append(rng.integers(LEAST, GREATEST, 20_000), np.full(100_000, 7)))
    needles = np.append(rng.choice(hashes, 20), 7)
    directory = Directory.of(hashes)
    assert directory is not None
    assert directory.find(hashes, needles) is None
    for mine, theirs in zip(find(hashes, needles, directory), find(hashes, needles), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_a_directory_is_small() -> None:
    """At most a byte for each entry, of which even the smallest has thirty-two."""
    for length in (LEAST_LISTED, 50_000, 2**17 - 1, 2**17):
        directory = Directory.of(np.arange(length, dtype=np.int64) << 40)
        assert directory is not None
        assert directory.starts.nbytes <= length + 8


def test_whatever_holds_many_hashes_has_a_directory(tmp_path: Path) -> None:
    """A run has one as soon as it is opened: its file says nothing about it. Few have none."""
    rng = Random(1)
    for count, listed in ((100, False), (LEAST_LISTED, True)):
        entries = [((rng.randrange(2**40),), 1, 1) for _ in range(count)]
        keys = [encode_row_key((INT8,), row) for row, _, _ in entries]
        table = table_of((INT8,), zip(keys, entries, strict=True))
        written = write_run(tmp_path / f"{count}.arrow", (INT8,), table)
        opened = open_run(tmp_path / f"{count}.arrow", (INT8,))
        layer = ColumnLayer.of(hash_bytes(keys), batch_of((INT8,), entries))
        needles = hash_bytes(keys[:50])
        for source in (written, opened, layer):
            assert (source.directory is not None) == listed
            positions, places = source.find(needles)
            assert source.hashes[places].tolist() == needles[positions].tolist()
            assert set(positions.tolist()) == set(range(50))
