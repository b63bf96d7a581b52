"""State hydrated by Spark is the state that the evaluator gets by ticking the same contents."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.hydrate import hydrate
from evertide.spark.evaluate import Evaluator
from evertide.spark.jobs import SparkJobs
from evertide.spark.watch import JobCancelled
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update
from tests.spark.built import build
from tests.spark.random_plans import RandomCase, added_up, random_case
from tests.support.seeds import seeds

AS_OF, UPPER = Timestamp(4), Timestamp(10)
VIEW = GlobalId("u9")


# Of the others some take a quarter of a minute.
@seeds([107, 109, 110, 111, 112, 114, 115], deep=range(100, 160), fresh=20)
def test_ticks_go_on_alike(spark_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    """Method: one evaluator is loaded, through files as the resident task is, one ticks from
    nothing; their outputs at as_of and at every later timestamp must be the same."""
    case = random_case(seed, flat=seed >= 112)
    alike(case, spark_jobs, tmp_path, indexed=seed % 2 == 0)


def alike(case: RandomCase, spark_jobs: SparkJobs, tmp_path: Path, *, indexed: bool = True) -> None:
    plan = delta_plan(case.relation)
    index_key = (0,) if plan.types and indexed else None
    imports = {g: PartFiles((), tuple(u)) for g, (_, u) in case.collections.items()}
    built = build(spark_jobs, plan, imports, AS_OF, tmp_path / "files", index_key)

    evaluator = Evaluator(tmp_path / "state")
    ticked, loaded = GlobalId("u8"), VIEW
    for dataflow_id in (ticked, loaded):
        evaluator.create(dataflow_id, plan, index_key=index_key, as_of=AS_OF)
    evaluator.load_state(loaded, built.states, step_forward(AS_OF))
    first = evaluator.tick(ticked, snapshot(case), AS_OF, step_forward(AS_OF))

    types = plan.types
    if index_key is None:
        assert contents(types, built.output) == contents(types, first)
    span = step_forward(AS_OF), UPPER
    assert per_time(types, evaluator.tick(loaded, later(case), *span)) == per_time(
        types, evaluator.tick(ticked, later(case), *span)
    )
    if index_key is not None:
        peeked = [evaluator.peek(d, None, Timestamp(UPPER - 1)) for d in (loaded, ticked)]
        assert added_up(types, *peeked[0]) == added_up(types, *peeked[1])
    evaluator.close()


def test_progress_is_told_node_by_node(spark_jobs: SparkJobs, tmp_path: Path) -> None:
    """All nodes are done only once the output is: before it, the last one is still missing."""
    case = random_case(110)
    plan = delta_plan(case.relation)
    imports = {g: PartFiles((), tuple(u)) for g, (_, u) in case.collections.items()}
    told: list[int] = []
    hydrate(spark_jobs, plan, imports, AS_OF, tmp_path, on_node=told.append)
    assert told == list(range(len(plan.nodes) + 1))

    def stop_before_the_output(done: int) -> None:
        told.append(done)
        if done == plan.output:
            cancelled.set()

    told, cancelled = [], Event()
    with pytest.raises(JobCancelled):
        hydrate(
            spark_jobs,
            plan,
            imports,
            AS_OF,
            tmp_path,
            cancelled=cancelled,
            on_node=stop_before_the_output,
        )
    assert told == list(range(len(plan.nodes)))


def snapshot(case: RandomCase) -> dict[GlobalId, list[Update]]:
    """Every collection's updates up to as_of, as if they all came then."""
    return {
        g: [update._replace(ts=AS_OF) for update in updates if update.ts <= AS_OF]
        for g, (_, updates) in case.collections.items()
    }


def later(case: RandomCase) -> dict[GlobalId, list[Update]]:
    return {
        g: [update for update in updates if AS_OF < update.ts < UPPER]
        for g, (_, updates) in case.collections.items()
    }


def contents(types: tuple, updates: Sequence[Update]) -> dict[object, int]:
    rows = [(u.row, u.diff) for u in updates if u.error is None]
    return added_up(types, rows, [(u.error, u.diff) for u in updates if u.error is not None])


def per_time(types: tuple, updates: Sequence[Update]) -> dict[int, dict[object, int]]:
    times = sorted({update.ts for update in updates})
    return {ts: contents(types, [u for u in updates if u.ts == ts]) for ts in times}
