"""The rows that tell a batch of changes, in each form."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

import pytest

from evertide.adapter.subscribe.feed import Batch, add_up
from evertide.adapter.subscribe.rows import ChangeRows
from evertide.expr.relation import Get, OrderKey
from evertide.expr.scalar import ColumnRef
from evertide.sql.plan.plans import ChangeForm, DiffForm, EnvelopeForm, SubscribePlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero, SqlError, encode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, INT8, TEXT
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update

COLUMNS = relation_desc(("k", INT4), ("v", TEXT))


def rows_of(
    form: ChangeForm, changes: Sequence[Update], upper: int = 100, *, progress: bool = False
) -> Iterator[Row]:
    before = isinstance(form, EnvelopeForm) and form.before
    plan = SubscribePlan(
        relation=Get(GlobalId("u1"), COLUMNS.types),
        columns=COLUMNS,
        desc=relation_desc(*((f"c{i}", INT8) for i in range(4 + progress + before))),
        depends_on=(),
        form=form,
        snapshot=True,
        progress=progress,
        as_of=None,
        at_least=False,
        up_to=None,
    )
    return ChangeRows(plan).rows(Batch(changes, Timestamp(upper)))


def told(form: ChangeForm, *changes: Update) -> list[Row]:
    return list(rows_of(form, changes))


def change(ts: int, diff: int, *row: object) -> Update:
    return Update(row, Timestamp(ts), diff)  # type: ignore[arg-type]


def test_diffs_come_with_their_timestamp() -> None:
    rows = told(DiffForm(), change(5, 1, 1, "a"), change(5, -1, 2, "b"), change(6, 3, 3, None))
    assert rows == [(5, 1, 1, "a"), (5, -1, 2, "b"), (6, 3, 3, None)]
    assert all(isinstance(row[0], Decimal) for row in rows)


def test_progress_follows_the_changes() -> None:
    rows = list(rows_of(DiffForm(), [change(5, 1, 1, "a")], 9, progress=True))
    assert rows == [(5, False, 1, 1, "a"), (9, True, None, None, None)]
    assert list(rows_of(DiffForm(), [], EMPTY_FRONTIER, progress=True)) == []


def test_an_error_comes_after_what_was_before_it() -> None:
    error = Update((), Timestamp(6), 1, encode_error(DivisionByZero("division by zero")))
    changes = [change(5, 1, 1, "a"), change(6, 1, 2, "b"), error, change(7, 1, 3, "c")]
    rows = rows_of(DiffForm(), changes)
    assert next(rows) == (5, 1, 1, "a")
    with pytest.raises(SqlError) as raised:
        next(rows)
    assert raised.value.code == "22012", "nothing else of a timestamp at which there is an error"


def test_an_error_that_goes_away_is_no_error() -> None:
    gone = Update((), Timestamp(6), -1, encode_error(DivisionByZero("division by zero")))
    assert told(DiffForm(), gone, change(6, 1, 2, "b")) == [(6, 1, 2, "b")]


def test_order_within_a_timestamp_is_that_of_the_keys() -> None:
    form = DiffForm(
        (ColumnRef(2, TEXT), ColumnRef(0, INT8)),
        (OrderKey(0, descending=True, nulls_first=True), OrderKey(1)),
    )
    rows = told(
        form,
        change(5, 1, 1, "a"), change(5, 1, 2, "b"), change(5, -1, 3, "b"), change(5, 1, 4, None),
        change(6, 1, 5, "a"), change(6, 1, 6, "z"),
    )  # fmt: skip
    assert [(row[0], row[2]) for row in rows] == [(5, 4), (5, 3), (5, 2), (5, 1), (6, 6), (6, 5)]


UPSERT = EnvelopeForm((0,), before=False)
DEBEZIUM = EnvelopeForm((0,), before=True)


@pytest.mark.parametrize(
    ("changes", "upsert", "debezium"),
    [
        ([(1, 1, "a")], [("upsert", 1, "a")], [("insert", 1, None, "a")]),
        (
            [(-1, 1, "a"), (1, 1, "b")],
            [("upsert", 1, "b")],
            [("upsert", 1, "a", "b")],
        ),
        ([(-1, 1, "a")], [("delete", 1, None)], [("delete", 1, "a", None)]),
        (
            [(1, 1, "a"), (1, 1, "b")],
            [("key_violation", 1, None)],
            [("key_violation", 1, None, None)],
        ),
        ([(2, 1, "a")], [("key_violation", 1, None)], [("key_violation", 1, None, None)]),
        (
            [(1, 2, "x"), (1, None, "y")],
            [("upsert", 2, "x"), ("upsert", None, "y")],
            [("insert", 2, None, "x"), ("insert", None, None, "y")],
        ),
    ],
)
def test_a_key_is_told_once_for_each_timestamp(
    changes: list[tuple[int, object, object]], upsert: list[Row], debezium: list[Row]
) -> None:
    updates = [change(5, diff, *row) for diff, *row in changes]
    assert told(UPSERT, *updates) == [(5, *row) for row in upsert]
    assert told(DEBEZIUM, *updates) == [(5, *row) for row in debezium]


def test_changes_of_one_timestamp_are_added_up() -> None:
    zero, minus = 0.0, -0.0
    found = add_up(
        [
            change(5, 1, zero), change(5, 1, zero), change(5, 1, minus), change(5, -2, zero),
            change(6, -1, zero), change(6, 1, zero), change(7, 1, zero),
            Update((), Timestamp(8), 1, "e"), Update((), Timestamp(8), -1, "e"),
            Update((), Timestamp(9), 1, "e"),
        ],
        (FLOAT8,),
    )  # fmt: skip
    assert [(u.ts, u.diff, str(u.row), u.error) for u in found] == [
        (5, 1, "(-0.0,)", None), (7, 1, "(0.0,)", None), (9, 1, "()", "e"),
    ]  # fmt: skip
