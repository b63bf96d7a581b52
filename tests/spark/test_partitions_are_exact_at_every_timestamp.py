"""Goal: state spread over several tasks gives what one evaluator gives, at every timestamp.

Method: random plans and histories, as for the evaluator itself, through one, two and three tasks
that answer in this process; the interpreter says what is right. Then bugs are planted in how rows
find their task and in the order of stages, and must be found.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.plan_codec import decode_plan
from evertide.dataflow.stages import LookupNode, StagedPlan, _Cutter, cut
from evertide.expr.columnar.column import Ints
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Relation
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import optimize
from evertide.spark.operators.arrange import ArrangeOperator
from evertide.spark.operators.delta import Delta
from evertide.spark.partitions.connection import ResidentFault
from evertide.spark.partitions.engine import PartitionedEngine
from evertide.spark.partitions.running import PartitionPlan
from evertide.spark.partitions.share import FIRST as FIRST_TASK
from evertide.spark.partitions.share import Router, Share
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.random_windows import windowed
from tests.expr.recursions import random_recursion
from tests.expr.trees import Trees
from tests.spark.histories import (
    DATAFLOW,
    History,
    borders,
    expected_at,
    inputs_between,
    output_at,
    random_history,
)
from tests.spark.partitioned import partitioned, run_partitioned
from tests.support.seeds import seeds

FIRST, LAST = 10, 20
TIMES = range(FIRST - 2, LAST + 2)
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns always, from four rows on, or hardly ever, depending on the seed."""
    seed = request.node.callspec.params["seed"] if "seed" in request.fixturenames else 1
    monkeypatch.setattr("evertide.spark.operators.delta.WIDE_ROWS", (1, 4, 48)[seed % 3])


