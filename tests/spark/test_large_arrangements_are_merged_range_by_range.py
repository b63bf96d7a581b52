"""Goal: state that is larger than a run may be takes no more room the longer it changes, and ticks
wait for none of its merges.

Method: runs that may be very small, rows that come and go, and what is there compared with a model.
"""

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from evertide.expr.columnar.batch import Entry
from evertide.expr.row_key import column_encoder
from evertide.spark.arrangements import levels, merging
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.due_merges import large_merge
from evertide.spark.arrangements.levels import MergePlan, Source, merge
from evertide.spark.arrangements.merge_runs import merge_tables
from evertide.spark.arrangements.merging import Merging, merge_now
from evertide.spark.arrangements.ranges import in_ranges, levels_of
from evertide.spark.arrangements.runs import table_of, write_run
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp

TYPES = (INT8, TEXT)
KEYS = 400
MOST_BYTES = 8_000


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest run holds a few hundred entries."""
    monkeypatch.setattr(levels, "MAX_RUN_BYTES", MOST_BYTES)
    monkeypatch.setattr(levels, "LARGE_BYTES", MOST_BYTES // 2)


def made(entries: Sequence[Entry]) -> pa.Table:
    encode = column_encoder(TYPES, (0,))
    return table_of(TYPES, [(encode(entry[0]), entry) for entry in entries])


def hashes_of(table: pa.Table) -> list[int]:
    hashes: list[int] = table.column("h").to_pylist()
    return hashes


def rows_of(tables: Sequence[pa.Table]) -> list[tuple]:
    columns = [pa.concat_tables(tables).column(name).to_pylist() for name in ("c0", "c1")]
    return list(zip(*columns, strict=True))


def changed(kept: Arrangement, rounds: int, between: Callable[[], None]) -> dict[int, str]:
    """One row for each of the keys, which gets another text again and again."""
    rng = Random(5)
    model = dict.fromkeys(range(KEYS), "first")
    kept.insert([((key, text), 0, 1) for key, text in model.items()])
    for ts in range(1, rounds):
        for key in rng.sample(range(KEYS), 20):
            kept.insert([((key, model[key]), ts, -1), ((key, f"{key} at {ts}"), ts, 1)])
            model[key] = f"{key} at {ts}"
        kept.advance_since(Timestamp(ts))
        between()
    return model


def require_same(kept: Arrangement, model: dict[int, str], as_of: int) -> None:
    rows = kept.scan(Timestamp(as_of))
    assert {row[0]: row[1] for row, _ in rows} == model
    assert len(rows) == KEYS, "no row is there twice"
    for key in range(0, KEYS, 37):
        assert kept.lookup((key,), Timestamp(as_of)) == [((key, model[key]), 1)]


@pytest.mark.parametrize("seed", range(20))
def test_tables_are_cut_where_no_hash_is_on_both_sides(seed: int) -> None:
    rng = Random(seed)
    tables = [
        made([((rng.choice([7, rng.randrange(200)]), "x" * rng.randrange(40)), i, 1)
              for i in range(rng.randrange(300))])
        for _ in range(rng.randrange(1, 5))
    ]  # fmt: skip
    most_bytes = rng.choice([500, 2_000, 10_000_000])
    ranges = list(in_ranges(TYPES, tables, most_bytes))
    for piece in ranges:
        small = sum(table.nbytes for table in piece) <= most_bytes
        assert small or {h for table in piece for h in hashes_of(table)} == {hashes_of(piece[0])[0]}
    for one, next_one in pairwise(ranges):
        last, first = max(hashes_of(t)[-1] for t in one), min(hashes_of(t)[0] for t in next_one)
        rows, next_rows = {*rows_of(one)}, {*rows_of(next_one)}
        one_row = rows == next_rows and len(rows) == 1
        assert last < first or rows.isdisjoint(next_rows) or one_row, "or by whole rows"
        assert last <= first
    whole = pa.concat_tables([table for piece in ranges for table in piece] or tables)
    columns = ["h", "c0", "c1", "t", "d"]
    order = [(name, "ascending") for name in columns]
    assert whole.sort_by(order).equals(pa.concat_tables(tables).sort_by(order))


def test_state_that_changes_for_long_takes_no_more_room(tmp_path: Path, small_runs: None) -> None:
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=50)
    model = changed(kept, 500, lambda: merge_now(kept))
    assert kept.size.records < 4 * KEYS, "of 20,000 changes"
    assert len(kept.levels.runs) > 2, "it does not fit into one"
    assert len(kept.levels.runs) < 20
    assert len(list(tmp_path.glob("*.arrow"))) == len(kept.levels.runs), "old files are gone"
    require_same(kept, model, 500)


@pytest.mark.parametrize("most_bytes", [MOST_BYTES, 1_000_000], ids=["beyond a run", "within"])
def test_state_without_a_key_takes_no_more_room_either(
    tmp_path: Path, small_runs: None, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    """All entries have one hash, be they more than one run holds or not."""
    monkeypatch.setattr(levels, "MAX_RUN_BYTES", most_bytes)
    kept = Arrangement(tmp_path, TYPES, (), spill_records=50)
    model = changed(kept, 500, lambda: merge_now(kept))
    assert kept.size.records < 4 * KEYS, "of 20,000 changes"
    assert len(list(tmp_path.iterdir())) == len(kept.levels.runs) < 20
    rows = kept.scan(Timestamp(500))
    rows = kept.scan(Timestamp(500))
    assert len(rows) == KEYS
    assert dict(rows) == dict.fromkeys(model.items(), 1)
    for _ in range(3):
        merge_now(kept)
    before = kept.levels.runs
    merge_now(kept)
    assert kept.levels.runs is before, "there comes an end to merging"


def test_pieces_of_one_hash_are_merged_once(tmp_path: Path, small_runs: None) -> None:
    kept = Arrangement(tmp_path, TYPES, (), spill_records=1)
    kept.insert([((i, "x" * 50), 1, 1) for i in range(1_000)])
    merge_now(kept)
    assert len(kept.levels.runs) > 5
    assert large_merge(kept.levels, 1) is None, "nothing is to be gained"


def test_loaded_runs_that_share_a_hash_are_one_level(tmp_path: Path, small_runs: None) -> None:
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=1_000_000)
    kept.levels.load_table(made([((i // 40, f"{i}" + "x" * 50), 1, 1) for i in range(1_000)]))
    assert len(kept.levels.runs) > 5
    assert len(levels_of(kept.levels.runs)) == 1


def test_pieces_of_one_merge_are_one_level(tmp_path: Path, small_runs: None) -> None:
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=1)
    kept.insert([((i, "x" * 50), 1, 1) for i in range(1_000)])
    merge_now(kept)
    assert len(kept.levels.runs) > 5
    assert len(levels_of(kept.levels.runs)) == 1
    assert large_merge(kept.levels, 1) is None, "nothing is to be gained"


def test_one_key_that_is_larger_than_a_run_is_kept_in_several(
    tmp_path: Path, small_runs: None
) -> None:
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=60)
    for ts in range(1, 20):
        kept.insert([((7, f"{ts} {i}" + "x" * 40), ts, 1) for i in range(60)])
        kept.insert([((ts, "other"), ts, 1)])
        merge_now(kept)
    assert kept.size.bytes > 2 * MOST_BYTES
    assert len(levels_of(kept.levels.runs)) < 6, "they are merged all the same"
    found = kept.lookup((7,), Timestamp(20))
    assert len(found) == 60 * 19 + 1
    assert len(kept.scan(Timestamp(20))) == 60 * 19 + 19


def test_ticks_do_not_wait_for_a_large_merge(
    tmp_path: Path, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    begun = threading.Event()

    def merge_late(plan: MergePlan) -> Sequence[Source]:
        if not plan.layers:
            begun.set()
            assert may_go_on.wait(60)
        return merge(plan)

    monkeypatch.setattr(merging, "merge", merge_late)
    monkeypatch.setattr(merging, "MOST_RECORDS", 400)
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=50)
    work = Merging()
    try:
        model = changed(kept, 200, lambda: work.look_after([kept]))
        assert begun.is_set()
        require_same(kept, model, 200)
        in_memory = kept.size.records - sum(run.length for run in kept.levels.runs)
        assert in_memory <= 400, "small merges went on meanwhile"
        before = kept.size.records
    finally:
        may_go_on.set()
        work.wait()
        work.close()
    assert kept.size.records < before
    require_same(kept, model, 200)


def test_a_large_merge_that_fails_leaves_nothing_behind(
    tmp_path: Path, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=1_000_000)
    for first in (0, 500):
        kept.levels.load_table(made([((i + first, "x" * 50), 1, 1) for i in range(500)]))
    files = sorted(path.name for path in tmp_path.iterdir())
    written = 0

    def full(path: Path, types: tuple, table: pa.Table) -> Source:
        nonlocal written
        written += 1
        if written == 3:
            raise OSError("no space left on device")
        return write_run(path, types, table)

    work = Merging()
    with monkeypatch.context() as patched:
        patched.setattr(levels, "write_run", full)
        work.look_after([kept])
        work.wait()
    assert written == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    merged = len(kept.levels.runs)
    work.look_after([kept])
    work.wait()
    assert len(kept.levels.runs) == merged, "it is not tried again and again"
    kept.levels.load_table(made([((i + 1_000, "x" * 50), 1, 1) for i in range(500)]))
    work.look_after([kept])
    work.wait()
    work.close()
    assert len(levels_of(kept.levels.runs)) == 1
    assert len(kept.scan(Timestamp(1))) == 1_500


@pytest.mark.parametrize("closed", [False, True])
def test_who_is_let_go_waits_for_no_large_merge(
    tmp_path: Path, small_runs: None, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """It ends at the next piece; nothing of it is left, and it may be begun again."""
    begun, may_go_on = threading.Event(), threading.Event()
    written: list[Path] = []

    def write_late(path: Path, types: tuple, table: pa.Table) -> Source:
        begun.set()
        assert may_go_on.wait(60)
        written.append(path)
        return write_run(path, types, table)

    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=1_000_000)
    for first in (0, 500):
        kept.levels.load_table(made([((i + first, "x" * 50), 1, 1) for i in range(500)]))
    files = sorted(path.name for path in tmp_path.iterdir())
    work = Merging()
    with monkeypatch.context() as patched:
        patched.setattr(levels, "write_run", write_late)
        work.look_after([kept])
        assert begun.wait(60)
        threading.Timer(0.2, may_go_on.set).start()
        if closed:
            work.close()
        else:
            work.settle([kept])
    assert len(written) == 1, "of more than ten"
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    if closed:
        return
    work.look_after([kept])
    work.wait()
    work.close()
    assert len(levels_of(kept.levels.runs)) == 1
    assert len(kept.scan(Timestamp(1))) == 1_000


def test_a_merge_takes_little_more_than_a_run_at_a_time(
    tmp_path: Path, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def noted(tables: Sequence[pa.Table], since: int) -> pa.Table:
        sizes.append(sum(table.nbytes for table in tables))
        return merge_tables(tables, since)

    monkeypatch.setattr(levels, "merge_tables", noted)
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=50)
    changed(kept, 100, lambda: merge_now(kept))
    assert np.max(sizes) <= MOST_BYTES
