"""Goal: contents are the sums of all diffs, in whatever form and order the updates came.

Method: random batches against a plain counter by representation; values that Python finds equal
though they differ, and NaN, which it finds unequal to itself, are among them. Contents handed out
earlier must stay what they were.
"""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.persist import contents as contents_module
from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.persist.contents import Accumulation, Contents, has_deceptive_rows
from evertide.vocab.datum import Datum, Row
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, NUMERIC, TEXT, SqlType, array_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

NAN = Decimal("NaN")
DESC = relation_desc(("a", INT4), ("b", FLOAT8), ("c", NUMERIC), ("d", array_of(FLOAT8)))
PLAIN = relation_desc(("a", INT4), ("b", TEXT))
ERRORS = ('["22012","division by zero"]', '["22003","out of range"]')
rows = st.tuples(
    st.integers(0, 2) | st.none(),
    st.sampled_from([0.0, -0.0, math.nan, 1.5, None]),
    st.sampled_from([NAN, Decimal(0), Decimal("1.5"), None]),
    st.sampled_from([None, (), (0.0,), (-0.0,), (math.nan, None)]),
)
plain_rows = st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", None]))
diffs = st.sampled_from([1, 1, 1, -1, -1, 2, -2, 0])


def updates_of(found: Sequence[tuple[Row, int, int]]) -> list[Update]:
    return [
        Update(row, Timestamp(1), diff)
        if error < 0
        else Update((), Timestamp(1), diff, ERRORS[error])
        for row, diff, error in found
    ]


def batches(of: st.SearchStrategy[Row]) -> st.SearchStrategy[list[list[Update]]]:
    one = st.tuples(of, diffs, st.sampled_from([-1, -1, -1, -1, 0, 1]))
    return st.lists(st.lists(one, max_size=12).map(updates_of), max_size=6)


def sums_of(updates: Sequence[Update]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for row, _, diff, error in updates:
        sums[repr((row, error))] += diff
    return Counter({name: total for name, total in sums.items() if total})


def shown(contents: Contents) -> Counter[str]:
    names = [repr((row, None)) for row, _ in contents.rows]
    names += [repr(((), error)) for error, _ in contents.errors]
    assert len(set(names)) == len(names), "every row is there once"
    assert all(diff for _, diff in [*contents.rows, *contents.errors])
    assert sums_of(contents.updates()) == Counter(
        {name: d for name, (_, d) in zip(names, [*contents.rows, *contents.errors], strict=True)}
    )
    return sums_of(contents.updates())


@pytest.mark.parametrize("step", [1, 3, 2_000])
@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("deceptive", [False, True], ids=["plain", "deceptive"])
def test_random_batches(
    columnar: bool, deceptive: bool, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents_module, "_STEP_ROWS", step)
    desc = DESC if deceptive else PLAIN

    @settings(max_examples=60, deadline=None)
    @given(batches(rows if deceptive else plain_rows))
    def check(script: list[list[Update]]) -> None:
        accumulation = Accumulation(desc.types)
        so_far: list[Update] = []
        handed_out: list[tuple[Contents, Counter[str]]] = []
        for number, updates in enumerate(script):
            batch = to_batch(desc, updates)
            accumulation.add(UpdateBatch(desc, table=batch.table) if columnar else batch)
            so_far += updates
            if number % 2:
                handed_out.append((accumulation.contents(Timestamp(1)), sums_of(so_far)))
        assert shown(accumulation.contents(Timestamp(1))) == sums_of(so_far)
        ordinary = [u for u in so_far if u.error is None]
        assert len(accumulation) == len(sums_of(ordinary))
        for contents, expected in handed_out:
            assert shown(contents) == expected

    check()


def test_a_pause_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents_module, "_STEP_ROWS", 10)
    accumulation = Accumulation(PLAIN.types)
    pauses = []
    updates = [Update((i, "x"), Timestamp(1), 1) for i in range(95)]
    accumulation.add(to_batch(PLAIN, updates), lambda: pauses.append(len(accumulation)))
    assert pauses == [10, 20, 30, 40, 50, 60, 70, 80, 90, 95]


@pytest.mark.parametrize(
    ("sql_type", "datum", "expected"),
    [
        (FLOAT8, 1.5, False),
        (FLOAT8, None, False),
        (FLOAT8, math.inf, False),
        (FLOAT8, 0.0, True),
        (FLOAT8, -0.0, True),
        (FLOAT8, math.nan, True),
        (NUMERIC, Decimal(0), False),
        (NUMERIC, Decimal("Infinity"), False),
        (NUMERIC, None, False),
        (NUMERIC, NAN, True),
        (array_of(INT4), (0,), False),
        (array_of(NUMERIC), (NAN,), True),
        (TEXT, "NaN", False),
    ],
)
def test_which_columns_may_deceive(sql_type: SqlType, datum: Datum, expected: bool) -> None:
    desc = relation_desc(("a", INT4), ("b", sql_type))
    updates = [Update((1, None), Timestamp(1), 1), Update((2, datum), Timestamp(1), 1)]
    assert has_deceptive_rows(to_batch(desc, updates)) is expected
