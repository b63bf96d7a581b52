"""Where building a view's state anew takes less time than following the changes to it.

The evaluator runs in this process, as it does in a resident task; nothing else is timed. A share of
the rows of the view's largest table is replaced by others, in one tick; beside it the whole view is
built from the rows that there are afterwards. Above a ratio of 1 the recompute is the quicker one.
"""

import datetime
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.figure import RUNS, Figure, Runs, milliseconds
from bench.place import Place
from bench.views.definitions import VIEWS, View
from bench.views.model import Model
from bench.views.tables import TABLES
from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.expr.relation import Types
from evertide.expr.transform.passes import optimize
from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.spark.building.recompute import CROSSOVER
from evertide.spark.evaluate import Evaluator
from evertide.spark.tables import desc_of
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.sql.database import Database, new_database

SCALE = 0.25
SHARES = (0.1, 0.25, 0.5, 1.0)
MOVED = 1_000_000_000  # what is added to the id of a row that is replaced
EPOCH = datetime.date(1970, 1, 1)
BEFORE, AFTER = Timestamp(1), Timestamp(5)


@dataclass(frozen=True, slots=True)
class Stored:
    """A table as the catalog knows it, and its rows."""

    global_id: GlobalId
    types: Types
    rows: list[Row]

    def batch(self, rows: Sequence[Row], ts: Timestamp, gone: Sequence[Row] = ()) -> UpdateBatch:
        """Changes by columns, as they come from a shard."""
        desc = desc_of(self.types)
        updates = [Update(row, ts, -1) for row in gone] + [Update(row, ts, 1) for row in rows]
        return UpdateBatch(desc, table=to_batch(desc, updates).table)


def measure(place: Place) -> list[Figure]:
    """For each view and share, the tick beside the recompute; then where they meet."""
    model = Model(SCALE / 10 if place.quick else SCALE)
    database = new_database()
    for table in TABLES.values():
        database.run(table.create)
    stored = {name: _stored(name, model, database) for name in TABLES}
    model.close()
    figures: list[Figure] = []
    for view in VIEWS.values():
        measured = [_figure(view, share, stored, database) for share in SHARES]
        figures += [figure for figure, _ in measured]
        print(f"crossover of {view.name}: {_meeting(measured)}", flush=True)
    return figures


def _meeting(measured: Sequence[tuple[Figure, float]]) -> str:
    """Changes per row left at which the two take equally long, between those measured."""
    points = [(changes, figure.ratio or 0.0) for figure, changes in measured]
    for (low, under), (high, over) in pairwise(points):
        if under < 1 <= over:
            met = low + (high - low) * (1 - under) / (over - under)
            return f"{met:.2f} changes per row left (the rule says {CROSSOVER})"
    ends = ", ".join(f"{ratio:.2f} at {changes:.2f}" for changes, ratio in points)
    return f"not between these, tick / recompute: {ends}"


def _figure(
    view: View, share: float, stored: Mapping[str, Stored], database: Database
) -> tuple[Figure, float]:
    plan = database.plan(view.query)
    assert isinstance(plan, SelectPlan)
    delta = delta_plan(optimize(plan.relation))
    ticks, builds = zip(*[_times(view, share, stored, delta) for _ in range(RUNS)], strict=True)
    rows = sum(len(stored[name].rows) for name in view.reads)
    changes = 2 * int(len(stored[view.changed[0]].rows) * share)
    figure = Figure(
        name=f"{view.name}: tick of {share:.0%} of {view.changed[0]} replaced",
        unit="ms",
        runs=Runs(tuple([one] for one in ticks)),
        baseline_name="all built anew",
        baseline=Runs(tuple([one] for one in builds)),
    )
    return figure, changes / rows


def _times(
    view: View, share: float, stored: Mapping[str, Stored], plan: DeltaPlan
) -> tuple[float, float]:
    changed = stored[view.changed[0]]
    part = int(len(changed.rows) * share)
    gone = changed.rows[:part]
    come = [(_moved(row[0]), *row[1:]) for row in gone]
    tables = [stored[name] for name in view.reads]
    before = {t.global_id: t.batch(t.rows, BEFORE) for t in tables}
    tick = {changed.global_id: changed.batch(come, AFTER, gone)}
    left = [*changed.rows[part:], *come]
    after = {t.global_id: t.batch(left if t is changed else t.rows, AFTER) for t in tables}
    end = Timestamp(AFTER + 1)
    with tempfile.TemporaryDirectory() as directory:
        evaluator = Evaluator(Path(directory))
        followed, anew = GlobalId("followed"), GlobalId("anew")
        evaluator.create(followed, plan, index_key=None, as_of=BEFORE)
        evaluator.tick(followed, before, BEFORE, Timestamp(BEFORE + 1))
        ticked = milliseconds(lambda: evaluator.tick(followed, tick, Timestamp(BEFORE + 1), end))
        evaluator.create(anew, plan, index_key=None, as_of=AFTER)
        built = milliseconds(lambda: evaluator.tick(anew, after, AFTER, end))
        evaluator.close()
    return ticked, built


def _moved(value: Datum) -> Datum:
    assert isinstance(value, int), "ids are numbers"
    return value + MOVED


def _stored(name: str, model: Model, database: Database) -> Stored:
    (item,) = [item for item in database.snapshot.items.values() if item.name == name]
    found = model.connection.execute(f"SELECT * FROM {name}").fetchall()
    rows = [tuple([_datum(value) for value in row]) for row in found]
    return Stored(item.global_id, item.desc.types, rows)


def _datum(value: object) -> Datum:
    """As rows hold it: a date is its day."""
    if isinstance(value, datetime.date):
        return (value - EPOCH).days
    return value  # type: ignore[return-value]
