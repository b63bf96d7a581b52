"""Goal: what spares small ticks some work changes nothing in what they give.

Method: each short way beside the plain one that it stands for, over random entries.
"""

import gc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pytest

from evertide.expr.aggregate import Weighted
from evertide.expr.columnar.batch import Entry
from evertide.expr.row_key import identity_function
from evertide.persist.coding.keys import encode_row_key, key_encoder, key_list_encoder
from evertide.spark.arrangements import counting
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.counting import count_rows
from evertide.spark.arrangements.datums import integers_of
from evertide.spark.arrangements.layer import add_up
from evertide.spark.arrangements.merging import merge_now
from evertide.spark.garbage import Garbage
from evertide.spark.operators.changes import updates_of
from evertide.spark.operators.delta import Delta, consolidated
from evertide.spark.operators.grouping.group_rows import (
    Counts,
    RowDistinct,
    RowDistinctCount,
    RowSlot,
    RowValueCount,
    number_values,
)
from evertide.spark.operators.keyed import ByKey
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import FLOAT8, INT8, NUMERIC, TEXT, Kind, SqlType
from evertide.vocab.timestamp import MIN_TS
from tests.spark.test_arrangement import ALL_TYPES, SAMPLES, random_row
from tests.spark.test_few_entries_are_found_as_many_are import TYPES, add, key_of
from tests.spark.test_few_entries_are_found_as_many_are import random_row as small_row

PADDED = SqlType(Kind.BPCHAR)


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
def test_many_keys_are_those_of_each(sql_type: SqlType) -> None:
    datums: list[Datum] = [*SAMPLES[sql_type], None]
    assert key_list_encoder(sql_type)(datums) == [key_encoder(sql_type)(d) for d in datums]


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_taken_apart_by_what_sql_finds_equal(seed: int) -> None:
    """Also where Python finds it different; parts are told only where each key has one."""
    rng = Random(seed)
    types = (INT8, PADDED, FLOAT8)
    columns = rng.choice([(0,), (1,), (2,), (0, 1), (2, 1), ()])
    rows = [
        (rng.choice([1, 2, None]), rng.choice(["a", "a ", None]), rng.choice([0.0, -0.0, 1.0]))
        for _ in range(rng.randrange(12))
    ]
    entries: list[Entry] = [(row, number, 1) for number, row in enumerate(rows)]
    delta, drop_nulls = Delta(entries), rng.random() < 0.5
    keyed, parts = delta.by_key(ByKey(types, columns), drop_nulls=drop_nulls)
    key_types = tuple(types[i] for i in columns)
    expected: dict[bytes, list[Entry]] = {}
    for entry in entries:
        key = tuple(entry[0][i] for i in columns)
        if not drop_nulls or None not in key:
            expected.setdefault(encode_row_key(key_types, key), []).append(entry)
    assert {key: sorted(group, key=number_of) for key, group in keyed.items()} == expected
    if parts is not None:
        whole = [(part,) if len(columns) == 1 else part for part in parts]
        encoded = [encode_row_key(key_types, part) for part in whole]  # type: ignore[arg-type]
        assert encoded == list(keyed)
    assert delta.by_key(ByKey(types, columns), drop_nulls=drop_nulls).keyed is keyed or not entries


def number_of(entry: Entry) -> int:
    return entry[1]


def test_one_delta_is_taken_apart_for_each_key() -> None:
    delta = Delta([((1, None), 1, 1), ((2, 7), 1, 1)])
    by_first, by_second = ByKey((INT8, INT8), (0,)), ByKey((INT8, INT8), (1,))
    assert len(delta.by_key(by_first, drop_nulls=True).keyed) == 2
    assert len(delta.by_key(by_second, drop_nulls=True).keyed) == 1
    assert len(delta.by_key(by_second, drop_nulls=False).keyed) == 2


@pytest.mark.parametrize("one_hash", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_rows_are_counted_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, one_hash: bool
) -> None:
    """In layers, columns and runs; also if all keys have one hash."""
    if one_hash:
        for name in ("runs", "layer", "counting"):
            monkeypatch.setattr(f"evertide.spark.arrangements.{name}.hash_bytes", no_hash)
        monkeypatch.setattr(f"{__name__}.add", lambda _rng, kept, new: kept.insert(new))
    rng = Random(seed)
    kept = Arrangement(tmp_path, TYPES, (0, 1), spill_records=rng.choice([3, 30]))
    entries: list[Entry] = []
    for ts in range(1, 40):
        new = [(small_row(rng), ts, rng.choice([1, 1, -1])) for _ in range(rng.randrange(4))]
        entries += new
        add(rng, kept, new)
        if rng.random() < 0.3:
            merge_now(kept)
        wanted = list({key_of(small_row(rng)): None for _ in range(rng.randrange(6))})
        keys = [encode_row_key(TYPES[:2], key) for key in wanted]
        found = count_rows(kept, keys, list(wanted))
        assert found == [sum(e[2] for e in entries if key_of(e[0]) == key) for key in wanted]


