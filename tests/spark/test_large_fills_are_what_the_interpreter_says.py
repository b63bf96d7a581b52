"""Views that are filled by large pieces, and then change: the rows are those of the interpreter."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.read_columns import read_columns
from evertide.expr.relation import Types
from evertide.expr.transform.passes import optimize_at_leisure
from evertide.persist.coding.batch import UpdateBatch, from_payload, to_batch
from evertide.spark.arrangements import finding
from evertide.spark.building import filling
from evertide.spark.building.encoded_inputs import encoded_inputs
from evertide.spark.channel import input_descs
from evertide.spark.engine import DriverEngine, Inputs
from evertide.spark.evaluate import Evaluator
from evertide.spark.operators.grouping.group_values import DistinctValues
from evertide.spark.tables import desc_of
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.histories import DATAFLOW, INPUT_ERROR, History, expected_at, output_at
from tests.sql.database import Database, new_database

START, LAST = 100, 103
VIEWS = (
    "SELECT DISTINCT ON (k) k, id, v FROM a ORDER BY k, v DESC, id",
    "SELECT DISTINCT ON (f) f, id FROM a ORDER BY f, v NULLS FIRST",
    "SELECT k, id, v FROM (SELECT k, id, v FROM a ORDER BY v LIMIT 40 OFFSET 3) q",
    "SELECT b.w AS w, count(DISTINCT a.v) AS n, sum(DISTINCT a.v) AS s, count(*) AS c"
    " FROM a JOIN b ON a.k = b.k GROUP BY b.w",
    "SELECT k, count(DISTINCT w) AS n, min(v) AS low, max(v) AS high FROM a GROUP BY k",
    "SELECT a.id AS id, b.id AS other, b.w AS w FROM a LEFT JOIN b ON a.k = b.k AND b.v = 1",
    "SELECT a.w AS w, b.w AS other, count(*) AS n FROM a FULL JOIN b ON a.k = b.k AND a.v = b.v"
    " GROUP BY a.w, b.w",
    "SELECT DISTINCT w, f FROM a",
    "SELECT k, v FROM a EXCEPT ALL SELECT k, v FROM b",
    "SELECT a.v AS v, count(*) AS n FROM a JOIN b ON a.k = b.k JOIN a c ON b.id = c.id"
    " WHERE c.w = 'a' GROUP BY a.v",
    "SELECT k + 1 AS k, v FROM a WHERE w = 'b' UNION ALL SELECT id, 10 / nullif(v, 3) FROM b",
)


def random_rows(rng: Random, count: int) -> list[Row]:
    """Few different values, so that keys meet, rows come twice and orders have ties."""
    return [
        (
            rng.randrange(count // 2),
            rng.choice([None, *range(count // 8 + 1)]),
            rng.choice([None, 0, 1, 2, 3]),
            rng.choice([None, "", "a", "b", "word"]),
            rng.choice([None, 0.0, -0.0, 1.5]),
        )
        for _ in range(count)
    ]


def random_history(rng: Random, names: Sequence[GlobalId]) -> History:
    history: History = {}
    for global_id in names:
        rows = random_rows(rng, 900)
        updates = [Update(row, Timestamp(START), 1) for row in rows]
        updates += [Update(row, Timestamp(START), 2) for row in rng.sample(rows, 30)]
        for ts in range(START + 1, LAST + 1):
            size = rng.choice([1, 40, 350])
            gone = rng.sample(rows, min(size, len(rows)))
            come = random_rows(rng, max(size, 8))
            updates += [Update(row, Timestamp(ts), -1) for row in gone]
            updates += [Update(row, Timestamp(ts), 1) for row in come]
            left = list(rows)
            for row in gone:
                left.remove(row)
            rows = left + come
        history[global_id] = updates
    if rng.random() < 0.3:
        updates = history[rng.choice(names)]
        updates.append(Update((), Timestamp(START), 1, INPUT_ERROR))
        updates.append(Update((), Timestamp(LAST), -1, INPUT_ERROR))
    return history


def database() -> tuple[Database, list[tuple[GlobalId, Types]]]:
    made = new_database()
    for name in "ab":
        made.run(f"CREATE TABLE {name} (id bigint, k bigint, v int, w text, f double precision)")
    items = [item for item in made.snapshot.items.values() if item.name in ("a", "b")]
    return made, [(item.global_id, item.desc.types) for item in items]


def columnar(types: Types, updates: Sequence[Update]) -> UpdateBatch:
    desc = desc_of(types)
    return UpdateBatch(desc, table=to_batch(desc, updates).table)


class Encoding(DriverEngine):
    """Is given what a resident task is: bytes, without the columns that nobody looks at."""

    def __init__(self, evaluator: Evaluator, plan: DeltaPlan) -> None:
        super().__init__(evaluator)
        self._plan = plan

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        assert dataflow_id == DATAFLOW
        descs = input_descs(self._plan)
        encoded = encoded_inputs(descs, read_columns(self._plan), inputs)
        return {
            g: from_payload(descs[g], to_batch(descs[g], u).payload) for g, u in encoded.items()
        }


async def check(seed: int, directory: Path) -> None:
    made, tables = database()
    rng = Random(seed)
    planned = made.plan(f"SELECT * FROM ({VIEWS[seed % len(VIEWS)]}) q")
    assert isinstance(planned, SelectPlan)
    relation = optimize_at_leisure(planned.relation)
    history = random_history(rng, [global_id for global_id, _ in tables])
    evaluator = Evaluator(directory, spill_records=500)
    plan, start = delta_plan(relation), Timestamp(START)
    engine = Encoding(evaluator, plan)
    read = [(g, types) for g, types in tables if g in input_descs(plan)]

    def given(ts: int) -> dict[GlobalId, UpdateBatch]:
        return {g: columnar(types, [u for u in history[g] if u.ts == ts]) for g, types in read}

    output = list(await filling.fill(engine, DATAFLOW, plan, given(START), start, index_key=None))
    for ts in range(START + 1, LAST + 1):
        lower = Timestamp(ts)
        output += await engine.tick(DATAFLOW, given(ts), lower, Timestamp(ts + 1))
    for ts in range(START, LAST + 1):
        assert output_at(output, relation.types, ts) == expected_at(relation, history, ts)
    evaluator.close()


@pytest.mark.parametrize("seed", range(4 * len(VIEWS)))
async def test_every_view_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", (300, 700, 10**9)[seed // len(VIEWS) % 3])
    await check(seed, tmp_path)


async def test_values_counted_in_another_order_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", 300)
    change = DistinctValues.change
    monkeypatch.setattr(DistinctValues, "change", lambda self, *given: change(self, *given)[::-1])
    with pytest.raises(AssertionError):
        await check(4, tmp_path)


async def test_columns_that_are_missing_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", 300)
    monkeypatch.setitem(
        globals(), "read_columns", lambda plan: dict.fromkeys(input_descs(plan), frozenset({0}))
    )
    with pytest.raises(AssertionError):
        await check(10, tmp_path)


async def test_hashes_that_are_taken_for_sorted_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "PIECE_ROWS", 300)
    monkeypatch.setattr("evertide.spark.arrangements.column_layer.is_ascending", lambda _: True)
    monkeypatch.setattr(finding, "is_ascending", lambda _: True)
    with pytest.raises((AssertionError, ValueError)):
        await check(5, tmp_path)
