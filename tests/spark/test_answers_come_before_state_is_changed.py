"""Goal: whoever waits for a tick is told before the task's state takes the changes in, and nobody
can tell otherwise.

Method: the task's service with a channel that notes what happens when; state that fails to take
changes in.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy._core._exceptions import _ArrayMemoryError

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.plan_codec import encode_plan
from evertide.expr.relation import Get
from evertide.persist.coding.batch import to_batch
from evertide.spark.arrangements.runs import DamagedRun, Run
from evertide.spark.channel import (
    PASSING_KINDS,
    BlockingChannel,
    CompactRequest,
    CreateRequest,
    DoneReply,
    DropRequest,
    FailedReply,
    PeekRequest,
    Reply,
    Request,
    SizesReply,
    SizesRequest,
    TickRequest,
    UpdatesReply,
    decode_rows,
)
from evertide.spark.engine import EngineFailing
from evertide.spark.partitions.connection import ResidentFault, checked
from evertide.spark.partitions.evaluator import TaskEvaluator
from evertide.spark.partitions.received import ReceivedFiles
from evertide.spark.resident_task import Service
from evertide.spark.running_plan import RunningPlan
from evertide.spark.tables import desc_of
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

TABLE, ONE, OTHER = GlobalId("u1"), GlobalId("u2"), GlobalId("u3")
TYPES = (INT8, INT8)
PLAN = delta_plan(Get(TABLE, TYPES))


def create(dataflow_id: GlobalId) -> Request:
    return CreateRequest(dataflow_id, encode_plan(PLAN), (0,), 1)


def tick(dataflow_id: GlobalId, ts: int, *rows: Row) -> Request:
    updates = [Update(row, Timestamp(ts), 1) for row in rows]
    encoded = {str(TABLE): to_batch(desc_of(TYPES), updates).payload} if rows else {}
    return TickRequest(dataflow_id, encoded, ts, ts + 1)


def peek(dataflow_id: GlobalId, ts: int) -> Request:
    return PeekRequest(dataflow_id, None, ts)


def rows_of(reply: Reply) -> list[tuple[Row, int]]:
    assert isinstance(reply, UpdatesReply), reply
    return sorted(decode_rows(TYPES, reply.updates)[0])


@pytest.fixture
def evaluator(tmp_path: Path) -> Iterator[TaskEvaluator]:
    made = TaskEvaluator(tmp_path / "state")
    yield made
    made.close()


@pytest.fixture
def service(evaluator: TaskEvaluator, tmp_path: Path) -> Service:
    return Service(evaluator, ReceivedFiles(tmp_path / "received"))


class Noting(BlockingChannel):
    """Asks these requests, and notes replies."""

    def __init__(self, asked: Sequence[Request], happened: list[object]) -> None:
        self._asked = list(asked)
        self._happened = happened

    def receive(self) -> Request | None:
        return self._asked.pop(0) if self._asked else None

    def send(self, message: object) -> None:
        self._happened.append(message)


def noting(call: Callable[..., None], happened: list[object]) -> Callable[..., None]:
    def noted(self: RunningPlan, upper: Timestamp, *, steps: bool) -> None:
        happened.append(f"takes in what is below {upper}")
        call(self, upper, steps=steps)

    return noted


def test_a_tick_is_answered_first(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[object] = []
    monkeypatch.setattr(RunningPlan, "_keep", noting(RunningPlan._keep, happened))
    asked = [create(ONE), tick(ONE, 1, (1, 2)), peek(ONE, 1), tick(ONE, 2, (3, 4)), peek(ONE, 2)]
    service.run(Noting(asked, happened))
    created, first, kept, found, second, kept_again, found_again = happened
    assert isinstance(created, DoneReply)
    assert isinstance(first, UpdatesReply)
    assert isinstance(second, UpdatesReply)
    assert (kept, kept_again) == ("takes in what is below 2", "takes in what is below 3")
    assert rows_of(found) == [((1, 2), 1)]  # type: ignore[arg-type]
    assert rows_of(found_again) == [((1, 2), 1), ((3, 4), 1)]  # type: ignore[arg-type]


def test_whatever_is_asked_next_finds_it_taken_in(service: Service) -> None:
    service.answer(create(ONE))
    service.answer(create(OTHER))
    for ts in (1, 2, 3):
        service.answer(tick(ONE, ts, (ts, 0)))
        service.answer(tick(OTHER, ts, (ts, 0)))
    sizes = service.answer(SizesRequest(OTHER))
    assert isinstance(sizes, SizesReply)
    service.answer(tick(ONE, 4, (4, 0)))
    assert service.answer(CompactRequest(ONE, 4)) == DoneReply()
    assert [row[0] for row, _ in rows_of(service.answer(peek(ONE, 4)))] == [1, 2, 3, 4]
    service.answer(tick(ONE, 5, (5, 0)))
    assert service.answer(DropRequest(ONE)) == DoneReply()
    assert [row[0] for row, _ in rows_of(service.answer(peek(OTHER, 3)))] == [1, 2, 3]


def test_state_that_could_not_take_it_in_is_not_asked_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for dataflow_id in (ONE, OTHER):
        service.answer(create(dataflow_id))
    service.answer(tick(OTHER, 1, (1, 1)))
    with monkeypatch.context() as patched:

        def fail(_: RunningPlan, upper: Timestamp, *, steps: bool) -> None:
            raise RuntimeError("planted")

        service.answer(SizesRequest(OTHER))
        patched.setattr(RunningPlan, "_keep", fail)
        told = service.answer(tick(ONE, 1, (1, 1)))
        assert isinstance(told, UpdatesReply), "that is known by then"
        for request in (tick(ONE, 2, (2, 2)), peek(ONE, 1), SizesRequest(ONE)):
            reply = service.answer(request)
            assert isinstance(reply, FailedReply)
            assert (reply.kind, reply.message) == ("RuntimeError", "planted")
    assert rows_of(service.answer(peek(OTHER, 1))) == [((1, 1), 1)], "it is nobody else's business"
    assert service.answer(DropRequest(ONE)) == DoneReply()
    assert service.answer(create(ONE)) == DoneReply()
    service.answer(tick(ONE, 1, (7, 7)))
    assert rows_of(service.answer(peek(ONE, 1))) == [((7, 7), 1)], "built again"


def test_a_tick_that_fails_leaves_what_was_there(service: Service) -> None:
    service.answer(create(ONE))
    service.answer(tick(ONE, 1, (1, 1)))
    assert isinstance(service.answer(tick(ONE, 0, (2, 2))), FailedReply), "it goes back in time"
    assert isinstance(service.answer(tick(OTHER, 1)), FailedReply), "it was never created"
    service.answer(tick(ONE, 2, (3, 3)))
    assert rows_of(service.answer(peek(ONE, 2))) == [((1, 1), 1), ((3, 3), 1)]


def test_what_is_known_to_be_damaged_is_noticed_before_more_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge beside the ticks finds it; the tick after that must not look into it."""
    evaluator = TaskEvaluator(tmp_path / "state", spill_records=4)
    service = Service(evaluator, ReceivedFiles(tmp_path / "received"))

    def merged(ts: int) -> None:
        told = service.answer(tick(ONE, ts, *[(ts, i) for i in range(5)]))
        assert isinstance(told, UpdatesReply)
        evaluator.keep()
        futures = [running.future for running in evaluator._merging._running.values()]
        assert len(wait(futures, 60).done) == 1

    def damaged(run: Run) -> None:
        raise DamagedRun(f"{run.path} was changed by somebody")

    service.answer(create(ONE))
    merged(1)
    with monkeypatch.context() as patched:
        patched.setattr(Run, "check", damaged)
        merged(2)
    reply = service.answer(tick(ONE, 3, (3, 3)))
    assert isinstance(reply, FailedReply)
    assert reply.kind == "DamagedRun"
    evaluator.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_ArrayMemoryError((1 << 40,), np.dtype(np.int64)), "MemoryError"),
        (pa.ArrowMemoryError(), "MemoryError"),
        (FileNotFoundError(), "OSError"),
        (DamagedRun(), "DamagedRun"),
        (pa.ArrowInvalid(), "ArrowInvalid"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_what_may_pass_is_known_whatever_it_is_called(error: Exception, kind: str) -> None:
    reply = FailedReply.of(error)
    assert reply.kind == kind
    with pytest.raises(EngineFailing if kind in PASSING_KINDS else ResidentFault):
        checked(reply)
