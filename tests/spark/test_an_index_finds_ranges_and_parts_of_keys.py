"""Goal: an index gives exactly the rows whose keys are asked for, at any timestamp it can be read
at, whatever the form of the lookup and wherever its entries lie: in the newest layer, in layers of
columns, in runs, merged or not.

Method: random changes go to an index and to a plain list; random spans are looked up in both. One
test counts what is sorted, because a lookup must not sort what it has sorted before.
"""

import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pytest

from evertide.dataflow.lookup import Lookup, Span, point, union
from evertide.expr.columnar.batch import Entry, batch_of
from evertide.persist.coding.keys import encode_row_key
from evertide.spark.arrangements import key_order
from evertide.spark.arrangements.arrangement import BelowSince
from evertide.spark.arrangements.key_order import KeyOrders, LookupRefused, OrderPending
from evertide.spark.arrangements.merging import merge_now
from evertide.spark.operators.arrange import OutputIndex
from evertide.spark.operators.delta import Delta, Room
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import FLOAT8, INT4, NUMERIC, TEXT, Kind, SqlType
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp

BPCHAR = SqlType(Kind.BPCHAR)
SPILL = 60


def datum(chance: random.Random, sql_type: SqlType) -> Datum:
    if chance.random() < 0.12:
        return None
    if sql_type is INT4:
        return chance.randint(-6, 6)
    if sql_type is FLOAT8:
        return chance.choice([0.0, -0.0, 1.5, -2.25, float("nan"), float("inf")])
    if sql_type is NUMERIC:
        return Decimal(chance.choice(["0", "-1.5", "7", "123456789.125", "1E+20", "NaN"]))
    return chance.choice(["", "a", "ab", "b", "a\x01", "Ä", "zz"])


KEYS = {
    "one integer": (INT4,),
    "text before integer": (TEXT, INT4),
    "numeric, padded text, float": (NUMERIC, BPCHAR, FLOAT8),
}


