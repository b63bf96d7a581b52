"""Goal: tasks that share a dataflow answer peeks, sizes, compaction and drops as one would.

Method: tasks in this process beside one evaluator with the same history; state that Spark hydrated
goes through messages into tasks, and ticks go on from it alike.
"""

from pathlib import Path
from random import Random

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.lookup import Lookup, Span, point
from evertide.expr.functions.row import AggregateFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import AggregateCall, Distinct, Get, Join, Map, Reduce, Union
from evertide.expr.row_key import column_encoder
from evertide.expr.scalar import ColumnRef, Literal
from evertide.persist.coding.keys import encode_key
from evertide.persist.spark_input import PartFiles
from evertide.spark.arrangements.arrangement import BelowSince
from evertide.spark.arrangements.key_order import LookupRefused
from evertide.spark.building.state_files import write_states
from evertide.spark.channel import (
    DropRequest,
    FileRequest,
    LoadRequest,
    PeekRequest,
    StageRequest,
)
from evertide.spark.evaluate import Evaluator
from evertide.spark.jobs import SparkJobs
from evertide.spark.partitions.connection import ResidentFault
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT4, INT8, TEXT
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update
from tests.expr import sample
from tests.expr.sample import call, col
from tests.spark.built import build
from tests.spark.partitioned import NearTask, partitioned
from tests.spark.random_plans import RandomCase, added_up, random_case
from tests.spark.test_hydrate_gives_the_state_that_ticking_gives import (
    AS_OF,
    UPPER,
    later,
    per_time,
    snapshot,
)

TABLE, INDEX = GlobalId("u1"), GlobalId("u2")
PLAN = delta_plan(Get(TABLE, (INT4, TEXT)))
KEY = column_encoder((INT4,), (0,))
UNTIL = Timestamp(40)


def history() -> list[Update]:
    """Rows of 30 keys come at odd timestamps, every third goes at the next; one error comes."""
    updates = []
    for number in range(30):
        ts = Timestamp(1 + number)
        updates.append(Update((number, f"row {number}"), ts, 1))
        if number % 3 == 0:
            updates.append(Update((number, f"row {number}"), step_forward(ts), -1))
    updates.append(Update((), Timestamp(9), 1, '["22012","division by zero"]'))
    return updates


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_peeks_are_those_of_one_evaluator(tmp_path: Path, count: int) -> None:
    evaluator = Evaluator(tmp_path / "own")
    evaluator.create(INDEX, PLAN, index_key=(0,), as_of=Timestamp(1))
    evaluator.tick(INDEX, {TABLE: history()}, Timestamp(1), UNTIL)
    exact = Lookup(tuple(point(KEY((n,))) for n in (4, 5, 99)), exact=True)
    ranged = Lookup((Span(encode_key(INT4, 5), encode_key(INT4, 20)),), exact=False)
    async with partitioned(tmp_path, count) as (engine, tasks):
        await engine.create(INDEX, PLAN, index_key=(0,), as_of=Timestamp(1))
        await engine.tick(INDEX, {TABLE: history()}, Timestamp(1), UNTIL)
        for keys in (None, exact, ranged, [(7,), (8,)], []):
            for as_of in (Timestamp(3), Timestamp(12), Timestamp(39)):
                peeked = await engine.peek(INDEX, keys, as_of)
                rows, errors = evaluator.peek(INDEX, keys, as_of)
                assert list(peeked.rows) == sorted(rows), "in the order of keys"
                assert list(peeked.errors) == errors
        few = Lookup(ranged.spans, exact=False, most=3)
        with pytest.raises(LookupRefused):
            await engine.peek(INDEX, few, Timestamp(39))
        asked = [len([r for r in task.asked if isinstance(r, PeekRequest)]) for task in tasks]
        await engine.peek(INDEX, Lookup((point(KEY((4,))),), exact=True), Timestamp(39))
        more = [len([r for r in task.asked if isinstance(r, PeekRequest)]) for task in tasks]
        assert [b - a for a, b in zip(asked, more, strict=True)] == [1] * count, "all, for errors"
    evaluator.close()


