"""Goal: while a piece of a view's inputs is ticked, the next one is made ready; and what was made
ready for a tick that failed is let go.

Method: an engine whose ticks wait until the next piece is there.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.transform.passes import optimize_at_leisure
from evertide.spark.building import filling
from evertide.spark.channel import input_descs
from evertide.spark.engine import DriverEngine, EngineFailing, Inputs
from evertide.spark.evaluate import Evaluator
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.histories import DATAFLOW
from tests.sql.database import new_database

START = Timestamp(100)
PIECES = 4
PIECE_ROWS = 50
SECONDS = 60


class Waiting(DriverEngine):
    """Its ticks end once the next piece has been made ready, but for the last."""

    def __init__(self, evaluator: Evaluator, *, failing: bool = False) -> None:
        super().__init__(evaluator)
        self._failing = failing
        self._ready = asyncio.Condition()
        self.prepared_pieces = 0
        self.ticked = 0

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        async with self._ready:
            self.prepared_pieces += 1
            self._ready.notify_all()
        return await super().prepared(dataflow_id, inputs)

    async def tick(
        self, dataflow_id: GlobalId, inputs: Inputs, lower: Timestamp, upper: Timestamp
    ) -> Sequence[Update]:
        self.ticked += 1
        awaited = min(self.ticked + 1, PIECES)
        async with self._ready:
            await self._ready.wait_for(lambda: self.prepared_pieces >= awaited)
        assert self.prepared_pieces == awaited, "one piece ahead, and no more of them in memory"
        if self._failing:
            raise EngineFailing("no room")
        return await super().tick(dataflow_id, inputs, lower, upper)


async def filled(engine: DriverEngine) -> tuple[Sequence[Update], int]:
    made = new_database()
    made.run("CREATE TABLE t (a bigint, b bigint)")
    planned = made.plan("SELECT * FROM (SELECT b, count(*) AS n FROM t GROUP BY b) q")
    assert isinstance(planned, SelectPlan)
    plan = delta_plan(optimize_at_leisure(planned.relation))
    (table,) = input_descs(plan)
    rows = [Update((n, n % 3), START, 1) for n in range(PIECES * PIECE_ROWS)]
    async with asyncio.timeout(SECONDS):
        output = await filling.fill(engine, DATAFLOW, plan, {table: rows}, START, index_key=None)
    return output, len(rows)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", PIECE_ROWS)


async def test_the_next_piece_is_ready_when_a_tick_ends(tmp_path: Path) -> None:
    engine = Waiting(Evaluator(tmp_path))
    output, rows = await filled(engine)
    assert engine.ticked == engine.prepared_pieces == PIECES
    assert sorted(str(update.row[0]) for update in output) == ["0", "1", "2"]
    assert sum(int(str(update.row[1])) * update.diff for update in output) == rows


async def test_nothing_is_left_under_way_by_a_tick_that_fails(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    with pytest.raises(EngineFailing):
        await filled(Waiting(Evaluator(tmp_path), failing=True))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