@pytest.fixture(autouse=True)
def known_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks know the functions that random trees use."""
    monkeypatch.setattr(
        "evertide.spark.resident_task.decode_plan",
        lambda encoded: decode_plan(
            encoded, lambda name: sample.BY_SIGNATURE.get(name) or by_signature(name)
        ),
    )


def random_relation(seed: int, *, timed: bool = False) -> Relation:
    rng = Random(seed)
    trees = Trees(rng, flat=True, times=TIMES) if timed else Trees(rng)
    relation = trees.relation(1 + seed % 4)
    return optimize(relation) if rng.random() < 0.7 else lower_outer_join(relation)


async def check(relation: Relation, seed: int, directory: Path, count: int) -> None:
    rng = Random(seed)
    plan = delta_plan(relation)
    history = random_history(rng, FIRST, LAST)
    index_key = random_key(rng, len(relation.types))
    async with partitioned(directory, count, 4 if seed % 2 else 1_000_000) as (engine, _):
        ticks = borders(rng, FIRST, LAST)
        output = await run_partitioned(engine, plan, history, ticks, index_key)
        for ts in range(FIRST, LAST + 1):
            expected = expected_at(relation, history, ts)
            assert output_at(output, relation.types, ts) == expected, f"at {ts}"
            if index_key is not None:
                peeked = await engine.peek(DATAFLOW, None, Timestamp(ts))
                found = output_at(peeked.updates(Timestamp(ts)), relation.types, ts)
                assert found == expected, f"index at {ts}"


def random_key(rng: Random, width: int) -> tuple[int, ...] | None:
    if not width or rng.random() < 0.5:
        return None
    return tuple(rng.sample(range(width), rng.randint(1, min(2, width))))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seed", range(40))
async def test_random_histories(tmp_path: Path, seed: int, count: int) -> None:
    await check(random_relation(seed), seed, tmp_path, count)


@pytest.mark.parametrize("seed", range(500, 530))
async def test_subqueries_that_see_the_row_around(tmp_path: Path, seed: int) -> None:
    relation = Trees(Random(seed), fallible=False, correlated=True).subquery(1 + seed % 2)
    await check(optimize(relation), seed, tmp_path, 2 + seed % 2)


@pytest.mark.parametrize("seed", range(1_000, 1_030))
async def test_table_functions_and_filters_by_time(tmp_path: Path, seed: int) -> None:
    await check(random_relation(seed, timed=True), seed, tmp_path, 2 + seed % 2)


@pytest.mark.parametrize("seed", range(3_000, 3_030))
async def test_recursions_and_windows(tmp_path: Path, seed: int) -> None:
    """A recursion sees all rows and errors of its inputs, a window all rows of its partition."""
    rng = Random(seed)
    trees = Trees(rng, fallible=seed % 3 == 0)
    relation: Relation
    if seed % 2:
        relation = random_recursion(rng, trees, 1 + seed % 3)
    else:
        relation = windowed(rng, trees.relation(1 + seed % 3))
    await check(optimize(relation), seed, tmp_path, 2 + seed % 3 % 2)


@pytest.mark.parametrize("seed", range(2_000, 2_030))
async def test_ticks_only_when_something_is_due(tmp_path: Path, seed: int) -> None:
    """As a replica does it: no tick where no input changed and no task has something due."""
    await check_when_due(seed, tmp_path)


async def check_when_due(seed: int, directory: Path) -> None:
    rng = Random(seed)
    relation = random_relation(seed, timed=True)
    history = random_history(rng, FIRST, (FIRST + LAST) // 2)
    async with partitioned(directory, 3) as (engine, _):
        output = await run_when_due(engine, relation, history, rng)
    for ts in range(FIRST, LAST + 1):
        assert output_at(output, relation.types, ts) == expected_at(relation, history, ts)


async def run_when_due(
    engine: PartitionedEngine, relation: Relation, history: History, rng: Random
) -> list[Update]:
    plan = delta_plan(relation)
    await engine.create(DATAFLOW, plan, index_key=None, as_of=Timestamp(FIRST))
    output: list[Update] = []
    for lower, upper in borders(rng, FIRST, LAST):
        inputs = inputs_between(history, lower, upper)
        due = engine.due(DATAFLOW)
        if lower == FIRST or any(inputs.values()) or (due is not None and due < upper):
            output += await engine.tick(DATAFLOW, inputs, lower, upper)
    return output


@pytest.mark.slow
@seeds(deep=range(10_000, 11_000), fresh=200)
async def test_many_more_histories(tmp_path: Path, seed: int) -> None:
    relation = random_relation(seed, timed=seed % 3 == 0)
    await check(relation, seed, tmp_path, 2 + seed % 3)


def leave_rows_where_they_are(patch: pytest.MonkeyPatch) -> None:
    """No exchange at all."""
    patch.setattr(_Cutter, "_exchange", lambda _cutter, source, _key: source)


def skip_the_exchange_before_a_lookup(patch: pytest.MonkeyPatch) -> None:
    """Believe that rows found in one arrangement lie as the next one needs them."""
    add = _Cutter._add

    def hopeful(cutter: _Cutter, node: object, stage: int, lies_by: frozenset) -> int:
        if isinstance(node, LookupNode):
            lies_by |= {(column,) for column in range(len(node.types))}
        return add(cutter, node, stage, lies_by)  # type: ignore[arg-type]

    patch.setattr(_Cutter, "_add", hopeful)


def hash_columns_in_another_way(patch: pytest.MonkeyPatch) -> None:
    """Many rows at once do not go where one row of the same key goes."""

    def other(hashes: Ints, count: int) -> Ints:
        return hashes % count

    patch.setattr("evertide.spark.partitions.share.owners_of_hashes", other)


def changed_lookups(new: Callable[[LookupNode], bool]) -> Callable[..., StagedPlan]:
    def wrongly(*asked: object) -> StagedPlan:
        staged = cut(*asked)  # type: ignore[arg-type]
        nodes = [
            replace(node, new=new(node)) if isinstance(node, LookupNode) else node
            for node in staged.nodes
        ]
        return replace(staged, nodes=tuple(nodes))

    return wrongly


def mix_old_and_new(patch: pytest.MonkeyPatch) -> None:
    """Every lookup sees this tick's changes: dA with dB is counted twice."""
    patch.setattr("evertide.spark.partitions.running.cut", changed_lookups(lambda _: True))