class Model:
    """The same entries in a list, looked through from end to end."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self.types = types
        self.entries: list[Entry] = []

    def key(self, row: Row) -> bytes:
        return encode_row_key(self.types, row[: len(self.types)])

    def look_up(self, lookup: Lookup, as_of: int) -> list[tuple[str, int]]:
        counts: dict[str, int] = {}
        for row, ts, diff in self.entries:
            if ts <= as_of and any(s.lower <= self.key(row) < s.upper for s in lookup.spans):
                counts[repr(row)] = counts.get(repr(row), 0) + diff
        return sorted((row, count) for row, count in counts.items() if count)


def random_lookup(chance: random.Random, model: Model) -> Lookup:
    """Whole keys, leading parts of keys, and stretches between any two keys."""
    spans: list[Span] = []
    exact = chance.random() < 0.25
    for _ in range(chance.randint(1, 4)):
        lower, upper = sorted(
            encode_row_key(model.types, tuple(datum(chance, t) for t in model.types))
            for _ in range(2)
        )
        cut = encode_row_key(model.types[:1], (datum(chance, model.types[0]),))
        if exact:
            spans.append(point(lower))
        else:
            spans.append(chance.choice([point(lower), point(cut), Span(lower, upper + b"\x03")]))
    return Lookup(union(spans), exact)


def ask(index: OutputIndex, lookup: Lookup, as_of: int) -> list[tuple[str, int]]:
    for _ in range(50):
        try:
            rows, errors = index.peek(lookup, Timestamp(as_of))
        except OrderPending as pending:
            pending.done.exception(60)
            continue
        assert errors == []
        return sorted((repr(row), count) for row, count in rows)
    raise AssertionError("it is never ready")


def change(chance: random.Random, model: Model, ts: int) -> list[Entry]:
    """Inserts, and deletes of what is there."""
    there = [entry for entry in model.entries if entry[2] > 0]
    changes: list[Entry] = []
    for number in range(chance.randint(1, 30)):
        if there and chance.random() < 0.4:
            row = chance.choice(there)[0]
            if sum(d for r, _, d in [*model.entries, *changes] if repr(r) == repr(row)) > 0:
                changes.append((row, ts, -1))
            continue
        row = (*(datum(chance, t) for t in model.types), ts * 100 + number)
        changes.append((row, ts, 1))
    return changes


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("seed", range(6))
def test_every_lookup_gives_what_a_look_through_everything_gives(
    seed: int, kind: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{seed} {kind}")
    types = KEYS[kind]
    model = Model(types)
    width = (*types, INT4)
    index = OutputIndex(width, tuple(range(len(types))), Room(tmp_path, SPILL), Timestamp(0))
    since = 0
    with patch.object(key_order, "SMALL_RECORDS", chance.choice([0, 20, 10_000])):
        for ts in range(1, 60):
            changes = change(chance, model, ts)
            model.entries += changes
            wide = chance.random() < 0.5 and bool(changes)
            index.prepare(Delta(batch=batch_of(width, changes)) if wide else Delta(changes))
            index.commit(EMPTY_FRONTIER)
            if chance.random() < 0.3:
                merge_now(index.rows)
            if chance.random() < 0.1:
                since = max(since, ts - 5)
                index.advance_since(Timestamp(since))
            for _ in range(3):
                as_of = chance.randint(since, ts)
                lookup = random_lookup(chance, model)
                assert ask(index, lookup, as_of) == model.look_up(lookup, as_of), (ts, as_of)
    assert index.rows.levels.runs, "runs were looked into"
    index.close()


def filled(tmp_path: Path, rows: int) -> OutputIndex:
    """One integer key in a run."""
    index = OutputIndex((INT4, TEXT), (0,), Room(tmp_path, SPILL), Timestamp(0))
    index.prepare(Delta(batch=batch_of((INT4, TEXT), [((i, "x"), 1, 1) for i in range(rows)])))
    index.commit(EMPTY_FRONTIER)
    merge_now(index.rows)
    assert index.rows.levels.runs
    return index


def between(low: int, high: int, most: int | None = None) -> Lookup:
    span = Span(encode_row_key((INT4,), (low,)), encode_row_key((INT4,), (high,)))
    return Lookup((span,), exact=False, most=most)


def test_what_never_changes_is_sorted_once(tmp_path: Path) -> None:
    index = filled(tmp_path, 20_000)
    with patch.object(key_order, "sort_keys", wraps=key_order.sort_keys) as sorting:
        for ts in range(2, 30):
            assert len(ask(index, between(10, 20), ts)) == 10
            index.prepare(Delta([((ts + 100_000, "new"), ts, 1)]))
            index.commit(EMPTY_FRONTIER)
        assert sorting.call_count == 1
    assert ask(index, between(100_000, 200_000), 3) == sorted(
        [(repr((100_002, "new")), 1), (repr((100_003, "new")), 1)]
    )
    index.close()


def test_a_large_run_is_sorted_beside_the_ticks_and_leaves_no_file(tmp_path: Path) -> None:
    index = filled(tmp_path, 20_000)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(OrderPending) as raised:
        index.peek(between(1, 2), Timestamp(1))
    raised.value.done.result(60)
    assert len(ask(index, between(1, 3), 1)) == 2
    assert set(tmp_path.rglob("*")) == before
    index.close()


def test_what_a_merge_has_made_is_sorted_before_somebody_asks(tmp_path: Path) -> None:
    index = filled(tmp_path, 20_000)
    ask(index, between(1, 2), 1)
    more = [((i, "y"), 2, 1) for i in range(30_000)]
    index.prepare(Delta(batch=batch_of((INT4, TEXT), more)))
    index.commit(EMPTY_FRONTIER)
    merge_now(index.rows)
    with patch.object(key_order, "sort_keys", wraps=key_order.sort_keys) as sorting:
        index.prepare(Delta([((7, "z"), 3, 1)]))
        index.commit(EMPTY_FRONTIER)
        assert ask(index, between(7, 8), 3) == sorted(
            [(repr((7, text)), 1) for text in ("x", "y", "z")]
        )
        assert sorting.call_count == 1
    index.close()


def test_an_index_that_nobody_looks_into_is_let_be(tmp_path: Path) -> None:
    index = filled(tmp_path, 20_000)
    with patch.object(key_order, "sort_keys", wraps=key_order.sort_keys) as sorting:
        index.prepare(Delta([((7, "z"), 2, 1)]))
        index.commit(EMPTY_FRONTIER)
        index.peek(Lookup((point(encode_row_key((INT4,), (7,))),), exact=True), Timestamp(2))
        assert sorting.call_count == 0
    orders = KeyOrders(index.rows, tmp_path)
    with patch.object(key_order, "IDLE_TICKS", 3), patch.object(key_order, "SMALL_RECORDS", 10**6):
        assert len(orders.find(between(1, 3))) == 2
        with patch.object(key_order, "sort_keys", wraps=key_order.sort_keys) as sorting:
            orders.find(between(1, 3))
            assert sorting.call_count == 0
            for _ in range(4):
                orders.follow()
            orders.find(between(1, 3))
            assert sorting.call_count >= 1, "it had been let go"
    orders.close()
    index.close()


def test_too_many_entries_and_lost_history_are_refused(tmp_path: Path) -> None:
    index = filled(tmp_path, 20_000)
    assert len(ask(index, between(0, 100, most=100), 1)) == 100
    with pytest.raises(LookupRefused):
        ask(index, between(0, 101, most=100), 1)
    index.advance_since(Timestamp(5))
    with pytest.raises(BelowSince):
        ask(index, between(0, 1), 4)
    index.close()


def test_many_spans_are_found_at_once_in_keys_of_one_length(tmp_path: Path) -> None:
    chance = random.Random(7)
    types, model = (INT4, INT4, INT4), Model((INT4, INT4))
    index = OutputIndex(types, (0, 1), Room(tmp_path, SPILL), Timestamp(0))
    model.entries = [
        ((chance.randint(-300, 300), chance.randint(0, 3), i), 1, 1) for i in range(6_000)
    ]
    index.prepare(Delta(batch=batch_of(types, model.entries)))
    index.commit(EMPTY_FRONTIER)
    for _ in range(10):
        bounds = [(chance.randint(-300, 300), chance.randint(0, 3)) for _ in range(40)]
        whole = [point(encode_row_key((INT4, INT4), bound)) for bound in bounds[:10]]
        parts = [point(encode_row_key((INT4,), bound[:1])) for bound in bounds[10:20]]
        pairs = zip(bounds[20:30], bounds[30:], strict=True)
        ranges = [Span(*sorted(encode_row_key((INT4, INT4), b) for b in pair)) for pair in pairs]
        for spans in (whole, parts, whole + parts, ranges[:1] + whole + parts):
            lookup = Lookup(union(spans), exact=False)
            assert ask(index, lookup, 1) == model.look_up(lookup, 1)
    index.close()


def test_long_work_is_not_waited_for_where_there_is_another_way(tmp_path: Path) -> None:
    index = filled(tmp_path, 20_000)
    with patch.object(key_order, "PATIENT_RECORDS", 10_000):
        with pytest.raises(LookupRefused):
            index.peek(between(1, 2, most=100), Timestamp(1))
        with pytest.raises(OrderPending) as raised:
            index.peek(between(1, 2), Timestamp(1))
        raised.value.done.result(60)
        assert len(ask(index, between(1, 2, most=100), 1)) == 1
    index.close()


def test_a_disk_that_takes_nothing_refuses_the_lookup_and_no_more(tmp_path: Path) -> None:
    index = filled(tmp_path, 20_000)
    with (
        patch.object(key_order, "_mapped", side_effect=OSError(28, "No space left on device")),
        pytest.raises(LookupRefused, match="No space left"),
    ):
        ask(index, between(1, 2), 1)
    assert len(ask(index, between(1, 2), 1)) == 1
    index.close()
