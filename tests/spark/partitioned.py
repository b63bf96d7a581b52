"""A partitioned engine whose tasks are services in this process; messages travel as bytes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.expr.row_key import identity_function
from evertide.spark.channel import Reply, Request
from evertide.spark.partitions.connection import checked
from evertide.spark.partitions.engine import PartitionedEngine
from evertide.spark.partitions.evaluator import TaskEvaluator
from evertide.spark.partitions.received import ReceivedFiles
from evertide.spark.resident_task import Service
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.histories import DATAFLOW, History, inputs_between

REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


class NearTask:
    """Answers as a task does, and remembers what it was asked."""

    def __init__(self, directory: Path, spill_records: int) -> None:
        self.evaluator = TaskEvaluator(directory / "state", spill_records=spill_records)
        self._service = Service(self.evaluator, ReceivedFiles(directory / "received"))
        self.asked: list[Request] = []

    async def ask(self, request: Request) -> Reply:
        request = REQUESTS.decode(msgspec.msgpack.encode(request))
        self.asked.append(request)
        reply = self._service.answer(request)
        return checked(REPLIES.decode(msgspec.msgpack.encode(reply)))


@asynccontextmanager
async def partitioned(
    directory: Path, count: int, spill_records: int = 1_000_000
) -> AsyncIterator[tuple[PartitionedEngine, list[NearTask]]]:
    """An engine over so many tasks."""
    tasks = [NearTask(directory / str(number), spill_records) for number in range(count)]
    try:
        yield PartitionedEngine(tasks), tasks
    finally:
        for task in tasks:
            task.evaluator.close()


async def run_partitioned(
    engine: PartitionedEngine,
    plan: DeltaPlan,
    history: History,
    ticks: Sequence[tuple[Timestamp, Timestamp]],
    index_key: tuple[int, ...] | None = None,
) -> list[Update]:
    """All output of a history, tick by tick; each must be consolidated and in range."""
    await engine.create(DATAFLOW, plan, index_key=index_key, as_of=ticks[0][0])
    output: list[Update] = []
    for lower, upper in ticks:
        part = await engine.tick(DATAFLOW, inputs_between(history, lower, upper), lower, upper)
        identity = identity_function(plan.types) or (lambda row: row)
        names = [(identity(u.row) if u.error is None else None, u.ts, u.error) for u in part]
        assert len(set(names)) == len(names), "output is consolidated"
        assert all(lower <= u.ts < upper and u.diff for u in part)
        output += part
    return output
