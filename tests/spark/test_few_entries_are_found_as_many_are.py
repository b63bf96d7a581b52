"""Goal: the short ways of looking into arrangements find what the long ones do.

Method: random columns, hashes and arrangements; each is asked both ways, or beside a plain model.
"""

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

from evertide.expr.columnar.batch import Entry, batch_of
from evertide.expr.columnar.column import from_arrow
from evertide.expr.columnar.hashes import hash_bytes
from evertide.persist.coding.encoding import decode_column, encode_column
from evertide.persist.coding.keys import encode_row_key
from evertide.spark.arrangements import finding, recent
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.spark.arrangements.datums import datums_of, datums_of_array
from evertide.spark.arrangements.finding import find
from evertide.spark.arrangements.merge_runs import merge_tables
from evertide.spark.arrangements.merging import merge_now
from evertide.spark.arrangements.runs import table_of
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import INT8, TEXT, SqlType
from evertide.vocab.timestamp import Timestamp
from tests.spark.test_arrangement import ALL_TYPES, SAMPLES

TYPES = (INT8, TEXT, INT8)
COLUMNS = ("c0", "c1", "c2", "t", "d")


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_single_values_are_those_of_the_column(sql_type: SqlType, nulls: float) -> None:
    """Few places and many, of a whole column and of a part of one."""
    rng = Random(repr((sql_type, nulls)))
    datums: list[Datum] = [
        None if rng.random() < nulls else rng.choice(SAMPLES[sql_type]) for _ in range(300)
    ]
    for array in (encode_column(sql_type, datums), encode_column(sql_type, datums)[37:290]):
        in_arrow, in_numpy = (
            datums_of_array(sql_type, array),
            datums_of(sql_type, from_arrow(sql_type, array)),
        )
        expected = decode_column(sql_type, array)
        for count in (1, 2, 60, 500):
            places = [rng.randrange(len(array)) for _ in range(count)]
            # By their texts, since NaN is not equal to itself and 0.0 is to -0.0.
            wanted = [repr(expected[place]) for place in places]
            for way in (in_arrow, in_numpy):
                found = way(np.array(places, np.int64))
                assert [repr(datum) for datum in found] == wanted
                assert [type(d) for d in found] == [type(expected[p]) for p in places]


@pytest.mark.parametrize("seed", range(60))
def test_a_hash_is_found_wherever_it_is(seed: int) -> None:
    """Once or several times, first and last, and where there is none."""
    rng = Random(seed)
    most = rng.choice([3, 30, 3_000])
    hashes = sorted(rng.randrange(most) for _ in range(rng.randrange(60)))
    needles = rng.sample(range(-2, most + 2), min(most, rng.randrange(1, 20)))
    positions, places = find(np.array(hashes, np.int64), np.array(needles, np.int64))
    expected = {(n, p) for n, needle in enumerate(needles) for p in at(hashes, needle)}
    pairs = list(zip(positions.tolist(), places.tolist(), strict=True))
    assert len(pairs) == len(expected)
    assert set(pairs) == expected


def at(hashes: list[int], needle: int) -> list[int]:
    return [place for place, found in enumerate(hashes) if found == needle]