def no_hash(keys: list[bytes]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.zeros(len(keys), np.int64)


def test_a_count_goes_by_what_sql_finds_equal(tmp_path: Path) -> None:
    kept = Arrangement(tmp_path, (INT8, PADDED), (0, 1), spill_records=1)
    kept.insert([((1, "a "), 1, 1), ((1, "a"), 1, 1), ((1, "b"), 1, 1)])
    merge_now(kept)
    key = encode_row_key((INT8, PADDED), (1, "a"))
    assert counting.count_rows(kept, [key], [(1, "a")]) == [2]


def test_values_that_sql_finds_equal_have_one_number() -> None:
    """Python finds one NaN different from another. NULL has none."""
    nans: list[Datum] = [Decimal("NaN"), Decimal("NaN")]
    key_types = (TEXT, NUMERIC)
    for given in ([Decimal(1), None, Decimal(2)], [*nans, Decimal(1)], [None], []):
        groups = [
            (encode_row_key((TEXT,), (name,)), (name,), [*given, *given]) for name in ("a", "b")
        ]
        numbers, names, rows = number_values(groups, key_list_encoder(NUMERIC))
        used: set[int] = set()
        for (_, key, _), of_group in zip(groups, numbers, strict=True):
            assert set(map(id, of_group)) == {id(value) for value in given if value is not None}
            for value, number in of_group.items():
                assert names[number] == encode_row_key(key_types, (*key, value))
                assert repr(rows[number]) == repr((*key, value))
            used |= set(of_group.values())
        assert len(used) == len({names[number] for number in used}) == len(set(names))


@dataclass
class GroupOfCounts:
    """What a DISTINCT aggregate asks of its group."""

    counts: list[tuple[Counts, Mapping[Datum, int]]]
    rows: int = 0

    def values(self, column: int) -> Weighted:
        raise AssertionError(f"nobody looks at {column}")


@pytest.mark.parametrize("seed", range(30))
def test_distinct_values_are_counted_as_they_are_summed(seed: int) -> None:
    """One by one, also where some are there less than once."""
    rng = Random(seed)
    before = [rng.randrange(-2, 3) for _ in range(4)]
    slots: list[RowSlot] = [
        RowDistinctCount(0, RowValueCount(None, 9)),
        RowDistinct(0, RowValueCount(None, 9)),
    ]
    groups = [
        GroupOfCounts([(Counts([b""] * 4, [()] * 4, list(before)), {n: n for n in range(4)})])
        for _ in slots
    ]
    for _ in range(5):
        size = rng.randrange(8)
        values = [rng.choice([0, 1, 2, 3, None]) for _ in range(size)]
        diffs = [rng.choice([-2, -1, 1, 1, 3]) for _ in range(size)]
        for slot, group in zip(slots, groups, strict=True):
            slot.change(group, values, diffs)
        (short, long), (one, other) = slots, [group.counts[0][0].now for group in groups]
        assert one == other
        assert short.kept() == long.kept()
        assert short.result(groups[0]) == long.result(groups[1])
        there = sum(now > 0 for now in one) - sum(then > 0 for then in before)
        assert short.kept() == (9 + there,)


@pytest.mark.parametrize("numbers", [[4], [4, 4, 4], [4, 4, -1], [-1, 4, 4]])
def test_equal_integers_are_integers(numbers: list[int]) -> None:
    read = integers_of(np.array(numbers, np.int64))
    for places in ([0], [0, 0], list(range(len(numbers))), [len(numbers) - 1], []):
        assert read(np.array(places, np.int64)) == [numbers[place] for place in places]


@pytest.mark.parametrize("seed", range(60))
def test_changes_are_added_up(seed: int) -> None:
    """Whether some are there twice or not: rows are told apart by how they look."""
    rng = Random(seed)
    types = tuple(rng.sample(ALL_TYPES, rng.randrange(1, 4)))
    pool = [random_row(rng, types) for _ in range(rng.choice([3, 40]))]
    count = rng.randrange(12)
    entries = [(rng.choice(pool), rng.randrange(3), rng.choice([-1, 0, 1])) for _ in range(count)]
    found = consolidated(Delta(entries), types).rows
    expected = add_up(entries, MIN_TS, identity_function(types))
    assert Counter(map(repr, found)) == Counter(map(repr, expected))


@pytest.mark.parametrize("count", [0, 1, 5, 40])
@pytest.mark.parametrize("failed", [0, 2])
def test_updates_are_the_changes(count: int, failed: int) -> None:
    entries = [((i, str(i)), i % 3 + 1, 1 - 2 * (i % 2)) for i in range(count)]
    errors = [(f"e{i}", 7, 1) for i in range(failed)]
    updates = list(updates_of(Delta(entries, errors), (INT8, TEXT)))
    expected = [(row, ts, diff, None) for row, ts, diff in entries]
    assert updates == [*expected, *[((), ts, diff, error) for error, ts, diff in errors]]


def test_nothing_is_collected_while_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what a tick within leaves behind is set aside after all of it."""
    done: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: done.append("set aside"))
    garbage = Garbage()
    assert gc.isenabled()
    with garbage.left_alone():
        with garbage.left_alone(1_000_000):
            assert not gc.isenabled()
        assert not gc.isenabled()
        assert not done
    assert gc.isenabled()
    assert done == ["set aside"]
    with garbage.left_alone(1):
        pass
    assert done == ["set aside"]
