"""Arrangements against a plain list of updates; runs, merges, snapshots."""

import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from evertide.expr.columnar.batch import Entry, batch_of
from evertide.expr.columnar.hashes import hash_bytes
from evertide.expr.row_key import column_encoder, identity_function
from evertide.persist.coding.keys import encode_row_key
from evertide.spark.arrangements.arrangement import Arrangement, BelowSince
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.arrangements.due_merges import small_merge
from evertide.spark.arrangements.levels import Taken, merge, write_snapshot
from evertide.spark.arrangements.merging import Merging, merge_now
from evertide.spark.arrangements.runs import open_run, run_schema, table_of, write_run
from evertide.vocab.datum import Datum, Interval, Row
from evertide.vocab.sql_type import (
    BOOL,
    BYTEA,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NUMERIC,
    TEXT,
    UUID,
    Kind,
    SqlType,
    array_of,
)
from evertide.vocab.timestamp import Timestamp

SAMPLES: dict[SqlType, list[Datum]] = {
    INT8: [0, 1, -(2**63), 2**63 - 1],
    INT4: [0, -5],
    INT2: [3],
    SqlType(Kind.UINT8): [0, 2**64 - 1],
    BOOL: [True, False],
    FLOAT8: [0.0, -0.0, 1.5, float("nan"), float("-inf")],
    FLOAT4: [0.5, -0.0],
    NUMERIC: [Decimal(0), Decimal("1.5"), Decimal("NaN"), Decimal("1E+30")],
    TEXT: ["", "a", "ä\x00b"],
    SqlType(Kind.BPCHAR, length=3): ["a", "a  "],
    BYTEA: [b"", b"\x00"],
    INTERVAL: [Interval(1, 0, 0), Interval(0, 30, 0)],
    UUID: [bytes(16)],
    JSONB: ['{"a":1}', "null"],
    array_of(FLOAT8): [(), (0.0,), (-0.0,), (float("nan"), None)],
    array_of(INTERVAL): [(Interval(0, 1, 0), None)],
}
ALL_TYPES = tuple(SAMPLES)


def random_row(rng: Random, types: tuple[SqlType, ...]) -> Row:
    return tuple(None if rng.random() < 0.1 else rng.choice(SAMPLES[t]) for t in types)


def contents(entries: list[Entry], types: tuple[SqlType, ...], as_of: int) -> Counter[str]:
    identity = identity_function(types) or (lambda row: row)
    totals: Counter[str] = Counter()
    for row, ts, diff in entries:
        if ts <= as_of:
            totals[repr(identity(row))] += diff
    return Counter({row: count for row, count in totals.items() if count})


def counted(rows: list[tuple[Row, int]], types: tuple[SqlType, ...]) -> Counter[str]:
    identity = identity_function(types) or (lambda row: row)
    return Counter({repr(identity(row)): count for row, count in rows})


@pytest.mark.parametrize("seed", range(40))
def test_it_holds_what_was_put_into_it(tmp_path: Path, seed: int) -> None:
    """Random updates of random types; now and then a merge, a new since, a look."""
    rng = Random(seed)
    types = tuple(rng.sample(ALL_TYPES, rng.randrange(1, 5)))
    key = tuple(rng.sample(range(len(types)), rng.randrange(len(types) + 1)))
    kept = Arrangement(tmp_path, types, key, spill_records=rng.choice([5, 20, 1000]))
    entries: list[Entry] = []
    pool = [random_row(rng, types) for _ in range(15)]
    for ts in range(1, 40):
        batch = [(rng.choice(pool), ts, rng.choice([1, 1, -1])) for _ in range(rng.randrange(6))]
        entries += batch
        kept.insert(batch)
        if rng.random() < 0.4:
            merge_now(kept)
        if rng.random() < 0.2:
            kept.advance_since(Timestamp(rng.randrange(ts + 1)))
        as_of = rng.randrange(kept.since, ts + 1)
        expected = contents(entries, types, as_of)
        assert counted(kept.scan(Timestamp(as_of)), types) == expected
        check_lookup(rng, kept, entries, types, key, as_of)


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_any_type_are_added_up_though_all_have_one_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Also where they are too many for one run, and are cut by what is in them."""
    monkeypatch.setattr("evertide.spark.arrangements.levels.MAX_RUN_BYTES", 3_000)
    monkeypatch.setattr("evertide.spark.arrangements.levels.LARGE_BYTES", 1_000)
    rng = Random(seed)
    types = tuple(rng.sample(ALL_TYPES, 6))
    kept = Arrangement(tmp_path, types, (), spill_records=20)
    pool = [random_row(rng, types) for _ in range(100)]
    entries: list[Entry] = []
    for ts in range(1, 60):
        batch = [(rng.choice(pool), ts, rng.choice([1, 1, -1])) for _ in range(20)]
        entries += batch
        kept.insert(batch)
        kept.advance_since(Timestamp(ts))
        merge_now(kept)
    assert len(kept.levels.runs) > 1
    assert kept.size.records < 300, "of 1,180"
    assert counted(kept.scan(Timestamp(60)), types) == contents(entries, types, 60)


def check_lookup(
    rng: Random,
    kept: Arrangement,
    entries: list[Entry],
    types: tuple[SqlType, ...],
    key: tuple[int, ...],
    as_of: int,
) -> None:
    """By SQL's equality: other looks of the key are found too."""
    wanted = random_row(rng, types)
    key_types = tuple(types[i] for i in key)
    encoded = encode_row_key(key_types, tuple(wanted[i] for i in key))
    same = [e for e in entries if encode_row_key(key_types, tuple(e[0][i] for i in key)) == encoded]
    found = kept.lookup(tuple(wanted[i] for i in key), Timestamp(as_of))
    assert counted(found, types) == contents(same, types, as_of)