@pytest.mark.parametrize("bad", range(4))
async def test_an_error_is_seen_whichever_key_is_asked_for(tmp_path: Path, bad: int) -> None:
    """It stays with the task that met it, which need not be the one that has the key."""
    divided = Map(Get(TABLE, (INT8, INT8)), (call(sample.DIVIDE, Literal(1, INT8), col(1)),))
    rows = [Update((n, 0 if n == bad else 1), Timestamp(1), 1) for n in range(12)]
    async with partitioned(tmp_path, 4) as (engine, _):
        await engine.create(INDEX, delta_plan(divided), index_key=(0,), as_of=Timestamp(1))
        await engine.tick(INDEX, {TABLE: rows}, Timestamp(1), Timestamp(2))
        for key in range(12):
            peeked = await engine.peek(INDEX, [(key,)], Timestamp(1))
            assert [count for _, count in peeked.errors] == [1]


async def test_what_a_failed_load_left_behind_is_not_loaded(tmp_path: Path) -> None:
    """A file that came in half would go on being written where it ends."""
    files = tmp_path / "files"
    write_states(files, PLAN, {})
    async with partitioned(tmp_path, 2) as (engine, tasks):
        for task in tasks:
            await task.ask(FileRequest(INDEX, "0.arrow", b"half of a file"))
        await engine.load(INDEX, PLAN, index_key=(0,), as_of=Timestamp(1), directory=files)
        for task in tasks:
            left, *then = task.asked
            assert isinstance(left, FileRequest)
            assert isinstance(then[0], DropRequest), "before anything is sent"


async def test_sizes_add_up_and_compaction_and_drops_reach_all(tmp_path: Path) -> None:
    async with partitioned(tmp_path, 3) as (engine, tasks):
        await engine.create(INDEX, PLAN, index_key=(0,), as_of=Timestamp(1))
        await engine.tick(INDEX, {TABLE: history()}, Timestamp(1), UNTIL)
        each = [task.evaluator.sizes(INDEX)["records"] for task in tasks]
        assert all(each), "every task has a share"
        assert (await engine.sizes(INDEX))["records"] == sum(each)
        await engine.allow_compaction(INDEX, Timestamp(30))
        for task in tasks:
            with pytest.raises(BelowSince):
                task.evaluator.peek(INDEX, None, Timestamp(20))
        with pytest.raises(BelowSince):
            await engine.peek(INDEX, None, Timestamp(20))
        await engine.drop(INDEX)
        assert not any(task.evaluator.sizes(INDEX) for task in tasks)
        assert await engine.sizes(INDEX) == {}


async def test_a_tick_that_fails_in_one_task_changes_nothing_there(tmp_path: Path) -> None:
    """An update out of range is refused before any state changes; the next tick is right."""
    async with partitioned(tmp_path, 2) as (engine, _):
        await engine.create(INDEX, PLAN, index_key=(0,), as_of=Timestamp(1))
        await engine.tick(INDEX, {TABLE: history()[:5]}, Timestamp(1), UNTIL)
        wrong = [Update((n, "late"), Timestamp(99), 1) for n in range(20)]
        with pytest.raises(ResidentFault, match="out of range"):
            await engine.tick(INDEX, {TABLE: wrong}, UNTIL, Timestamp(50))
        peeked = await engine.peek(INDEX, None, Timestamp(49))
        assert not [row for row, _ in peeked.rows if row[1] == "late"]


async def test_one_partition_is_one_turn(tmp_path: Path) -> None:
    """A plan whose rows come by the right key needs no exchange, so a tick is one message."""
    async with partitioned(tmp_path, 2) as (engine, tasks):
        await engine.create(INDEX, PLAN, index_key=(0,), as_of=Timestamp(1))
        await engine.tick(INDEX, {TABLE: history()}, Timestamp(1), UNTIL)
        for task in tasks:
            assert len([r for r in task.asked if isinstance(r, StageRequest)]) == 1


