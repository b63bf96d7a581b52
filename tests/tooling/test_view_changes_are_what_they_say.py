"""Goal: the benchmark of views cannot pass a wrong view, nor send other changes than it counts.

Method: a second database runs the statements that a server would get, and must then hold what the
model holds; answers that differ a little are given to the comparison.
"""

import datetime
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest

from bench.views.changes import Batch, draw_batch, inserts_of
from bench.views.definitions import SECOND_SHARE, VIEWS, View
from bench.views.model import Model, WrongAnswer, require_same
from bench.views.tables import TABLES

SCALE = 0.01


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model(SCALE)
    yield made
    made.close()


def copy_of(model: Model) -> duckdb.DuckDBPyConnection:
    """Another database, filled by the statements that fill a server."""
    other = duckdb.connect()
    for table in TABLES.values():
        other.execute(table.create)
        for literals in model.stored_literals(table.name):
            for statement in inserts_of(table.name, literals):
                other.execute(statement)
    return other


def contents(connection: duckdb.DuckDBPyConnection) -> dict[str, Counter]:
    return {t: Counter(connection.execute(f"SELECT * FROM {t}").fetchall()) for t in TABLES}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("inserts", [False, True], ids=["mixed", "inserts"])
def test_statements_do_what_the_model_does(model: Model, view: View, inserts: bool) -> None:
    other = copy_of(model)
    assert contents(other) == contents(model.connection)
    for number, size in enumerate([1] * 6 + [100]):
        batch = draw_batch(model, view, size, number, inserts=inserts)
        for statement in batch.statements:
            other.execute(statement)
        found = other.execute(view.narrow_query, list(batch.key)).fetchall()
        require_same(found, batch.after, f"{view.name}, {size}")
    assert contents(other) == contents(model.connection)
    require_same(other.execute(view.query).fetchall(), model.everything(view), view.name)
    other.close()


def counted(batch: Batch) -> tuple[Counter, Counter]:
    """Rows deleted and rows inserted, by table."""
    deleted: Counter = Counter()
    inserted: Counter = Counter()
    for statement in batch.statements:
        table = re.split(r" ", statement)[2]
        if statement.startswith("DELETE"):
            deleted[table] += statement.count(",") + 1
        else:
            inserted[table] += statement.count("(")
    return deleted, inserted


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_batch_is_a_third_each_of_inserts_updates_and_deletes(model: Model, view: View) -> None:
    size = 300
    deleted, inserted = counted(draw_batch(model, view, size, 0, inserts=False))
    second = round(size * SECOND_SHARE) if len(view.changed) > 1 else 0
    for table, changes in zip(view.changed, (size - second, second), strict=False):
        # An update is one of each.
        assert deleted[table] == pytest.approx(changes * 2 / 3, abs=1)
        assert inserted[table] == pytest.approx(changes * 2 / 3, abs=1)
    assert set(deleted) == set(inserted) == set(view.changed)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_one_change_takes_turns_and_nearly_always_shows(model: Model, view: View) -> None:
    batches = [draw_batch(model, view, 1, number, inserts=False) for number in range(18)]
    verbs = Counter(batch.statements[0].split()[0] for batch in batches)
    assert set(verbs) == {"INSERT", "UPDATE", "DELETE"}
    assert min(verbs.values()) >= 4
    assert sum(batch.shows for batch in batches) >= 14


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_an_update_leaves_what_a_row_refers_to(model: Model, view: View) -> None:
    def kept(table: str) -> dict[int, tuple]:
        columns = ", ".join(TABLES[table].kept)
        rows = model.connection.execute(f"SELECT id, {columns} FROM {table}").fetchall()
        return {row[0]: row[1:] for row in rows}

    before = {table: kept(table) for table in view.changed}
    draw_batch(model, view, 100, 0, inserts=False)
    for table, rows in before.items():
        after = kept(table)
        stayed = rows.keys() & after.keys()
        assert {row_id: after[row_id] for row_id in stayed} == {i: rows[i] for i in stayed}


def test_the_same_changes_come_every_time() -> None:
    drawn = []
    for _ in range(2):
        model = Model(SCALE)
        drawn.append([draw_batch(model, VIEWS["join5"], 50, n, inserts=False) for n in range(3)])
        model.close()
    assert drawn[0] == drawn[1]


DAY = datetime.date(1995, 1, 1)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ([(1, 2)], [(1, 3)]),
        ([(1, 2)], []),
        ([], [(1, 2)]),
        ([(1, 2), (1, 2)], [(1, 2)]),
        ([(1, None)], [(1, 0)]),
        ([("a", Decimal("1.01"))], [("a", Decimal("1.02"))]),
        ([("a", Decimal("1.00000001"))], [("a", 1.0)]),
        ([(DAY, 10**17)], [(DAY, 10**17 + 1)]),
    ],
)
def test_a_difference_ends_the_benchmark(shown: list[tuple], expected: list[tuple]) -> None:
    with pytest.raises(WrongAnswer, match="the view: "):
        require_same(shown, expected, "the view")


def test_what_is_equal_in_another_form_passes() -> None:
    shown = [("a", Decimal("5"), Decimal("2.5"), Decimal("0.333333333333333333")), ("b", 1, 1, 1)]
    expected = [("b", 1, 1, 1.0), ("a", 5, Decimal("2.50"), 1 / 3)]
    require_same(shown, expected, "the view")
