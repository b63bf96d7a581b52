"""The evaluator against the interpreter: random plans, random histories, random tick borders."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.relation import Relation
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import optimize
from evertide.spark.evaluate import Evaluator
from tests.expr.trees import Trees
from tests.spark.histories import borders, expected_at, output_at, random_history, run
from tests.support.seeds import seeds

FIRST, LAST = 10, 22


@pytest.fixture(autouse=True)
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns always, from four rows on, or hardly ever, depending on the seed."""
    params = request.node.callspec.params
    number = params["seed"] if "seed" in params else params["seeds"][0] // 100
    monkeypatch.setattr("evertide.spark.operators.delta.WIDE_ROWS", (1, 4, 48)[number % 3])


def check(seed: int, directory: Path, *, depth: int, spill_records: int) -> None:
    rng = Random(seed)
    relation = Trees(rng).relation(depth)
    lowered = optimize(relation) if rng.random() < 0.7 else lower_outer_join(relation)
    check_relation(lowered, rng, directory, spill_records)


def check_relation(relation: Relation, rng: Random, directory: Path, spill_records: int) -> None:
    plan = delta_plan(relation)
    history = random_history(rng, FIRST, LAST)
    evaluator = Evaluator(directory, spill_records=spill_records)
    output = run(evaluator, plan, history, borders(rng, FIRST, LAST))
    evaluator.close()
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"


@pytest.mark.parametrize("seed", range(250))
def test_in_memory(tmp_path: Path, seed: int) -> None:
    check(seed, tmp_path, depth=1 + seed % 4, spill_records=1_000_000)


@pytest.mark.parametrize("seed", range(1_000, 1_150))
def test_with_runs_on_disk(tmp_path: Path, seed: int) -> None:
    """Every few entries are spilled, so that most of what is looked up is in merged runs."""
    check(seed, tmp_path, depth=1 + seed % 3, spill_records=4)


# One of them takes as long as all others.
@seeds([*range(4_000, 4_063), *range(4_064, 4_080)], deep=[4_063], fresh=100)
def test_subqueries_that_see_the_row_around(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    relation = Trees(rng, fallible=False, correlated=True).subquery(1 + seed % 2)
    check_relation(optimize(relation), rng, tmp_path, spill_records=7)


def keep_all_groups_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("group_cache", "members"):
        monkeypatch.setattr(f"evertide.spark.operators.grouping.{module}.LEAST_ROWS", 1)


@pytest.mark.parametrize("seed", range(3_000, 3_100))
def test_with_groups_kept_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """As large groups are: sorted once, and changed from tick to tick."""
    keep_all_groups_ready(monkeypatch)
    if seed % 2:
        monkeypatch.setattr("evertide.spark.operators.grouping.group_cache.MOST_ROWS", 6)
    check(seed, tmp_path, depth=1 + seed % 3, spill_records=1_000_000)


@pytest.mark.parametrize("seed", range(2_000, 2_060))
def test_whatever_the_borders_of_ticks(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    relation = optimize(Trees(rng).relation(3))
    history = random_history(rng, FIRST, LAST)
    outputs = []
    for attempt in range(3):
        evaluator = Evaluator(tmp_path / str(attempt), spill_records=7)
        updates = run(evaluator, delta_plan(relation), history, borders(rng, FIRST, LAST))
        evaluator.close()
        outputs.append(sorted((repr(u.row), u.ts, u.diff, str(u.error)) for u in updates))
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.slow
@seeds(deep=range(10_000, 16_000), fresh=1_000, block=100)
def test_many_more_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: Sequence[int]
) -> None:
    if seeds[0] // 100 % 2:
        keep_all_groups_ready(monkeypatch)
    for seed in seeds:
        spill_records = 3 if seed % 2 else 1_000_000
        check(seed, tmp_path / str(seed), depth=1 + seed % 4, spill_records=spill_records)
