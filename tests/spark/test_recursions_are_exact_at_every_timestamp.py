"""Recursions in dataflows against the interpreter: random ones, random histories, random ticks."""

from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan, RecomputeNode
from evertide.dataflow.plan_codec import decode_plan, encode_plan
from evertide.expr.budget import Budget
from evertide.expr.group_rows import Counted, consolidated
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.recursion import split_recursion
from evertide.expr.relation import (
    Constant,
    Distinct,
    Get,
    Join,
    LetRec,
    LocalGet,
    Map,
    Project,
    Relation,
    Union,
)
from evertide.expr.transform.passes import optimize
from evertide.spark.evaluate import Evaluator
from evertide.spark.operators.solver import Solver
from evertide.spark.recursion import solve
from evertide.spark.running_plan import make_plan
from evertide.vocab.errors import ProgramLimitExceeded, decode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.recursions import random_recursion
from tests.expr.sample import call, col, lit
from tests.expr.trees import Trees, random_contents
from tests.spark.histories import DATAFLOW, borders, expected_at, output_at, random_history, run

FIRST, LAST = 10, 16
EDGES = GlobalId("edges")
PAIR = (INT8, INT8)
SOLVER = "evertide.spark.operators.solver"


@pytest.fixture(autouse=True)
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns always or hardly ever, by plans always or where there are many rows."""
    seed = request.node.callspec.params.get("seed", 0) if hasattr(request.node, "callspec") else 0
    monkeypatch.setattr("evertide.spark.operators.delta.WIDE_ROWS", (1, 4, 48)[seed % 3])
    monkeypatch.setattr(f"{SOLVER}.FEW_ROWS", (-1, 5_000)[seed % 2])


def closure() -> Relation:
    edges, ways = Get(EDGES, PAIR), LocalGet("ways#", PAIR)
    longer = Project(Join((ways, edges), ((1, 2),)), (0, 3))
    return LetRec(("ways#",), (Distinct(Union((edges, longer))),), ways)


def check(relation: Relation, rng: Random, directory: Path, spill_records: int) -> DeltaPlan:
    plan = decode_plan(encode_plan(delta_plan(relation)), sample.by_signature)
    history = random_history(rng, FIRST, LAST)
    evaluator = Evaluator(directory, spill_records=spill_records)
    output = run(evaluator, plan, history, borders(rng, FIRST, LAST))
    evaluator.close()
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"
    return plan


@pytest.mark.parametrize("seed", range(120))
def test_in_dataflows(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    trees = Trees(rng, fallible=seed % 3 == 0)
    relation = optimize(random_recursion(rng, trees, 1 + seed % 3))
    plan = check(relation, rng, tmp_path, spill_records=(4, 1_000_000)[seed % 2])
    assert plan.recomputes is any(isinstance(node, RecomputeNode) for node in plan.nodes)


@pytest.mark.parametrize("seed", range(1_000, 1_150))
def test_solved_by_plans_it_is_what_it_is_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{SOLVER}.FEW_ROWS", -1)
    rng = Random(seed)
    relation = optimize(random_recursion(rng, Trees(rng, fallible=seed % 2 == 0), 1 + seed % 3))
    contents = random_contents(rng)
    anew = evaluate(relation, contents.__getitem__)
    planned = evaluate(relation, contents.__getitem__, None, solve)
    assert _shown(planned, relation) == _shown(anew, relation)
    assert sorted(planned.errors) == sorted(anew.errors)


def _shown(collection: Collection, relation: Relation) -> dict[str, int]:
    return {repr(row): n for row, n in consolidated(collection.rows, relation.types)}


def test_what_it_goes_round_over_is_followed(tmp_path: Path) -> None:
    """A retracted edge takes its ways along, at its own timestamp, within a longer tick too."""
    plan = delta_plan(closure())
    evaluator = Evaluator(tmp_path)
    edges = [Update((i, i + 1), Timestamp(FIRST), 1) for i in range(30)]
    edges += [Update((14, 15), Timestamp(12), -1), Update((14, 15), Timestamp(14), 1)]
    output = run(evaluator, plan, {EDGES: edges}, [(Timestamp(FIRST), Timestamp(20))])
    evaluator.close()
    whole, cut = 30 * 31 // 2, 14 * 15 // 2 + 15 * 16 // 2
    counts = {ts: sum(u.diff for u in output if u.ts <= ts) for ts in (10, 11, 12, 13, 14)}
    assert counts == {10: whole, 11: whole, 12: cut, 13: cut, 14: whole}


def test_one_that_takes_too_much_is_an_error_that_goes_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evertide.spark.operators.recompute.Budget", lambda: Budget(1_000))
    plan = delta_plan(closure())
    evaluator = Evaluator(tmp_path)
    many = [Update((i, i + 1), Timestamp(11), 1) for i in range(60)]
    gone = [Update((i, i + 1), Timestamp(12), -1) for i in range(1, 60)]
    ticks = [(Timestamp(FIRST), Timestamp(12)), (Timestamp(12), Timestamp(13))]
    first, second = (
        output_at(run(evaluator, plan, {EDGES: [*many, *gone]}, ticks), PAIR, ts) for ts in (11, 12)
    )
    evaluator.close()
    (error,) = first[1]
    assert "more than 1000 intermediate rows" in decode_error(error).message
    assert first[0] == {}
    assert second == ({"(0, 1)": 1}, {})


def test_the_budget_bounds_what_plans_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{SOLVER}.FEW_ROWS", -1)
    relation = closure()
    assert isinstance(relation, LetRec)
    solver = Solver(split_recursion(relation), make_plan)
    edges: list[Counted] = [((i, i + 1), 1) for i in range(60)]
    with pytest.raises(ProgramLimitExceeded):
        solver.solve([edges], Budget(1_000))


def test_a_recursion_with_an_error_in_it_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is there once in its binding; counted, it would change with every iteration."""
    monkeypatch.setattr(f"{SOLVER}.FEW_ROWS", -1)
    held = LocalGet("n#", (INT8,))
    divided = Project(Map(held, (call(sample.DIVIDE, lit(6), col(0)),)), (1,))
    first = Constant((((0,), 1), ((3,), 1)), (INT8,))
    relation = LetRec(("n#",), (Distinct(Union((first, divided))),), held)
    found = evaluate(relation, _nothing, None, solve)
    assert [(decode_error(e).message, n) for e, n in found.errors] == [("division by zero", 1)]
    assert sorted(row for row, _ in found.rows) == [(0,), (2,), (3,)]