def look_up_old_only(patch: pytest.MonkeyPatch) -> None:
    """dA with dB is lost."""
    patch.setattr("evertide.spark.partitions.running.cut", changed_lookups(lambda _: False))


def change_state_after_each_stage(patch: pytest.MonkeyPatch) -> None:
    """What a later stage takes for old is new already."""
    step = PartitionPlan._step

    def hasty(self: PartitionPlan, underway: object, stage: int) -> None:
        step(self, underway, stage)  # type: ignore[arg-type]
        for position, operator in self.stateful.items():
            if isinstance(operator, ArrangeOperator) and self.staged.stages[position] == stage:
                operator.commit(Timestamp(FIRST))

    patch.setattr(PartitionPlan, "_step", hasty)


def forget_stages_that_look_back(patch: pytest.MonkeyPatch) -> None:
    """Go to the end as soon as nothing is on its way, though a lookup still waits."""
    patch.setattr(PartitionPlan, "_is_quiet", lambda *_: True)


def give_constants_to_all(patch: pytest.MonkeyPatch) -> None:
    """Every task takes itself for the first when it begins a tick."""
    begin = PartitionPlan._begin

    def everywhere(self: PartitionPlan, asked: object) -> object:
        own, self._share = self._share, Share(FIRST_TASK, self._share.count)
        try:
            return begin(self, asked)  # type: ignore[arg-type]
        finally:
            self._share = own

    patch.setattr(PartitionPlan, "_begin", everywhere)


def give_errors_to_all(patch: pytest.MonkeyPatch) -> None:
    split = Router.split

    def generous(self: Router, delta: Delta) -> list[Delta]:
        return [part.with_errors(delta.errors) for part in split(self, delta)]

    patch.setattr(Router, "split", generous)


def trust_that_nothing_cancels(patch: pytest.MonkeyPatch) -> None:
    """The same row comes from two tasks, with opposite signs."""
    patch.setattr(
        "evertide.spark.partitions.engine.cut",
        lambda *asked: replace(cut(*asked), settled=True),
    )


@pytest.mark.parametrize(
    "plant",
    [
        leave_rows_where_they_are, skip_the_exchange_before_a_lookup, hash_columns_in_another_way,
        mix_old_and_new, look_up_old_only, change_state_after_each_stage,
        forget_stages_that_look_back, give_constants_to_all, give_errors_to_all,
        trust_that_nothing_cancels,
    ],
)  # fmt: skip
async def test_a_planted_bug_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, ResidentFault)) as found:
        await check_many(tmp_path)
    assert is_finding(found.value)


async def check_many(directory: Path) -> None:
    for seed in range(150):
        await check(random_relation(seed), seed, directory / str(seed), 2 + seed % 2)


def is_finding(error: BaseException) -> bool:
    """Whether something was found to be wrong, here or in a task; not that the plant is broken."""
    return isinstance(error, AssertionError) or getattr(error, "kind", "") == "AssertionError"


async def test_forgetting_what_is_due_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one task's word counts for when something is due."""

    async def first_only(engine: PartitionedEngine, dataflow_id: object, replies: list) -> object:
        due = replies[0].output.due
        output = await plain(engine, dataflow_id, replies)  # type: ignore[arg-type]
        engine._due[DATAFLOW] = None if due is None else Timestamp(due)
        return output

    plain = PartitionedEngine._output
    monkeypatch.setattr(PartitionedEngine, "_output", first_only)
    with pytest.raises((AssertionError, ResidentFault)) as found:
        await check_many_when_due(tmp_path)
    assert is_finding(found.value)


async def check_many_when_due(directory: Path) -> None:
    for seed in range(2_000, 2_100):
        await check_when_due(seed, directory / str(seed))
