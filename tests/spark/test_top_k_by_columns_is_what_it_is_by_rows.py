"""Top-k and threshold give the same by columns, by rows, and by both in turn."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pytest

from evertide.dataflow.delta_plan import ThresholdNode, TopKNode
from evertide.expr.columnar.batch import Entry
from evertide.expr.relation import OrderKey, Types
from evertide.expr.row_key import identity_function
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.merging import merge_now
from evertide.spark.operators.delta import Delta, Room, Tick
from evertide.spark.operators.ranking import columns as regroup_columns
from evertide.spark.operators.ranking import ranks as regroup_ranks
from evertide.spark.operators.ranking.columns import ColumnRegroup, Window
from evertide.spark.operators.ranking.prefixes import Located, Prefixes
from evertide.spark.operators.ranking.ranks import packed
from evertide.spark.operators.ranking.regroup import (
    RegroupOperator,
    threshold_operator,
    top_k_operator,
)
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import BOOL, FLOAT8, INT4, INT8, INTERVAL, NUMERIC, TEXT, SqlType
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from tests.support.seeds import seeds

Node = TopKNode | ThresholdNode
Plant = Callable[[pytest.MonkeyPatch], None]
Changes = Counter[tuple[Hashable, int]]
NO_TICK = Tick({}, None, EMPTY_FRONTIER)
NEVER = 10**9
VALUES: dict[SqlType, Sequence[Datum]] = {
    INT8: (None, -(2**63), -7, 0, 3, 4, 2**63 - 1),
    INT4: (1, 2, 3),
    FLOAT8: (None, 0.0, -0.0, float("nan"), float("-inf"), 1.5, -2.25),
    TEXT: (None, "", "a", "A", "ab", "ä", "z\u0301"),
    NUMERIC: (None, Decimal("0"), Decimal("1.50"), Decimal("-3"), Decimal("NaN"), Decimal("1e20")),
    BOOL: (None, True, False),
}


def is_wide_from(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr("evertide.spark.operators.delta.WIDE_ROWS", rows)


def random_node(rng: Random) -> Node:
    types: Types = tuple(rng.choices(list(VALUES), k=rng.randrange(1, 5)))
    if rng.random() < 0.2:
        return ThresholdNode(0, types)
    columns = range(len(types))
    group = tuple(rng.sample(columns, rng.choice([0, 1, 1, min(2, len(types))])))
    order = tuple(
        OrderKey(column, rng.random() < 0.5, rng.random() < 0.5)
        for column in rng.choices(columns, k=rng.randrange(3))
    )
    limit, offset = rng.choice([None, 0, 1, 1, 1, 2, 5]), rng.choice([0, 0, 0, 1, 3])
    return TopKNode(0, group, order, limit, offset, types)


def random_ticks(rng: Random, types: Types) -> Iterator[list[Entry]]:
    """Mostly inserts and retractions of what is there; sometimes of what is not, or many at once.

    A number tells many rows apart where there is a column for it, so that groups become large.
    """
    present: list[Row] = []
    busy = rng.choice([3, 12, 40])
    wide = rng.random() < 0.7
    first = 10
    for _ in range(12):
        entries: list[Entry] = []
        span = rng.choice([1, 1, 1, 4])
        for _ in range(rng.randrange(1, busy + 1)):
            ts = first + rng.randrange(span)
            if present and rng.random() < 0.45:
                place = rng.randrange(len(present))
                entries.append((present.pop(place), ts, -1))
                continue
            row = tuple(random_value(rng, sql_type, wide=wide) for sql_type in types)
            if rng.random() < 0.03:
                entries.append((row, ts, -rng.randrange(1, 3)))
            else:
                times = rng.choice([1, 1, 1, 3])
                present += [row] * times
                entries.append((row, ts, times))
        first += span
        yield entries


def random_value(rng: Random, sql_type: SqlType, *, wide: bool) -> Datum:
    if wide and sql_type == INT8 and rng.random() < 0.8:
        return rng.randrange(500)
    return rng.choice(VALUES[sql_type])


def operator_of(node: Node, directory: Path) -> RegroupOperator:
    room = Room(directory, spill_records=20)
    if isinstance(node, TopKNode):
        return top_k_operator(node, room)
    return threshold_operator(node, room)


def counted(delta: Delta, types: Types) -> Changes:
    """By identity, which tells 0.0 from -0.0; a node's output need not be added up."""
    identity = identity_function(types) or (lambda row: row)
    sums: Changes = Counter()
    for row, ts, diff in delta.rows:
        sums[identity(row), ts] += diff
    return Counter({change: diff for change, diff in sums.items() if diff})