@pytest.mark.parametrize("seed", range(104, 112, 2))
async def test_ticks_go_on_from_what_spark_hydrated(
    spark_jobs: SparkJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Files go in small pieces, so that most take several messages."""
    monkeypatch.setattr("evertide.spark.partitions.asking.PIECE_BYTES", 1_000)
    await goes_on_alike(random_case(seed), spark_jobs, tmp_path, 2 + seed // 2 % 2)


async def test_every_hydrated_row_is_with_the_task_that_has_its_key(
    spark_jobs: SparkJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: every key of two arrangements, a group by and a distinct changes after hydration."""
    monkeypatch.setattr("evertide.spark.partitions.asking.PIECE_BYTES", 1_000)
    left = [Update((n % 40, n), Timestamp(2), 1) for n in range(120)]
    right = [Update((n, n % 7), Timestamp(3), 1) for n in range(40)]
    left += [Update((n, -n), Timestamp(6 + n % 3), 1) for n in range(40)]
    right += [Update((n, n % 7), Timestamp(8), -1) for n in range(0, 40, 3)]
    tables = {GlobalId("u3"): ((INT4, INT4), left), GlobalId("u4"): ((INT4, INT4), right)}
    joined = Join(tuple(Get(g, types) for g, (types, _) in tables.items()), ((0, 2),))
    count = by_signature("count(*)")
    assert isinstance(count, AggregateFunction)
    grouped = Reduce(joined, (ColumnRef(1, INT4),), (AggregateCall(count, None),))
    case = RandomCase(tables, Union((grouped, Distinct(grouped))))
    await goes_on_alike(case, spark_jobs, tmp_path, 3)


async def goes_on_alike(case: RandomCase, jobs: SparkJobs, directory: Path, count: int) -> None:
    plan = delta_plan(case.relation)
    index_key = (0,) if plan.types else None
    imports = {g: PartFiles((), tuple(u)) for g, (_, u) in case.collections.items()}
    built = build(jobs, plan, imports, AS_OF, directory / "load", index_key)
    evaluator = Evaluator(directory / "own")
    evaluator.create(INDEX, plan, index_key=index_key, as_of=AS_OF)
    evaluator.tick(INDEX, snapshot(case), AS_OF, step_forward(AS_OF))
    span = step_forward(AS_OF), UPPER
    expected = per_time(plan.types, evaluator.tick(INDEX, later(case), *span))
    async with partitioned(directory, count) as (engine, tasks):
        await engine.load(INDEX, plan, index_key=index_key, as_of=AS_OF, directory=built.directory)
        assert not list((directory / "0" / "received").glob("*")), "what was sent is gone too"
        check_messages(tasks)
        if index_key is not None:
            for row, _ in evaluator.peek(INDEX, None, AS_OF)[0]:
                peeked = await engine.peek(INDEX, [row[:1]], AS_OF)
                assert repr(row) in [repr(found) for found, _ in peeked.rows]
        assert per_time(plan.types, await engine.tick(INDEX, later(case), *span)) == expected
        if index_key is not None:
            peeked = await engine.peek(INDEX, None, Timestamp(UPPER - 1))
            rows, errors = evaluator.peek(INDEX, None, Timestamp(UPPER - 1))
            types = plan.types
            assert added_up(types, peeked.rows, peeked.errors) == added_up(types, rows, errors)
    evaluator.close()


def check_messages(tasks: list[NearTask]) -> None:
    """No directory of the driver's is named, and no piece is larger than allowed."""
    for task in tasks:
        for request in task.asked:
            if isinstance(request, LoadRequest):
                assert request.directory is None
            if isinstance(request, FileRequest):
                assert len(request.content) <= 1_000


async def test_only_files_of_hydrated_state_are_taken(tmp_path: Path) -> None:
    task = NearTask(tmp_path, 10)
    for name in ("../outside", "/etc/passwd", "1.rows/..", "rows"):
        with pytest.raises(ResidentFault, match="not a file of hydrated state"):
            await task.ask(FileRequest("u1", name, b"x"))
    with pytest.raises(ResidentFault, match="not a name for a directory"):
        await task.ask(FileRequest("../u1", "1.rows", b"x"))
    assert not list(tmp_path.rglob("*outside*"))
    task.evaluator.close()


@pytest.mark.parametrize("seed", range(5))
async def test_rows_are_spread(tmp_path: Path, seed: int) -> None:
    """No task has everything, whatever the keys are like."""
    rng = Random(seed)
    rows = [Update((rng.randrange(10_000), "x"), Timestamp(1), 1) for _ in range(600)]
    async with partitioned(tmp_path, 4) as (engine, tasks):
        await engine.create(INDEX, PLAN, index_key=(0,), as_of=Timestamp(1))
        await engine.tick(INDEX, {TABLE: rows}, Timestamp(1), Timestamp(2))
        shares = [task.evaluator.sizes(INDEX)["records"] for task in tasks]
    assert sum(shares) == len({u.row for u in rows}) or sum(shares) == 600
    assert min(shares) > 75