def test_the_hash_is_sparks() -> None:
    """xxhash64 of a binary column, seed 42, as Spark 4.3 computed it."""
    assert hash_bytes([b"Spark"]).tolist() == [-4294468057691064905]
    assert hash_bytes([b""]).tolist() == [-7444071767201028348]


def test_keys_are_the_stored_encoding() -> None:
    rng = Random(1)
    for _ in range(200):
        row = random_row(rng, ALL_TYPES)
        columns = tuple(rng.sample(range(len(ALL_TYPES)), rng.randrange(4)))
        types = tuple(ALL_TYPES[i] for i in columns)
        expected = encode_row_key(types, tuple(row[i] for i in columns))
        assert column_encoder(ALL_TYPES, columns)(row) == expected


def test_two_keys_with_one_hash_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("runs", "arrangement"):
        monkeypatch.setattr(
            f"evertide.spark.arrangements.{module}.hash_bytes",
            lambda keys: np.zeros(len(keys), np.int64),
        )
    kept = Arrangement(tmp_path, (INT8, TEXT), (0,), spill_records=1)
    kept.insert([((i, str(i)), 1, 1) for i in range(20)])
    merge_now(kept)
    assert kept.lookup((7,), Timestamp(1)) == [((7, "7"), 1)]
    assert kept.lookup((70,), Timestamp(1)) == []


def test_history_before_since_is_merged_away(tmp_path: Path) -> None:
    kept = Arrangement(tmp_path, (INT8,), (0,), spill_records=10)
    for ts in range(1, 500):
        kept.insert([((0,), ts, 1), ((0,), ts, -1), ((1,), ts, 1)])
        kept.advance_since(Timestamp(ts))
        merge_now(kept)
    assert kept.size.records < 60
    assert kept.scan(Timestamp(499)) == [((1,), 499)]


def test_a_read_below_since_is_refused(tmp_path: Path) -> None:
    kept = Arrangement(tmp_path, (INT8,), (0,), since=Timestamp(5))
    for read in (lambda: kept.scan(Timestamp(4)), lambda: kept.lookup((1,), Timestamp(4))):
        with pytest.raises(BelowSince) as raised:
            read()
        assert raised.value.since == 5


def test_the_number_of_runs_stays_small(tmp_path: Path) -> None:
    kept = Arrangement(tmp_path, (INT8, INT8), (0,), spill_records=10)
    for i in range(3_000):
        kept.insert([((i, i), i, 1)])
        merge_now(kept)
    assert len(kept.levels.runs) <= 10
    assert len(list(tmp_path.glob("*.arrow"))) == len(kept.levels.runs), "old files are gone"
    assert len(kept.scan(Timestamp(3_000))) == 3_000


def test_one_small_layer_does_not_keep_others_from_being_merged(tmp_path: Path) -> None:
    kept = Arrangement(tmp_path, (INT8, INT8), (0,))
    kept.insert([((i, i), 1, 1) for i in range(16)])
    kept.levels.freeze()
    for first in range(10_000, 90_000, 10_000):
        rows = [((first + i, i), 1, 1) for i in range(1_900)]
        keys = [encode_row_key((INT8,), (row[0],)) for row, _, _ in rows]
        kept.insert_columns(ColumnLayer.of(hash_bytes(keys), batch_of(kept.types, rows)))
    assert len(kept.levels.frozen) > 5, "they are too large to be put together at once"
    for _ in range(3):
        merge_now(kept)
    assert len(kept.levels.frozen) <= 2
    assert len(kept.scan(Timestamp(2))) == 16 + 8 * 1_900


def test_reads_go_on_while_a_merge_runs(tmp_path: Path) -> None:
    """Insert, look and swap on one thread, merge on another; then everything is there."""
    kept = Arrangement(tmp_path, (INT8, TEXT), (0,), spill_records=50)
    merging = Merging()
    for i in range(2_000):
        kept.insert([((i % 100, str(i)), i, 1)])
        merging.look_after([kept])
        assert len(kept.lookup((i % 100,), Timestamp(i))) == i // 100 + 1
    merging.wait()
    merging.close()
    assert kept.levels.runs
    assert len(kept.scan(Timestamp(2_000))) == 2_000