def check(seed: int, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    node = random_node(rng)
    by_rows, by_columns, by_both = (
        operator_of(node, directory / name) for name in ("rows", "columns", "both")
    )
    for entries in random_ticks(rng, node.types):
        delta = Delta(entries)
        upper = Timestamp(max(ts for _, ts, _ in entries) + 1)
        is_wide_from(monkeypatch, NEVER)
        expected = counted(by_rows.step([delta], NO_TICK), node.types)
        by_rows.commit(upper)
        is_wide_from(monkeypatch, 1)
        follow(rng, by_columns, delta, upper, expected)
        is_wide_from(monkeypatch, rng.choice([1, NEVER]))
        follow(rng, by_both, delta, upper, expected)


def follow(
    rng: Random, operator: RegroupOperator, delta: Delta, upper: Timestamp, expected: Changes
) -> None:
    """One tick, sometimes in vain at first; then whoever merges may come along."""
    if rng.random() < 0.2:
        operator.step([delta], NO_TICK)
        operator.abort()
    (kept,) = operator.arrangements
    assert counted(operator.step([delta], NO_TICK), kept.types) == expected
    operator.commit(upper)
    if rng.random() < 0.3:
        merge_now(kept)


@pytest.fixture(autouse=True)
def small_things_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is made for large groups happens here too."""
    monkeypatch.setattr("evertide.spark.operators.grouping.group_cache.LEAST_ROWS", 3)
    monkeypatch.setattr("evertide.spark.operators.ranking.regroup.LARGE_ROWS", 12)


@pytest.mark.parametrize("block", range(15))
def test_random_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    if block % 3 == 0:
        monkeypatch.setattr("evertide.spark.operators.ranking.prefixes.MOST_PREFIX_ROWS", 12)
    for seed in range(block * 20, block * 20 + 20):
        check(seed, tmp_path / str(seed), monkeypatch)


def check_gap(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows tie in the first column. When those kept have gone, the next is not the newest."""
    operator = operator_of(TopKNode(0, (), (OrderKey(0),), 1, 0, (INT4, INT8)), directory)
    is_wide_from(monkeypatch, 1)

    def tick(ts: int, numbers: Sequence[int], diff: int) -> Changes:
        delta = Delta([((1, number), ts, diff) for number in numbers])
        shown = counted(operator.step([delta], NO_TICK), (INT4, INT8))
        operator.commit(Timestamp(ts + 1))
        return shown

    assert tick(1, range(100), 1) == {((1, 0), 1): 1}
    for gone in range(1, 30):
        ts = 2 * gone
        assert tick(ts, [1_000 + gone], 1) == {}
        kept = range(3 * gone - 3, 3 * gone)
        assert tick(ts + 1, kept, -1) == {((1, kept[0]), ts + 1): -1, ((1, 3 * gone), ts + 1): 1}


def test_a_change_behind_the_rows_kept_does_not_follow_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_gap(tmp_path, monkeypatch)


@pytest.mark.slow
@seeds(deep=range(10_000, 16_000), fresh=1_000, block=100)
def test_many_more_random_ticks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: Sequence[int]
) -> None:
    for seed in seeds:
        check(seed, tmp_path / str(seed), monkeypatch)


def take_in_what_is_beyond(patch: pytest.MonkeyPatch) -> None:
    """A change behind the rows kept is taken for the one that follows them."""
    patch.setattr(regroup_columns, "_inside", lambda ranks, *_: np.ones(len(ranks), np.bool_))


def never_read_again(patch: pytest.MonkeyPatch) -> None:
    """When the rows kept have gone, nothing is shown."""
    find = Prefixes.find

    def plenty(self: Prefixes, hashes: object) -> Located:
        located = find(self, hashes)  # type: ignore[arg-type]
        located.totals[:] = NEVER
        return located

    patch.setattr(Prefixes, "find", plenty)


def keep_what_rows_changed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ColumnRegroup, "forget", lambda *_: None)


def keep_what_columns_changed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ColumnRegroup, "pending", None)


def overlook_looks(patch: pytest.MonkeyPatch) -> None:
    """0.0 and -0.0 are taken for one row."""
    patch.setattr(regroup_ranks, "looks_codes", lambda *_: [])


