"""Window functions, maintained: every executor gives what the interpreter gives, at every time."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.build import describe
from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import WindowNode
from evertide.dataflow.plan_codec import decode_plan, encode_plan
from evertide.expr.functions.row import AggregateFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.functions.window import RESULTS, WindowFunction
from evertide.expr.relation import (
    USUAL_FRAME,
    Frame,
    Get,
    OrderKey,
    Relation,
    Window,
    WindowCall,
)
from evertide.expr.scalar import ColumnRef, Literal
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import optimize
from evertide.spark.evaluate import Evaluator
from evertide.spark.jobs import SparkJobs
from evertide.spark.render.window import is_native
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT4, TEXT
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update
from tests.expr.random_windows import windowed
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
from tests.spark.partitioned import partitioned, run_partitioned
from tests.spark.random_plans import RandomCase, random_case
from tests.spark.test_hydrate_gives_the_state_that_ticking_gives import alike
from tests.spark.test_render_relation_means_what_the_interpreter_means import agree
from tests.spark.test_tick_job_gives_what_the_evaluator_gives import agree as agree_in_jobs
from tests.support.seeds import seeds

FIRST, LAST = 10, 20


def random_relation(rng: Random, depth: int) -> Relation:
    """With a window in it."""
    while True:
        relation = windowed(rng, Trees(rng).relation(depth))
        lowered = optimize(relation) if rng.random() < 0.7 else lower_outer_join(relation)
        if any(isinstance(node, WindowNode) for node in delta_plan(lowered).nodes):
            return lowered


def check(seed: int, directory: Path, *, depth: int) -> None:
    rng = Random(seed)
    relation, history = random_relation(rng, depth), random_history(rng, FIRST, LAST)
    evaluator = Evaluator(directory, spill_records=4 if seed % 2 else 1_000_000)
    output = run(evaluator, delta_plan(relation), history, borders(rng, FIRST, LAST))
    evaluator.close()
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"


@pytest.fixture(autouse=True)
def small_groups_are_kept_too(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether partitions are read again or kept ready depends on the seed."""
    params = request.node.callspec.params
    number = params["seed"] if "seed" in params else params["seeds"][0] // 100
    if number % 2:
        monkeypatch.setattr("evertide.spark.operators.grouping.group_cache.LEAST_ROWS", 1)


@pytest.mark.parametrize("seed", range(250))
def test_at_every_timestamp(tmp_path: Path, seed: int) -> None:
    check(seed, tmp_path, depth=seed % 4)