def test_a_merge_that_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Arrangement(tmp_path, (INT8,), (0,), spill_records=5)
    merging = Merging()

    def full(*_arguments: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("evertide.spark.arrangements.levels.write_run", full)
        kept.insert([((i,), 1, 1) for i in range(10)])
        merging.look_after([kept])
        merging.wait()
    assert len(kept.scan(Timestamp(1))) == 10
    merging.look_after([kept])
    merging.wait()
    merging.close()
    assert len(kept.levels.runs) == 1
    assert len(kept.scan(Timestamp(1))) == 10


@pytest.mark.parametrize(
    "fault", [MemoryError(), ValueError("array is too big"), pa.ArrowInvalid()]
)
def test_a_merge_that_fails_for_any_reason_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """And nobody but the log is told: the call that notices may be about another dataflow."""
    kept, other = (Arrangement(tmp_path / name, (INT8,), (0,), spill_records=5) for name in "ab")
    merging = Merging()

    def failing(*_arguments: object) -> None:
        raise fault

    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr("evertide.spark.arrangements.levels.merge_tables", failing)
        kept.insert([((i,), 1, 1) for i in range(10)])
        merging.look_after([kept])
        merging.wait()
        merging.look_after([other])
    assert [log["event"] for log in logs] == ["merge failed"]
    assert not kept.levels.taken.layers
    merging.look_after([kept])
    merging.wait()
    merging.close()
    assert len(kept.levels.runs) == 1
    assert len(kept.scan(Timestamp(1))) == 10


def test_a_run_that_cannot_be_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError("no space left on device")

    kept = Arrangement(tmp_path, (INT8,), (0,), spill_records=5)
    kept.insert([((i,), 1, 1) for i in range(10)])
    for step in ("os.replace", "open_run"):
        with monkeypatch.context() as patched:
            patched.setattr(f"evertide.spark.arrangements.runs.{step}", full)
            with pytest.raises(OSError, match="no space left"):
                merge_now(kept)
        kept.levels.taken = Taken()
        assert not list(tmp_path.iterdir())
    merge_now(kept)
    assert len(kept.levels.runs) == 1


def test_a_snapshot_holds_what_was_there_when_it_was_captured(tmp_path: Path) -> None:
    kept = Arrangement(tmp_path / "a", (INT8, TEXT), (0,), since=Timestamp(3), spill_records=50)
    kept.insert([((i, "x"), 3, 1) for i in range(120)])
    merge_now(kept)
    kept.insert([((i, "y"), 4, 1) for i in range(10)])
    captured = kept.levels.capture(kept.since)
    kept.insert([((i, "z"), 5, 1) for i in range(100)])
    merge_now(kept)
    manifests = []
    writer = threading.Thread(
        target=lambda: manifests.append(write_snapshot(tmp_path / "s", "0", captured))
    )
    writer.start()
    writer.join()
    restored = Arrangement(tmp_path / "b", (INT8, TEXT), (0,))
    restored.restore(tmp_path / "s", manifests[0])
    assert restored.since == 3
    rows = restored.scan(Timestamp(9))
    assert Counter(row[1] for row, _ in rows) == {"x": 120, "y": 10}


def test_a_table_made_elsewhere_can_be_loaded(tmp_path: Path) -> None:
    types = (INT8, TEXT)
    encode = column_encoder(types, (1,))
    entries: list[Entry] = [((i, f"k{i % 7}"), 5, 1) for i in range(100)]
    made = table_of(types, [(encode(entry[0]), entry) for entry in entries])
    assert made.schema.equals(run_schema(types))
    assert made.column("h").to_pylist() == sorted(made.column("h").to_pylist())
    kept = Arrangement(tmp_path, types, (1,), since=Timestamp(5))
    kept.levels.load_table(made)
    assert len(kept.lookup(("k3",), Timestamp(5))) == 14


def test_a_run_of_every_type_reads_back(tmp_path: Path) -> None:
    rng = Random(3)
    rows = [random_row(rng, ALL_TYPES) for _ in range(60)]
    table = table_of(ALL_TYPES, [(b"%d" % i, (row, i, 1)) for i, row in enumerate(rows)])
    write_run(tmp_path / "1.arrow", ALL_TYPES, table)
    run = open_run(tmp_path / "1.arrow", ALL_TYPES)
    read = sorted(run.all_entries(), key=lambda entry: entry[1])
    assert [repr(row) for row, _, _ in read] == [repr(row) for row in rows]


def test_nothing_left_is_no_run(tmp_path: Path) -> None:
    kept = Arrangement(tmp_path, (INT8,), (0,), spill_records=2)
    kept.insert([((1,), 1, 1), ((2,), 1, 1)])
    kept.insert([((1,), 2, -1), ((2,), 2, -1)])
    kept.advance_since(Timestamp(2))
    plan = small_merge(kept.levels, kept.since)
    assert plan is not None
    kept.levels.swap(plan, merge(plan))
    assert kept.size == (0, 0)
    assert kept.scan(Timestamp(2)) == []