@pytest.mark.parametrize("seed", range(60))
def test_what_was_found_before_is_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Entries come by rows, by columns and as runs, and are merged; keys are asked for in between,
    most of them again and again.
    """
    rng = Random(seed)
    monkeypatch.setattr(recent, "MOST_KEYS", rng.choice([2, 5, 1_000]))
    monkeypatch.setattr(finding, "LEAST_LISTED", rng.choice([8, 1_000]))
    monkeypatch.setattr(finding, "_FEW_NEEDLES", rng.choice([1, 12]))
    kept = Arrangement(tmp_path, TYPES, (0, 1), spill_records=rng.choice([3, 30]))
    entries: list[Entry] = []
    for ts in range(1, 60):
        new = [(random_row(rng), ts, rng.choice([1, 1, -1])) for _ in range(rng.randrange(4))]
        entries += new
        add(rng, kept, new)
        if rng.random() < 0.3:
            merge_now(kept)
        wanted = {key_of(random_row(rng)): None for _ in range(rng.randrange(1, 12))}
        keys = [encode_row_key(TYPES[:2], key) for key in wanted]
        given: list[Datum] | None = list(wanted) if rng.random() < 0.5 else None
        found = kept.probe(keys, given)
        for key, encoded in zip(wanted, keys, strict=True):
            mine = [entry for entry in entries if key_of(entry[0]) == key]
            assert total(found.get(encoded, ())) == total(mine), f"{key} at {ts}"


def add(rng: Random, kept: Arrangement, entries: list[Entry]) -> None:
    """One of the ways in which entries come."""
    keyed = [(encode_row_key(TYPES[:2], key_of(entry[0])), entry) for entry in entries]
    way = rng.randrange(3)
    if way == 0 or not entries:
        kept.insert(entries)
    elif way == 1:
        hashes = hash_bytes([key for key, _ in keyed])
        kept.insert_columns(ColumnLayer.of(hashes, batch_of(TYPES, entries)))
    else:
        kept.levels.load_table(table_of(TYPES, keyed))


def random_row(rng: Random) -> tuple[Datum, ...]:
    text = rng.choice(["a", "b", None])
    return (rng.randrange(3), text, rng.randrange(2))


def key_of(row: tuple[Datum, ...]) -> tuple[Datum, ...]:
    return row[:2]


def total(entries: object) -> Counter[tuple[Datum, ...]]:
    counts: Counter[tuple[Datum, ...]] = Counter()
    for row, _, diff in entries:  # type: ignore[attr-defined]
        counts[row] += diff
    return Counter({row: count for row, count in counts.items() if count})


def test_large_rows_are_not_remembered(tmp_path: Path) -> None:
    """Else a thousand of them would be in memory, whatever the setting says."""
    kept = Arrangement(tmp_path, TYPES, (0,), spill_records=2)
    kept.insert([((1, "small", 0), 1, 1), ((2, "x" * 10_000, 0), 1, 1)])
    merge_now(kept)
    small, large = (encode_row_key((INT8,), (key,)) for key in (1, 2))
    assert set(kept.probe([small, large])) == {small, large}
    assert set(kept.levels.recent.found) == {small}


def test_a_row_of_state_that_is_replaced_leaves_one(tmp_path: Path) -> None:
    """The very row that came last goes: nothing of it is left to be added up."""
    kept = Arrangement(tmp_path, TYPES, (0,))
    row = (1, "a", 0)
    kept.insert([(row, 0, 1)])
    for number in range(1, 50):
        new = (1, "a", number)
        kept.insert([(row, 0, -1), (new, 0, 1)])
        row = new
    key = encode_row_key((INT8,), (1,))
    assert kept.probe([key]) == {key: [((1, "a", 49), 0, 1)]}
    assert kept.size.records == 1


def test_only_the_row_that_came_last_is_replaced(tmp_path: Path) -> None:
    """Another one goes by being added up, and so does one of another time."""
    kept = Arrangement(tmp_path, TYPES, (0,))
    first, second, third = ((1, "a", number) for number in range(3))
    for row in (first, second):
        kept.insert([(row, 0, 1)])
    kept.insert([(first, 0, -1), (third, 0, 1)])
    key = encode_row_key((INT8,), (1,))
    assert total(kept.probe([key])[key]) == Counter([second, third])
    kept.insert([(third, 5, -1), (first, 5, 1)])
    assert kept.lookup((1,), Timestamp(4)) == [(second, 1), (third, 1)]
    assert kept.lookup((1,), Timestamp(5)) == [(second, 1), (first, 1)]


@pytest.mark.parametrize("seed", range(30))
def test_one_table_is_merged_as_several_are(seed: int) -> None:
    """Whether its entries have one time or more, before since or not."""
    rng = Random(seed)
    times = rng.sample(range(1, 9), rng.choice([1, 1, 3]))
    entries = [(random_row(rng), rng.choice(times), 1) for _ in range(rng.randrange(1, 30))]
    since = rng.randrange(10)
    keyed = [(encode_row_key(TYPES[:2], key_of(entry[0])), entry) for entry in entries]
    merged = merge_tables([table_of(TYPES, keyed)], since).to_pydict()
    assert merged["h"] == sorted(merged["h"])
    found: Counter[object] = Counter()
    for *row, ts, diff in zip(*[merged[name] for name in COLUMNS], strict=True):
        found[(*row, ts)] += diff
    assert found == Counter((*row, max(ts, since)) for row, ts, _ in entries)


@pytest.mark.parametrize("seed", range(40))
def test_rows_that_are_there_once_are_given_in_the_order_asked_for(
    tmp_path: Path, seed: int
) -> None:
    """As foreign keys name them; of others each is given with the position of its key."""
    rng = Random(seed)
    count = rng.choice([300, 900])
    keys = rng.sample(range(10**6), count)
    entries: list[Entry] = [((key, f"row {key}", -key), 1, 1) for key in keys]
    if seed % 4 == 1:
        entries.append((entries[0][0], 2, 1))  # one of them is there twice
    if seed % 4 == 2:
        entries.pop()  # and one is missing
    kept = Arrangement(tmp_path, TYPES, (0,))
    halves = [entries] if seed % 4 < 3 else [entries[: count // 2], entries[count // 2 :]]
    for half in halves:
        rows = hash_bytes([encode_row_key(TYPES[:1], entry[0][:1]) for entry in half])
        kept.insert_columns(ColumnLayer.of(rows, batch_of(TYPES, half)))
    rng.shuffle(keys)
    wanted = batch_of(TYPES, [((key, None, None), 1, 1) for key in keys])
    hashes = hash_bytes([encode_row_key(TYPES[:1], (key,)) for key in keys])
    where, found = kept.find(wanted.columns[:1], hashes)
    given = Counter(zip(where.tolist(), found.entries(), strict=True))
    assert given == Counter((keys.index(-int(str(e[0][2]))), e) for e in entries)
    if seed % 4 == 0:
        assert where.tolist() == list(range(count))