def _nothing(global_id: GlobalId) -> Collection:
    raise AssertionError(f"{global_id} is not read")


def test_a_failed_tick_leaves_the_state_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = delta_plan(closure())
    evaluator = Evaluator(tmp_path)
    evaluator.create(DATAFLOW, plan, index_key=None, as_of=Timestamp(1))
    one = {EDGES: [Update((1, 2), Timestamp(1), 1)]}
    assert len(evaluator.tick(DATAFLOW, one, Timestamp(1), Timestamp(2))) == 1
    two = {EDGES: [Update((2, 3), Timestamp(2), 1)]}
    monkeypatch.setattr(f"{SOLVER}.FEW_ROWS", 5_000)  # no plan within the plan

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    # While it is computed, and when all is computed but nothing kept yet.
    for place in (f"{SOLVER}.Solver.solve", "evertide.spark.running_plan.consolidated"):
        with monkeypatch.context() as broken:
            broken.setattr(place, refuse)
            with pytest.raises(OSError, match="no space left"):
                evaluator.tick(DATAFLOW, two, Timestamp(2), Timestamp(3))
    found = evaluator.tick(DATAFLOW, two, Timestamp(2), Timestamp(3))
    assert {update.row for update in found} == {(2, 3), (1, 3)}
    evaluator.close()
