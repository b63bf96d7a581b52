"""Contents that are taken in by pieces give the state and the output that they give at once."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.expr.interpret import Collection
from evertide.expr.relation import Relation
from evertide.expr.transform.passes import optimize
from evertide.persist.coding.updates import consolidate_columns
from evertide.spark.building import filling
from evertide.spark.channel import input_descs
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from tests.expr.trees import Trees
from tests.spark.histories import (
    DATAFLOW,
    History,
    borders,
    contents,
    expected_at,
    inputs_between,
    output_at,
    random_history,
)
from tests.spark.test_arrangements_are_shared import T0, T1, T2, Running, joined, table

FIRST, START, LAST = 100, 110, 116


def held_at_start(history: History, plan: DeltaPlan) -> History:
    """What the plan's inputs hold then, as if it had come then."""
    held: History = {}
    for global_id, desc in input_descs(plan).items():
        early = inputs_between(history, 0, START + 1)[global_id]
        held[global_id] = consolidate_columns(desc.types, early, Timestamp(START)).updates()
    return held


@pytest.mark.parametrize("seed", range(120))
async def test_state_and_output_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("evertide.spark.operators.delta.WIDE_ROWS", (1, 4, 48)[seed % 3])
    monkeypatch.setattr(filling, "PIECE_ROWS", 1 + seed % 7)
    rng = Random(seed)
    relation = optimize(Trees(rng).relation(1 + seed % 3))
    plan = delta_plan(relation)
    history = random_history(rng, FIRST, LAST)
    engine = DriverEngine(Evaluator(tmp_path, spill_records=6))
    key = (0,) if relation.types else ()
    inputs = held_at_start(history, plan)
    output = list(
        await filling.fill(engine, DATAFLOW, plan, inputs, Timestamp(START), index_key=key)
    )
    assert all(u.ts == START for u in output)
    assert len(set(output)) == len(output), "the output is consolidated"
    for lower, upper in borders(rng, START + 1, LAST):
        changes = inputs_between(history, lower, upper)
        output += await engine.tick(DATAFLOW, changes, lower, upper)
    for ts in range(START, LAST + 1):
        expected = expected_at(relation, history, ts)
        assert output_at(output, relation.types, ts) == expected
        peeked = await engine.peek(DATAFLOW, None, Timestamp(ts))
        held = Collection(list(peeked.rows), list(peeked.errors))
        assert contents(held, relation.types) == expected


@pytest.mark.parametrize("most", [1, 3, 5, 1_000])
def test_no_piece_is_too_large_and_nothing_is_lost(most: int) -> None:
    plan = delta_plan(optimize(Trees(Random(3)).relation(3)))
    descs = input_descs(plan)
    inputs = held_at_start(random_history(Random(3), FIRST, LAST), plan)
    parts = filling.cut(inputs, descs, most)
    assert max(sum(map(len, part.values())) for part in parts) <= most
    for global_id, updates in inputs.items():
        found = [u for part in parts for u in part.get(global_id, ())]
        assert sorted(map(repr, found)) == sorted(map(repr, updates))


@pytest.mark.parametrize("seed", range(12))
async def test_nothing_is_shared_while_it_is_only_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Beside indexes, which know the same rows at the times that pieces pretend to be of, and
    beside each other."""
    monkeypatch.setattr(filling, "PIECE_ROWS", 4)
    history = random_history(Random(seed), FIRST, LAST, 6)
    evaluator = Evaluator(tmp_path)
    engine = DriverEngine(evaluator)
    for number, global_id in enumerate((T0, T2) if seed % 2 else ()):
        index = Running(evaluator, GlobalId(f"u{number + 50}"), table(global_id), FIRST, (0,))
        index.start()
        index.tick(history, LAST + 1)

    async def filled(number: int, relation: Relation) -> None:
        dataflow_id, plan = GlobalId(f"u{number}"), delta_plan(relation)
        inputs, start = held_at_start(history, plan), Timestamp(START)
        output = list(await filling.fill(engine, dataflow_id, plan, inputs, start, index_key=None))
        for ts in range(START + 1, LAST + 1):
            lower, upper = Timestamp(ts), Timestamp(ts + 1)
            changes = inputs_between(history, lower, upper)
            output += await engine.tick(dataflow_id, changes, lower, upper)
        for ts in range(START, LAST + 1):
            expected = expected_at(relation, history, ts)
            assert output_at(output, relation.types, ts) == expected

    views = [joined(T2, T2), joined(T0, T2), joined(T2, T1)]
    await asyncio.gather(*(filled(number, view) for number, view in enumerate(views)))
    evaluator.close()
