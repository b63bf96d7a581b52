"""The body of the resident task: an evaluator that lives as long as its driver talks to it.

To Spark it is one ordinary task of one ordinary job that does not end. It runs in a Python worker,
which imports this module; what it needs travels in a ResidentTask.
"""

import os
import socket
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

import msgspec
from pyspark import TaskContext

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.plan_codec import decode_plan
from evertide.expr.relation import Types
from evertide.persist.coding.batch import UpdateBatch, from_payload, to_batch
from evertide.spark.arrangement import BelowSince
from evertide.spark.channel import (
    BelowSinceReply,
    BlockingChannel,
    CompactRequest,
    CreateRequest,
    DoneReply,
    DropRequest,
    FailedReply,
    Hello,
    LoadRequest,
    PeekRequest,
    PendingReply,
    RefusedReply,
    Reply,
    Request,
    SizesReply,
    SizesRequest,
    TickRequest,
    UpdatesReply,
    decode_rows,
    encode_rows,
    input_descs,
    socket_address,
)
from evertide.spark.evaluate import Evaluator
from evertide.spark.key_order import LookupRefused, OrderPending
from evertide.spark.operators.arrange import Wanted
from evertide.spark.state_files import read_states
from evertide.spark.tables import desc_of
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp, step_forward


@dataclass(frozen=True, slots=True)
class ResidentTask:
    """What mapPartitions is given. `token` proves to the driver that it is its own task."""

    socket_directory: str
    state_directory: str
    token: bytes
    job: int

    def __call__(self, partition: Iterable[int]) -> Iterator[int]:
        """Serve until the driver closes the socket; gives no rows."""
        del partition
        context = TaskContext.get()
        assert context is not None, "a resident task runs inside Spark"
        attempt = context.attemptNumber()
        state = state_directory(Path(self.state_directory), self.job, attempt)
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        connected = connect(Path(self.socket_directory))
        with connected:
            channel = BlockingChannel(connected)
            channel.send(Hello(self.token, self.job, attempt, os.getpid()))
            evaluator = Evaluator(state)
            try:
                Service(evaluator).run(channel)
            finally:
                evaluator.close()
        return iter(())


def state_directory(parent: Path, job: int, attempt: int) -> Path:
    """Where one incarnation keeps its runs; nobody else's, and gone with it."""
    return parent / f"{job}-{attempt}"


def connect(directory: Path) -> socket.socket:
    """A connection to the driver that listens in this directory."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with socket_address(directory) as address:
        connected.connect(address)
    return connected


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a dataflow's rows look like, to read and write them by."""

    inputs: Mapping[GlobalId, RelationDesc]
    output: Types
    index_key: tuple[int, ...] | None

    @classmethod
    def of(cls, plan: DeltaPlan, index_key: tuple[int, ...] | None) -> "_Shape":
        return cls(input_descs(plan), plan.types, index_key)


class Service:
    """Answers one driver's requests, one after another."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._shapes: dict[GlobalId, _Shape] = {}

    def run(self, channel: BlockingChannel) -> None:
        """Until the driver closes its end."""
        while (request := channel.receive()) is not None:
            channel.send(self._guarded_answer(request))

    def _guarded_answer(self, request: Request) -> Reply:
        """A bug met by one dataflow must not take the others' state with it."""
        try:
            return self._answer(request)
        except BelowSince as refusal:
            return BelowSinceReply(refusal.as_of, refusal.since)
        except OrderPending:
            return PendingReply()
        except LookupRefused as refusal:
            return RefusedReply(str(refusal))
        except Exception as error:  # noqa: BLE001  # this loop owns the task
            return FailedReply(type(error).__name__, str(error), traceback.format_exc())

    def _answer(self, request: Request) -> Reply:
        dataflow_id = GlobalId(request.dataflow_id)
        match request:
            case CreateRequest():
                return self._create(dataflow_id, request)
            case LoadRequest():
                return self._load(dataflow_id, request)
            case TickRequest():
                return self._tick(dataflow_id, request)
            case PeekRequest():
                return self._peek(dataflow_id, request)
            case CompactRequest(since=since):
                self._evaluator.allow_compaction(dataflow_id, Timestamp(since))
                return DoneReply()
            case DropRequest():
                self._shapes.pop(dataflow_id, None)
                self._evaluator.drop(dataflow_id)
                return DoneReply()
            case SizesRequest():
                return SizesReply(dict(self._evaluator.sizes(dataflow_id)))
            case _:
                assert_never(request)

    def _create(self, dataflow_id: GlobalId, request: CreateRequest) -> Reply:
        plan = decode_plan(request.plan)
        self._shapes[dataflow_id] = _Shape.of(plan, request.index_key)
        as_of = Timestamp(request.as_of)
        self._evaluator.create(dataflow_id, plan, index_key=request.index_key, as_of=as_of)
        return DoneReply()

    def _load(self, dataflow_id: GlobalId, request: LoadRequest) -> Reply:
        plan = decode_plan(request.plan)
        as_of = Timestamp(request.as_of)
        states = read_states(Path(request.directory), plan)
        self._shapes[dataflow_id] = _Shape.of(plan, request.index_key)
        self._evaluator.create(dataflow_id, plan, index_key=request.index_key, as_of=as_of)
        self._evaluator.load_state(dataflow_id, states, step_forward(as_of))
        return DoneReply()

    def _tick(self, dataflow_id: GlobalId, request: TickRequest) -> Reply:
        shape = self._shapes[dataflow_id]
        inputs = {
            GlobalId(g): from_payload(shape.inputs[GlobalId(g)], encoded)
            for g, encoded in request.inputs.items()
        }
        lower, upper = Timestamp(request.lower), Timestamp(request.upper)
        output = self._evaluator.tick(dataflow_id, inputs, lower, upper)
        reply = tick_reply(to_batch(desc_of(shape.output), output))
        due = self._evaluator.due.get(dataflow_id)
        return reply if due is None else msgspec.structs.replace(reply, due=due)

    def _peek(self, dataflow_id: GlobalId, request: PeekRequest) -> Reply:
        shape = self._shapes[dataflow_id]
        keys: Wanted = request.lookup
        if request.keys is not None:
            assert shape.index_key is not None, f"{dataflow_id} is not an index"
            types = tuple(shape.output[i] for i in shape.index_key)
            keys = [row for row, _ in decode_rows(types, request.keys)[0]]
        rows, errors = self._evaluator.peek(dataflow_id, keys, Timestamp(request.as_of))
        return UpdatesReply(encode_rows(rows, errors))


def tick_reply(output: UpdateBatch) -> UpdatesReply:
    """A tick's output, with what its driver wants to know of it without reading it."""
    if not len(output):
        return UpdatesReply(b"")
    return UpdatesReply(output.payload, len(output), *output.span)
