"""A tick as a Spark SQL job gives the evaluator's updates at every timestamp."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.lookup import Lookup, Span
from evertide.spark.evaluate import Evaluator
from evertide.spark.jobs import SparkJobs
from evertide.spark.tick_job import SparkTickEngine
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.random_plans import RandomCase, added_up, random_case
from tests.support.seeds import seeds

VIEW = GlobalId("u9")
# The first tick brings the contents at as_of; the last spans several timestamps.
TICKS = ((3, 4), (4, 5), (5, 10))
IN_WHICH_TIME_BRINGS_ROWS = (368, 400)
# Their ticks are few jobs, but of one.
SHORT = (201, 202, 203, 204, 205, 208, 209, 210, 212, 216)
# Their ticks are hundreds of jobs.
LONG = (300, 301, 304)


@seeds(SHORT, deep=[*range(200, 230), *range(10_000, 11_000)], fresh=50)
async def test_random_histories(spark_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    await agree(random_case(seed), spark_jobs, tmp_path)


@seeds([303, *IN_WHICH_TIME_BRINGS_ROWS], deep=[*LONG, 311, 323, 377], fresh=10)
async def test_as_time_passes(spark_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    """Table functions, and filters by time, for which most ticks come without changes."""
    case = random_case(seed, last_ts=4, flat=seed % 3 < 2, temporal=seed % 3 > 0)
    await agree(case, spark_jobs, tmp_path)


async def agree(case: RandomCase, spark_jobs: SparkJobs, tmp_path: Path) -> None:
    plan = delta_plan(case.relation)
    types = plan.types
    index_key = (0,) if types else None
    evaluator, engine = Evaluator(tmp_path / "own"), SparkTickEngine(spark_jobs, tmp_path / "jobs")
    as_of = Timestamp(TICKS[0][0])
    evaluator.create(VIEW, plan, index_key=index_key, as_of=as_of)
    await engine.create(VIEW, plan, index_key=index_key, as_of=as_of)
    for lower, upper in TICKS:
        inputs = changes(case, lower, upper, first=lower == as_of)
        span = Timestamp(lower), Timestamp(upper)
        found = await engine.tick(VIEW, inputs, *span)
        per_timestamp = per_time(types, found)
        assert per_timestamp == per_time(types, evaluator.tick(VIEW, inputs, *span))
        assert len(found) == sum(map(len, per_timestamp.values())), "must be consolidated"
    if index_key is not None:
        for keys in (None, Lookup((Span(b"\x01\x80", b"\x02"),), exact=False)):
            peeked = await engine.peek(VIEW, keys, Timestamp(7))
            rows, errors = evaluator.peek(VIEW, keys, Timestamp(7))
            assert added_up(types, peeked.rows, peeked.errors) == added_up(types, rows, errors)
    await engine.drop(VIEW)
    evaluator.close()


async def test_sizes_are_those_of_the_files(spark_jobs: SparkJobs, tmp_path: Path) -> None:
    """Of the first drawn view that has something to keep."""
    engine = SparkTickEngine(spark_jobs, tmp_path)
    (lower, upper), *_ = TICKS
    for seed in range(110, 130):
        case = random_case(seed)
        plan = delta_plan(case.relation)
        await engine.create(VIEW, plan, index_key=(0,), as_of=Timestamp(lower))
        assert (await engine.sizes(VIEW))["records"] == 0
        inputs = changes(case, lower, upper, first=True)
        output = await engine.tick(VIEW, inputs, Timestamp(lower), Timestamp(upper))
        sizes = await engine.sizes(VIEW)
        files = list(tmp_path.rglob("*.parquet"))
        stored = sum(pq.read_metadata(path).num_rows for path in files)
        assert sizes["records"] == stored + len(output)
        assert sizes["bytes"] == sum(path.stat().st_size for path in files)
        assert sizes["arrangements"] == len(files) + 1
        await engine.drop(VIEW)
        assert await engine.sizes(VIEW) == {}
        if stored:
            return
    pytest.fail("no view keeps anything")


def changes(
    case: RandomCase, lower: int, upper: int, *, first: bool
) -> dict[GlobalId, list[Update]]:
    inputs: dict[GlobalId, list[Update]] = {}
    for global_id, (_, updates) in case.collections.items():
        if first:
            updates = [u._replace(ts=Timestamp(max(u.ts, lower))) for u in updates]
        inputs[global_id] = [u for u in updates if lower <= u.ts < upper]
    return inputs


def per_time(types: tuple, updates: Sequence[Update]) -> dict[int, dict[object, int]]:
    found = {}
    for ts in sorted({update.ts for update in updates}):
        then = [update for update in updates if update.ts == ts]
        rows = [(u.row, u.diff) for u in then if u.error is None]
        errors = [(u.error, u.diff) for u in then if u.error is not None]
        found[int(ts)] = added_up(types, rows, errors)
    return found
