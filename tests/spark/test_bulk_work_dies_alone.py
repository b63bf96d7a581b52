"""The bulk process may die at any moment: its jobs are done again or refused, and nothing is left.

Real processes and real kills; the resident application of the run's other tests goes on beside it.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from evertide.cli.bulk import launch_bulk
from evertide.dataflow.delta import delta_plan
from evertide.expr.codec import encode_relation
from evertide.expr.functions.row import AggregateFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import AggregateCall, Get, Join, Reduce, Relation
from evertide.persist.coding.batch import from_payload
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.result_files import read_frames
from evertide.spark.bulk.host import BulkHost, Finished
from evertide.spark.bulk.jobs import write_inputs
from evertide.spark.bulk.protocol import SelectJob
from evertide.spark.class_archive import reading_options
from evertide.spark.conf import SessionSettings
from evertide.spark.tables import desc_of
from evertide.spark.watch import JobStarved
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

AS_OF = Timestamp(1)
TABLE = GlobalId("u1")
WHOLE = Get(TABLE, (INT8,))
ROWS = 12_000


def pairs() -> Relation:
    """How many pairs of rows there are: work of some seconds that needs no memory."""
    count = by_signature("count(*)")
    assert isinstance(count, AggregateFunction)
    return Reduce(Join((WHOLE, WHOLE), ()), (), (AggregateCall(count, None),))


@asynccontextmanager
async def running_host(directory: Path) -> AsyncIterator[BulkHost]:
    settings = SessionSettings(
        directory, workers=2, bulk=True, partitions=0, jvm_options=reading_options()
    )
    host = BulkHost(settings, partial(launch_bulk, "test"))
    try:
        yield host
    finally:
        await host.stop()


@asynccontextmanager
async def selected(host: BulkHost, relation: Relation, rows: int) -> AsyncIterator[Finished]:
    updates = tuple(Update((n,), AS_OF, 1) for n in range(rows))
    inputs = write_inputs(delta_plan(relation), {TABLE: PartFiles((), updates)})
    encoded = encode_relation(relation)

    def job(job_id: int, directory: str) -> SelectJob:
        return SelectJob(job_id, directory, encoded, inputs, AS_OF, (), None)

    async with host.finished(SelectJob, job) as finished:
        yield finished


async def answer(host: BulkHost, relation: Relation, rows: int = ROWS) -> list[int]:
    async with selected(host, relation, rows) as finished:
        payloads = [
            payload
            for file in finished.done.files
            for payload in read_frames(finished.directory / file.name)
        ]
    assert not finished.directory.exists(), "what nobody reads any more is gone"
    return sorted(cast(int, u.row[0]) for p in payloads for u in from_payload(desc_of((INT8,)), p))


async def jvm_below(host: BulkHost) -> int:
    """The JVM of the bulk process, once there is one."""
    while True:
        current = host._incarnation
        if current is not None and current._process is not None and current.jobs:
            children = Path(f"/proc/{current._process.pid}/task").glob("*/children")
            for pid in [int(pid) for path in children for pid in path.read_text().split()]:
                if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                    return pid
        await asyncio.sleep(0.05)


async def test_jobs_outlive_one_death_and_are_refused_after_two(tmp_path: Path) -> None:
    async with running_host(tmp_path) as host:
        assert await answer(host, WHOLE, rows=10) == list(range(10))
        working = asyncio.create_task(answer(host, pairs()))
        os.kill(await jvm_below(host), signal.SIGKILL)
        assert await working == [ROWS**2], "done again, by another process"
        working = asyncio.create_task(answer(host, pairs()))
        first = await jvm_below(host)
        os.kill(first, signal.SIGKILL)
        while (second := await jvm_below(host)) == first:
            await asyncio.sleep(0.05)
        os.kill(second, signal.SIGKILL)
        with pytest.raises(JobStarved) as refused:
            await working
        assert refused.value.error.code == "53200"
        assert refused.value.error.hint is not None
        assert await answer(host, WHOLE, rows=10) == list(range(10))
    assert not list(tmp_path.glob("bulk-*")), "nothing is left"


async def test_a_job_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    """Its directory goes at once, and its place is free for others."""
    async with running_host(tmp_path) as host:
        working = asyncio.create_task(answer(host, pairs(), rows=100_000))
        await jvm_below(host)
        await asyncio.sleep(1)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        current = host._incarnation
        assert current is not None
        assert not current.jobs
        assert not list(current.directory.glob("job-*"))
        assert await answer(host, WHOLE, rows=10) == list(range(10))
