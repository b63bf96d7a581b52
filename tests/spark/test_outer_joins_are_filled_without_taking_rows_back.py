"""Goal: a view that is filled piece by piece does not show rows of an outer join's kept side before
what they are joined with: it would have to take most of them back.

Method: small pieces; whatever a piece takes back is counted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.told_at_once import told_at_once
from evertide.expr.relation import Relation
from evertide.expr.transform.passes import optimize_at_leisure
from evertide.spark.building import filling
from evertide.spark.channel import input_descs
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.histories import DATAFLOW, expected_at, output_at
from tests.sql.database import Database, new_database

START = Timestamp(100)


class Counting(DriverEngine):
    """Counts what ticks take back."""

    taken_back = 0

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Mapping[GlobalId, Sequence[Update]],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Sequence[Update]:
        output = await super().tick(dataflow_id, inputs, lower, upper)
        self.taken_back += sum(update.diff < 0 for update in output)
        return output


def planned(query: str) -> tuple[Relation, DeltaPlan, dict[str, GlobalId]]:
    made: Database = new_database()
    for name in ("few", "many", "more"):
        made.run(f"CREATE TABLE {name} (id bigint, k bigint)")
    plan = made.plan(query)
    assert isinstance(plan, SelectPlan)
    relation = optimize_at_leisure(plan.relation)
    names = {item.name: item.global_id for item in made.snapshot.items.values()}
    return relation, delta_plan(relation), names


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT f.id, m.id FROM few f LEFT JOIN many m ON f.id = m.k", {"few"}),
        ("SELECT f.id, m.id FROM few f RIGHT JOIN many m ON f.id = m.k", {"many"}),
        ("SELECT f.id, m.id FROM few f FULL JOIN many m ON f.id = m.k", {"few", "many"}),
        ("SELECT f.k, count(m.id) FROM few f LEFT JOIN many m ON f.id = m.k GROUP BY 1", {"few"}),
        ("SELECT id FROM few EXCEPT ALL SELECT k FROM many", {"few"}),
        ("SELECT f.id, m.id FROM few f JOIN many m ON f.id = m.k", set()),
        ("SELECT id FROM few UNION ALL SELECT id FROM many", set()),
    ],
)
def test_kept_sides_are_known(query: str, expected: set[str]) -> None:
    _, plan, names = planned(query)
    assert told_at_once(plan) == {names[name] for name in expected}


def rows(draw: Random, count: int, keys: int) -> list[Update]:
    return [Update((number, draw.randrange(keys)), START, 1) for number in range(count)]


@pytest.mark.parametrize("aware", [True, False])
async def test_nothing_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aware: bool
) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", 50)
    if not aware:
        monkeypatch.setattr(filling, "told_at_once", lambda _: set())
    query = "SELECT f.id AS id, m.id AS other FROM few f LEFT JOIN many m ON f.id = m.k"
    relation, plan, names = planned(query)
    draw = Random(5)
    history = {names["few"]: rows(draw, 90, 9), names["many"]: rows(draw, 400, 120)}
    assert set(history) == set(input_descs(plan))
    evaluator = Evaluator(tmp_path)
    engine = Counting(evaluator)
    output = await filling.fill(engine, DATAFLOW, plan, history, START, index_key=None)
    assert output_at(output, relation.types, START) == expected_at(relation, history, START)
    assert (engine.taken_back == 0) == aware
    evaluator.close()
