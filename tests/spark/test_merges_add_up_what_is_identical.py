"""Sorted tables that become one hold what they held together, each identical entry once."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from evertide.expr.columnar.batch import Batch, Entry, batch_of
from evertide.expr.columnar.hashes import hash_keys
from evertide.expr.row_key import identity_function
from evertide.spark.arrangements import merge_runs
from evertide.spark.arrangements.column_layer import ColumnLayer, layer_of_table
from evertide.spark.arrangements.merge_runs import merge_tables
from evertide.vocab.sql_type import FLOAT8, INT8, TEXT

TYPES = (INT8, TEXT, FLOAT8)
TEXTS = (None, "", "a", "b")
FLOATS = (None, 0.0, -0.0, float("nan"), 1.5)


def table_of(entries: Sequence[Entry], *, one_hash: bool) -> pa.Table:
    batch = batch_of(TYPES, entries)
    hashes = hash_keys(TYPES[:1], batch.columns[:1], len(batch))
    return ColumnLayer.of(np.zeros_like(hashes) if one_hash else hashes, batch).table(0)


def added_up(entries: Sequence[Entry], since: int) -> Counter[tuple[object, int]]:
    """By identity: 0.0 is not -0.0, and NaN is NaN."""
    identity = identity_function(TYPES)
    assert identity is not None
    counted: Counter[tuple[object, int]] = Counter()
    for row, ts, diff in entries:
        counted[identity(row), max(ts, since)] += diff
    return Counter({name: count for name, count in counted.items() if count})


def random_entries(rng: Random, count: int, keys: int) -> list[Entry]:
    return [
        ((rng.randrange(keys), rng.choice(TEXTS), rng.choice(FLOATS)), rng.randrange(1, 5),
         rng.choice((-1, 1, 2)))
        for _ in range(count)
    ]  # fmt: skip


def check(seed: int) -> None:
    """Several sizes, since before and behind the times, few keys and many."""
    rng = Random(seed)
    keys, since = rng.choice([2, 30, 10**9]), rng.randrange(7)
    one_hash = rng.random() < 0.1
    parts = [
        random_entries(rng, rng.choice([1, 20, 300]), keys) for _ in range(rng.randrange(1, 5))
    ]
    if rng.random() < 0.5:
        # Some of what there is goes.
        known = [entry for part in parts for entry in part]
        gone = rng.sample(known, len(known) // 2)
        parts.append([(row, ts, -diff) for row, ts, diff in gone] or known)
    # A table has no identical entries of its own: it is added up when it is made.
    tables = [table_of(_once(part), one_hash=one_hash) for part in parts]
    merged = merge_tables(tables, since)
    everything = [entry for part in parts for entry in _once(part)]
    expected = added_up(everything, since)
    hashes = merged.column("h").to_pylist() if merged.num_rows else []
    assert hashes == sorted(hashes)
    found = _entries(merged)
    assert added_up(found, 0) == expected
    if len(tables) > 1:
        assert len(found) == len(expected)


def check_many() -> None:
    for seed in range(150):
        check(seed)


def _once(entries: Sequence[Entry]) -> list[Entry]:
    seen: dict[object, Entry] = {}
    identity = identity_function(TYPES)
    assert identity is not None
    for entry in entries:
        seen.setdefault((identity(entry[0]), entry[1]), entry)
    return list(seen.values())


def _entries(table: pa.Table) -> list[Entry]:
    if not table.num_rows:
        return []
    batch: Batch = layer_of_table(TYPES, table).batch
    return batch.entries()


@pytest.mark.parametrize("seed", range(150))
def test_what_is_left_is_the_sum_of_all(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("all_differ", lambda _: True),
        ("_touched", lambda hashes, *_: np.zeros(len(hashes), np.bool_)),
        ("_touched", lambda hashes, *_: hashes != hashes.min()),
    ],
    ids=["takes all for different", "touches nothing", "leaves out a key"],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, name: str, wrong: object) -> None:
    monkeypatch.setattr(merge_runs, name, wrong)
    with pytest.raises(AssertionError):
        check_many()