def overlook_ties(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(regroup_ranks, "_refine", lambda *_: None)


def count_what_is_owed(patch: pytest.MonkeyPatch) -> None:
    """A row with a negative count makes room for one more."""

    def careless(counts: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = counts.cumsum()
        before = (ends - counts)[starts].repeat(np.diff(starts, append=len(counts)))
        return np.maximum(counts, 0), ends - before

    patch.setattr(regroup_columns, "running_counts", careless)


def see_all_timestamps_at_once(patch: pytest.MonkeyPatch) -> None:
    changes = ColumnRegroup._changes
    patch.setattr(
        ColumnRegroup,
        "_changes",
        lambda self, table, ranks, times, diffs: changes(
            self, table, ranks, np.full_like(times, times.max()), diffs
        ),
    )


def keep_an_aborted_tick(patch: pytest.MonkeyPatch) -> None:
    step = ColumnRegroup.step

    def hasty(self: ColumnRegroup, delta: object) -> object:
        shown = step(self, delta)  # type: ignore[arg-type]
        if self._prefixes is not None and self._prefix is not None:
            self._prefixes.put(self._prefix)
        return shown

    patch.setattr(ColumnRegroup, "step", hasty)


@pytest.mark.parametrize(
    "plant",
    [
        take_in_what_is_beyond, never_read_again, keep_what_rows_changed,
        keep_what_columns_changed, overlook_looks, overlook_ties, count_what_is_owed,
        see_all_timestamps_at_once, keep_an_aborted_tick,
    ],
)  # fmt: skip
def test_a_planted_bug_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_many(tmp_path, monkeypatch)


def check_many(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_gap(directory / "gap", monkeypatch)
    for seed in range(300):
        check(seed, directory / str(seed), monkeypatch)


def test_different_keys_with_one_hash_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when only one of them comes, and the first rows of the other are kept."""
    monkeypatch.setattr(
        regroup_columns, "hash_keys", lambda _types, _columns, length: np.zeros(length, np.int64)
    )
    monkeypatch.setattr(
        "evertide.spark.arrangements.arrangement.hash_bytes",
        lambda keys: np.zeros(len(keys), np.int64),
    )
    monkeypatch.setattr(
        "evertide.spark.operators.ranking.regroup.hash_bytes",
        lambda keys: np.zeros(len(keys), np.int64),
    )
    monkeypatch.setattr(
        "evertide.spark.arrangements.layer.hash_bytes", lambda keys: np.zeros(len(keys), np.int64)
    )
    node = TopKNode(0, (0,), (OrderKey(1),), 1, 0, (INT8, INT8))
    operator = operator_of(node, tmp_path)
    is_wide_from(monkeypatch, 1)

    def tick(ts: int, rows: Sequence[tuple[int, int, int]]) -> Changes:
        delta = Delta([((key, value), ts, diff) for key, value, diff in rows])
        shown = counted(operator.step([delta], NO_TICK), node.types)
        operator.commit(Timestamp(ts + 1))
        return shown

    assert tick(1, [(1, value, 1) for value in range(9)]) == {((1, 0), 1): 1}
    assert tick(2, [(2, 5, 1)]) == {((2, 5), 2): 1}
    assert tick(3, [(1, 0, -1)]) == {((1, 0), 3): -1, ((1, 1), 3): 1}
    both = {((1, 1), 4): -1, ((1, 2), 4): 1, ((2, 5), 4): -1, ((2, 4), 4): 1}
    assert tick(4, [(1, 1, -1), (2, 4, 1)]) == both
    assert tick(5, [(2, 4, -1)]) == {((2, 4), 5): -1, ((2, 5), 5): 1}
    assert tick(6, [(2, 5, -1)]) == {((2, 5), 6): -1}
    assert tick(7, [(1, 1, 1)]) == {((1, 2), 7): -1, ((1, 1), 7): 1}


def test_columns_of_the_group_are_not_compared_again(tmp_path: Path) -> None:
    """The first column that is compared tells what is behind the rows that are kept."""
    operator = operator_of(
        TopKNode(0, (1,), (OrderKey(1), OrderKey(2, True)), 1, 0, (INT8, FLOAT8, INT4)), tmp_path
    )
    assert operator._columns is not None
    order = operator._columns._row_order
    assert order.keys == (OrderKey(2, True), OrderKey(0))
    assert order.looks == (1,), "0.0 and -0.0 are one group, and two rows"


def test_types_whose_looks_columns_do_not_know_go_by_rows(tmp_path: Path) -> None:
    for sql_type, known in ((INTERVAL, False), (FLOAT8, True)):
        operator = operator_of(ThresholdNode(0, (INT8, sql_type)), tmp_path / str(known))
        assert (operator._columns is not None) is known


@pytest.mark.parametrize("habit", ["random", "rising", "first out"])
def test_a_large_group_is_not_read_by_every_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, habit: str
) -> None:
    """Also if each change tops the last, and if the first row is always the next to go."""
    assert rows_read(tmp_path / "kept", monkeypatch, habit) < 30_000
    monkeypatch.setattr("evertide.spark.operators.ranking.prefixes.MOST_PREFIX_ROWS", 0)
    assert rows_read(tmp_path / "forgotten", monkeypatch, habit) > 150_000


def rows_read(directory: Path, monkeypatch: pytest.MonkeyPatch, habit: str) -> int:
    """How many rows 20 ticks look up; half of 20,000 rows, and of changes, are in one group."""
    rng = Random(7)
    operator = operator_of(TopKNode(0, (0,), (OrderKey(1, True),), 1, 0, (INT8, INT8)), directory)
    is_wide_from(monkeypatch, 48)
    read = 0
    find = Arrangement.find

    def counting(self: Arrangement, *asked: object) -> tuple:
        nonlocal read
        found = find(self, *asked)  # type: ignore[arg-type]
        read += len(found[1])
        return found

    def new_row(ts: int) -> tuple[int, int]:
        value = ts * 10**6 + rng.randrange(10**6) if habit == "rising" else rng.randrange(10**6)
        return (0 if rng.random() < 0.5 else rng.randrange(1, 1_000), value)

    present = [new_row(1) for _ in range(20_000)]
    operator.step([Delta([(row, 1, 1) for row in present])], NO_TICK)
    operator.commit(Timestamp(2))
    with monkeypatch.context() as patch:
        patch.setattr(Arrangement, "find", counting)
        for ts in range(2, 22):
            if habit == "first out":
                present.sort(key=lambda row: (row[0] == 0, row[1]))
                present = present[-5:] + present[:-5]
            gone = present[:5] + [present.pop(rng.randrange(5, len(present))) for _ in range(45)]
            come = [new_row(ts) for _ in range(50)]
            present = present[5:] + come
            entries: Sequence[Entry] = [(row, ts, -1) for row in gone] + [
                (row, ts, 1) for row in come
            ]
            operator.step([Delta(entries)], NO_TICK)
            operator.commit(Timestamp(ts + 1))
    return read


def test_one_change_of_a_large_group_does_not_read_it_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept ready, as after a start."""
    monkeypatch.setattr("evertide.spark.operators.ranking.prefixes.MOST_PREFIX_ROWS", 0)
    is_wide_from(monkeypatch, 48)
    types = (INT8, INT8)
    operator = operator_of(TopKNode(0, (0,), (OrderKey(1),), 1, 0, types), tmp_path)
    rows = [(key, value) for key in (1, 2) for value in range(100 if key == 1 else 3)]
    operator.step([Delta([(row, 1, 1) for row in rows])], NO_TICK)
    operator.commit(Timestamp(2))
    read = 0
    probe = Arrangement.probe

    def counting(self: Arrangement, keys: Sequence[bytes]) -> object:
        nonlocal read
        found = probe(self, keys)
        read += sum(map(len, found.values()))
        return found

    monkeypatch.setattr(Arrangement, "probe", counting)
    shown = operator.step([Delta([((1, 0), 2, -1)])], NO_TICK)
    assert counted(shown, types) == {((1, 0), 2): -1, ((1, 1), 2): 1}
    assert read == 0
    operator.commit(Timestamp(3))
    shown = operator.step([Delta([((2, 0), 3, -1)])], NO_TICK)
    assert counted(shown, types) == {((2, 0), 3): -1, ((2, 1), 3): 1}
    assert read == 3


def test_packed_codes_compare_as_they_do_one_after_the_other() -> None:
    draw = np.random.default_rng(3)
    for width in (2**3, 2**40, 2**63 - 1):
        for count in (1, 2, 300):
            codes = [draw.integers(-width, width, count) for _ in range(3)]
            codes.append(draw.choice([-(2**63), 0, 2**63 - 1], count))
            for given in (codes, codes[::-1], codes[:1]):
                order = np.argsort(packed(given), kind="stable")
                assert order.tolist() == np.lexsort(given[::-1]).tolist()


def test_the_window_counts_rows_as_often_as_they_are_there() -> None:
    counts, starts = np.array([2, -1, 3, 1, -4, 2]), np.array([0, 3])
    assert Window.of_limit(1, 3).shown(counts, starts).tolist() == [1, 0, 2, 0, 0, 2]
    assert Window.of_limit(4, None).shown(counts, starts).tolist() == [0, 0, 1, 0, 0, 0]
    assert Window.of_all_there().shown(counts, starts).tolist() == [2, 0, 2, 0, 0, 0]
