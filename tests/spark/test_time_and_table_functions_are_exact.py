"""Filters by time and table functions against the interpreter, which knows the time it runs at."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan, FlatMapNode
from evertide.dataflow.plan_codec import decode_plan
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Relation
from evertide.expr.temporal import has_temporal
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import optimize
from evertide.spark.evaluate import Evaluator
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.trees import Trees
from tests.spark.histories import (
    DATAFLOW,
    History,
    borders,
    expected_at,
    inputs_between,
    output_at,
    random_history,
    run,
)
from tests.support.seeds import seeds

FIRST, LAST = 10, 26
TIMES = range(FIRST - 2, LAST + 2)


@pytest.fixture(autouse=True)
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns always, from four rows on, or hardly ever, depending on the seed."""
    params = request.node.callspec.params
    number = params["seed"] if "seed" in params else params["block"]
    monkeypatch.setattr("evertide.spark.operators.delta.WIDE_ROWS", (1, 4, 48)[number % 3])


def random_relation(rng: Random, depth: int) -> Relation:
    """With a table function or a filter by time in it."""
    while True:
        relation = Trees(rng, flat=True, times=TIMES).relation(depth)
        lowered = optimize(relation) if rng.random() < 0.7 else lower_outer_join(relation)
        nodes = delta_plan(lowered).nodes
        if has_temporal(lowered) or any(isinstance(node, FlatMapNode) for node in nodes):
            return lowered


def early_history(rng: Random) -> History:
    """Changes end before time does: later only time makes rows come and go."""
    return random_history(rng, FIRST, (FIRST + LAST) // 2)


def check(seed: int, directory: Path, *, depth: int) -> None:
    rng = Random(seed)
    relation, history = random_relation(rng, depth), early_history(rng)
    evaluator = Evaluator(directory, spill_records=4 if seed % 2 else 1_000_000)
    output = run(evaluator, delta_plan(relation), history, borders(rng, FIRST, LAST))
    evaluator.close()
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"


@pytest.mark.parametrize("seed", range(250))
def test_at_every_timestamp(tmp_path: Path, seed: int) -> None:
    check(seed, tmp_path, depth=1 + seed % 4)


@pytest.mark.parametrize("seed", range(500, 540))
def test_subqueries_that_see_the_row_around(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    trees = Trees(rng, fallible=False, correlated=True, flat=True, times=TIMES)
    relation = optimize(trees.subquery(1 + seed % 2))
    history = early_history(rng)
    evaluator = Evaluator(tmp_path)
    output = run(evaluator, delta_plan(relation), history, borders(rng, FIRST, LAST))
    evaluator.close()
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"


@pytest.mark.parametrize("seed", range(1_000, 1_060))
def test_whatever_the_borders_of_ticks(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    relation, history = random_relation(rng, 3), early_history(rng)
    outputs = []
    for attempt in range(3):
        evaluator = Evaluator(tmp_path / str(attempt), spill_records=7)
        updates = run(evaluator, delta_plan(relation), history, borders(rng, FIRST, LAST))
        evaluator.close()
        outputs.append(sorted((repr(u.row), u.ts, u.diff, str(u.error)) for u in updates))
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize("seed", range(2_000, 2_060))
def test_ticks_only_when_something_is_due(tmp_path: Path, seed: int) -> None:
    """Method: as a replica does it, time passes without a tick where no input changed and the
    evaluator said that nothing would come."""
    rng = Random(seed)
    relation, history = random_relation(rng, 3), early_history(rng)
    evaluator = Evaluator(tmp_path, spill_records=7)
    evaluator.create(DATAFLOW, delta_plan(relation), index_key=None, as_of=Timestamp(FIRST))
    output: list[Update] = []
    for lower, upper in borders(rng, FIRST, LAST):
        inputs = inputs_between(history, lower, upper)
        due = evaluator.due.get(DATAFLOW)
        if lower == FIRST or any(inputs.values()) or (due is not None and due < upper):
            output += evaluator.tick(DATAFLOW, inputs, lower, upper)
    evaluator.close()
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"


@pytest.mark.parametrize("seed", range(3_000, 3_060))
def test_goes_on_from_a_snapshot_and_from_a_later_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Method: at some border one evaluator is replaced by one restored from its snapshot, and
    another starts there from the inputs' contents; from then on all hold the same."""
    monkeypatch.setattr("evertide.spark.evaluate.decode_plan", decode_with_samples)
    rng = Random(seed)
    relation, history = random_relation(rng, 1 + seed % 3), early_history(rng)
    plan, types = delta_plan(relation), relation.types
    middle, end = Timestamp(rng.randrange(FIRST + 1, LAST)), Timestamp(LAST + 1)
    evaluator = Evaluator(tmp_path / "first", spill_records=7)
    output = run(evaluator, plan, history, [(Timestamp(FIRST), middle)])
    snapshot = evaluator.snapshot(tmp_path / "snapshot")
    ahead: list[Update] = []
    for lower in map(Timestamp, range(middle, end)):
        upper = step_forward(lower)
        inputs = inputs_between(history, lower, upper)
        ahead += evaluator.tick(DATAFLOW, inputs, lower, upper)
    evaluator.close()
    snapshot.write()
    restored = Evaluator(tmp_path / "second", spill_records=7)
    assert restored.restore(tmp_path / "snapshot") == {DATAFLOW: middle}
    again = restored.tick(DATAFLOW, inputs_between(history, middle, end), middle, end)
    restored.close()
    late = Evaluator(tmp_path / "third", spill_records=7)
    raised = {
        global_id: [u._replace(ts=Timestamp(max(u.ts, middle))) for u in updates]
        for global_id, updates in history.items()
    }
    ticks = [(middle, step_forward(middle)), (step_forward(middle), end)]
    started = run(late, plan, raised, ticks)
    late.close()
    for ts in range(middle, LAST + 1):
        expected = expected_at(relation, history, ts)
        assert output_at([*output, *ahead], types, ts) == expected, f"at {ts}"
        assert output_at([*output, *again], types, ts) == expected, f"restored, at {ts}"
        assert output_at(started, types, ts) == expected, f"started late, at {ts}"


@pytest.mark.parametrize("seed", range(4_000, 4_030))
def test_a_tick_that_breaks_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every tick is tried with its last step broken, then again whole."""
    rng = Random(seed)
    relation, history = random_relation(rng, 3), early_history(rng)
    evaluator = Evaluator(tmp_path)
    evaluator.create(DATAFLOW, delta_plan(relation), index_key=None, as_of=Timestamp(FIRST))
    output: list[Update] = []
    for lower, upper in borders(rng, FIRST, LAST):
        inputs = inputs_between(history, lower, upper)
        with monkeypatch.context() as patched:
            patched.setattr("evertide.spark.running_plan.consolidated", broken)
            try:
                assert evaluator.tick(DATAFLOW, inputs, lower, upper) == []
                continue  # there was nothing to do, so nothing broke
            except Breaking:
                pass
        output += evaluator.tick(DATAFLOW, inputs, lower, upper)
    evaluator.close()
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"


class Breaking(Exception):
    """Our bug, planted."""


def broken(*_arguments: object) -> list[Update]:
    raise Breaking


def decode_with_samples(encoded: bytes) -> DeltaPlan:
    return decode_plan(encoded, lambda name: sample.BY_SIGNATURE.get(name) or by_signature(name))


@pytest.mark.slow
@seeds(deep=range(10_000, 12_000), fresh=500, block=100)
def test_many_more_histories(tmp_path: Path, seeds: Sequence[int]) -> None:
    for seed in seeds:
        check(seed, tmp_path / str(seed), depth=1 + seed % 4)