@pytest.mark.parametrize("seed", range(1_000, 1_040))
def test_whatever_the_borders_of_ticks(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    relation, history = random_relation(rng, 2), random_history(rng, FIRST, LAST)
    outputs = []
    for attempt in range(3):
        evaluator = Evaluator(tmp_path / str(attempt), spill_records=7)
        updates = run(evaluator, delta_plan(relation), history, borders(rng, FIRST, LAST))
        evaluator.close()
        outputs.append(sorted((repr(u.row), u.ts, u.diff, str(u.error)) for u in updates))
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize("seed", range(2_000, 2_040))
def test_a_restored_snapshot_goes_on(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    relation, history = windowed(rng, Trees(rng).relation(0)), random_history(rng, FIRST, LAST)
    middle, end = Timestamp(rng.randrange(FIRST + 1, LAST)), Timestamp(LAST + 1)
    plan, types = delta_plan(relation), relation.types
    evaluator = Evaluator(tmp_path / "first", spill_records=7)
    output = run(evaluator, plan, history, [(Timestamp(FIRST), middle)])
    snapshot = evaluator.snapshot(tmp_path / "snapshot")
    snapshot.write()
    evaluator.close()
    restored = Evaluator(tmp_path / "second", spill_records=7)
    assert restored.restore(tmp_path / "snapshot") == {DATAFLOW: middle}
    output += ticked(restored, history, middle, end)
    restored.close()
    for ts in range(middle, LAST + 1):
        assert output_at(output, types, ts) == expected_at(relation, history, ts), f"at {ts}"


def ticked(
    evaluator: Evaluator, history: History, start: Timestamp, end: Timestamp
) -> list[Update]:
    output: list[Update] = []
    for lower in map(Timestamp, range(start, end)):
        upper = step_forward(lower)
        output += evaluator.tick(DATAFLOW, inputs_between(history, lower, upper), lower, upper)
    return output


@pytest.mark.parametrize("seed", range(3_000, 3_030))
def test_an_aborted_tick_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every tick is tried with its last step broken, then again whole."""
    rng = Random(seed)
    relation, history = random_relation(rng, 2), random_history(rng, FIRST, LAST)
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


@pytest.mark.parametrize("seed", range(8_000, 8_040))
async def test_partitions_that_lie_in_several_tasks(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    relation, history = windowed(rng, Trees(rng).relation(0)), random_history(rng, FIRST, LAST)
    if seed % 2:
        relation = optimize(relation)
    async with partitioned(tmp_path, 1 + seed % 3, 4) as (engine, _):
        ticks = borders(rng, FIRST, LAST)
        output = await run_partitioned(engine, delta_plan(relation), history, ticks)
    for ts in range(FIRST, LAST + 1):
        found = output_at(output, relation.types, ts)
        assert found == expected_at(relation, history, ts), f"at {ts}"


class Breaking(Exception):
    """Our bug, planted."""


def broken(*_arguments: object) -> list[Update]:
    raise Breaking


@pytest.mark.parametrize("seed", range(60))
def test_plans_travel_and_are_incremental(seed: int) -> None:
    plan = delta_plan(random_case(seed, window=True).relation)
    assert encode_plan(decode_plan(encode_plan(plan), by_signature)) == encode_plan(plan)
    assert describe(plan).startswith("incremental: every change is propagated")


@seeds(range(4_000, 4_008), deep=range(4_008, 4_016), fresh=20)
def test_spark_gives_what_the_interpreter_gives(
    spark_jobs: SparkJobs, tmp_path: Path, seed: int
) -> None:
    agree(random_case(seed, window=True), spark_jobs, tmp_path)


@pytest.mark.parametrize("seed", [7_000, 7_001])
def test_spark_s_own_functions_give_the_same(
    spark_jobs: SparkJobs, tmp_path: Path, seed: int
) -> None:
    """Method: all of them at once, over rows of which many are equal in order, or the same."""
    rng = Random(seed)
    types = (INT4, INT4, TEXT)
    values = ((1, 2, None), (0, 1, -3, 2**31 - 1, None), ("a", "", None))
    rows = [tuple(rng.choice(column) for column in values) for _ in range(40)]
    updates = [Update(row, Timestamp(rng.randint(1, 5)), rng.choice((1, 1, 3))) for row in rows]
    order = (OrderKey(1, descending=seed % 2 == 1, nulls_first=True),)
    source = Get(GlobalId("u0"), types)
    window = Window(source, (0,) if seed % 2 else (), order, own_functions())
    (node,) = (n for n in delta_plan(window).nodes if isinstance(n, WindowNode))
    assert all(is_native(call, node) for call in node.calls)
    agree(RandomCase({GlobalId("u0"): (types, updates)}, window), spark_jobs, tmp_path)


def own_functions() -> tuple[WindowCall, ...]:
    number, text = ColumnRef(1, INT4), ColumnRef(2, TEXT)
    rows = Frame("rows", -2, 1)
    ranks = [
        WindowCall(function, (), RESULTS[function], USUAL_FRAME)
        for function in RESULTS
        if function is not WindowFunction.NTILE
    ]
    shifts = [
        WindowCall(function, (text, Literal(by, INT4), Literal("-", TEXT)), TEXT, USUAL_FRAME)
        for function in (WindowFunction.LAG, WindowFunction.LEAD)
        for by in (-1, 0, 2)
    ]
    ends = [
        WindowCall(function, (text,), TEXT, frame)
        for function in (WindowFunction.FIRST_VALUE, WindowFunction.LAST_VALUE)
        for frame in (rows, Frame("rows", 1, None))
    ]
    signatures = ("count(integer)", "sum(integer)", "min(integer)", "max(integer)")
    aggregates = [
        WindowCall(function, (number,), function.result, frame)
        for function in map(by_signature, signatures)
        for frame in (USUAL_FRAME, rows, Frame("range", 0, None), Frame("rows", None, None))
        if isinstance(function, AggregateFunction)
    ]
    plain = WindowCall(WindowFunction.LAG, (number,), INT4, USUAL_FRAME)
    return (*ranks, plain, *shifts, *ends, *aggregates)


@seeds([5_000, 5_005], deep=range(5_001, 5_005), fresh=10)
async def test_a_tick_as_a_job(spark_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    await agree_in_jobs(random_case(seed, window=True), spark_jobs, tmp_path)


@seeds(range(6_000, 6_002), deep=range(6_002, 6_020), fresh=10)
def test_hydrated_state_goes_on(spark_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    alike(random_case(seed, window=True), spark_jobs, tmp_path)


@pytest.mark.slow
@seeds(deep=range(10_000, 11_000), fresh=500, block=100)
def test_many_more_histories(tmp_path: Path, seeds: Sequence[int]) -> None:
    for seed in seeds:
        check(seed, tmp_path / str(seed), depth=seed % 4)
