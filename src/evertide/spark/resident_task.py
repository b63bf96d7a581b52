"""The body of the resident task: an evaluator that lives as long as its driver talks to it.

To Spark it is one ordinary task of one ordinary job that does not end. It runs in a Python worker,
which imports this module; what it needs travels in a ResidentTask.
"""

import os
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

import msgspec
from pyspark import TaskContext

from evertide.dataflow.channel import FrameTooLarge
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.plan_codec import decode_plan
from evertide.dataflow.stages import StageNode, cut
from evertide.expr.relation import Types
from evertide.persist.coding.batch import UpdateBatch, from_payload, to_batch
from evertide.spark.arrangements.arrangement import BelowSince
from evertide.spark.arrangements.key_order import LookupRefused, OrderPending
from evertide.spark.building.state_files import read_states
from evertide.spark.channel import (
    BelowSinceReply,
    BlockingChannel,
    CompactRequest,
    CreateRequest,
    DoneReply,
    DropRequest,
    FailedReply,
    FileRequest,
    Hello,
    LoadRequest,
    PeekRequest,
    PendingReply,
    RefusedReply,
    Reply,
    Request,
    SizesReply,
    SizesRequest,
    StageReply,
    StageRequest,
    TickRequest,
    UpdatesReply,
    decode_rows,
    encode_rows,
    input_descs,
    socket_address,
)
from evertide.spark.operators.arrange import Wanted
from evertide.spark.operators.changes import delta_of
from evertide.spark.partitions.coding import encode_delta
from evertide.spark.partitions.evaluator import KeepFailed, TaskEvaluator
from evertide.spark.partitions.received import ReceivedFiles
from evertide.spark.partitions.running import StageTurn
from evertide.spark.partitions.share import Share
from evertide.spark.tables import desc_of
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp, step_forward

CONNECT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class SameHost:
    """The driver's directories: of its socket, and for the state of all incarnations."""

    socket_directory: str
    state_directory: str

    def connect(self) -> socket.socket:
        """A connection to the driver."""
        return connect(Path(self.socket_directory))

    @contextmanager
    def state(self, job: int, attempt: int) -> Iterator[Path]:
        """A directory for one incarnation, which the driver removes once it is gone."""
        state = state_directory(Path(self.state_directory), job, attempt)
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield state


@dataclass(frozen=True, slots=True)
class AnyHost:
    """Where the driver listens; the state lies wherever Spark lets the task put files."""

    host: str
    port: int

    def connect(self) -> socket.socket:
        """A connection to the driver."""
        connected = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
        connected.settimeout(None)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    @contextmanager
    def state(self, job: int, attempt: int) -> Iterator[Path]:
        """A directory for one incarnation; if that is killed, Spark removes it with its own."""
        local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
        with tempfile.TemporaryDirectory(dir=local, prefix=f"evertide-{job}-{attempt}-") as state:
            yield Path(state)


@dataclass(frozen=True, slots=True)
class ResidentTask:
    """What mapPartitions is given. `token` proves to the driver that it is its own task."""

    driver: SameHost | AnyHost
    token: bytes
    job: int

    def __call__(self, partition: Iterable[int]) -> Iterator[int]:
        """Serve until the driver closes the socket; gives no rows."""
        del partition
        context = TaskContext.get()
        assert context is not None, "a resident task runs inside Spark"
        attempt = context.attemptNumber()
        with self.driver.state(self.job, attempt) as state, self.driver.connect() as connected:
            channel = BlockingChannel(connected)
            channel.send(Hello(self.token, self.job, attempt, os.getpid()))
            evaluator = TaskEvaluator(state)
            try:
                Service(evaluator, ReceivedFiles(state / "received")).run(channel)
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
    # Those of a plan in stages, where this task has a share only.
    nodes: Sequence[StageNode] = ()

    @classmethod
    def of(
        cls, plan: DeltaPlan, index_key: tuple[int, ...] | None, share: Share | None
    ) -> "_Shape":
        nodes = () if share is None else cut(plan, index_key).nodes
        return cls(input_descs(plan), plan.types, index_key, nodes)


class Service:
    """Answers one driver's requests, one after another."""

    def __init__(self, evaluator: TaskEvaluator, received: ReceivedFiles) -> None:
        self._evaluator = evaluator
        self._received = received
        self._shapes: dict[GlobalId, _Shape] = {}
        # Those whose state could not take in what was told.
        self._broken: dict[str, FailedReply] = {}

    def run(self, channel: BlockingChannel) -> None:
        """Until the driver closes its end. State takes changes in, and garbage is collected, while
        nobody waits for a reply.
        """
        while (request := channel.receive()) is not None:
            with self._evaluator.garbage.left_alone():
                reply = self.answer(request)
                try:
                    channel.send(reply)
                except FrameTooLarge as error:
                    # Nothing of it was sent: what is too large for one answer is its own failure.
                    channel.send(FailedReply(type(error).__name__, str(error), ""))
                self._take_in()

    def answer(self, request: Request) -> Reply:
        """A bug met by one dataflow must not take the others' state with it."""
        self._take_in()
        try:
            if isinstance(request, CreateRequest | LoadRequest | DropRequest):
                self._broken.pop(request.dataflow_id, None)
            if (broken := self._broken.get(request.dataflow_id)) is not None:
                return broken
            return self._answer(request)
        except BelowSince as refusal:
            return BelowSinceReply(refusal.as_of, refusal.since)
        except OrderPending:
            return PendingReply()
        except LookupRefused as refusal:
            return RefusedReply(str(refusal))
        except Exception as error:  # noqa: BLE001  # this loop owns the task
            return FailedReply.of(error)

    def _take_in(self) -> None:
        """What was told is state from now on. If that fails, whoever asks next is told."""
        try:
            self._evaluator.keep()
        except KeepFailed as failed:
            self._broken[failed.dataflow_id] = FailedReply.of(
                failed.__cause__ or failed, broken=True
            )

    def _answer(self, request: Request) -> Reply:
        dataflow_id = GlobalId(request.dataflow_id)
        match request:
            case CreateRequest():
                return self._create(dataflow_id, request)
            case LoadRequest():
                return self._load(dataflow_id, request)
            case TickRequest():
                return self._tick(dataflow_id, request)
            case StageRequest():
                return self._stage(dataflow_id, request)
            case FileRequest(name=name, content=content):
                self._received.add(dataflow_id, name, content)
                return DoneReply()
            case PeekRequest():
                return self._peek(dataflow_id, request)
            case CompactRequest(since=since):
                self._evaluator.allow_compaction(dataflow_id, Timestamp(since))
                return DoneReply()
            case DropRequest():
                self._shapes.pop(dataflow_id, None)
                self._received.forget(dataflow_id)
                self._evaluator.drop(dataflow_id)
                return DoneReply()
            case SizesRequest():
                return SizesReply(dict(self._evaluator.sizes(dataflow_id)))
            case _:
                assert_never(request)

    def _create(self, dataflow_id: GlobalId, request: CreateRequest | LoadRequest) -> Reply:
        plan = decode_plan(request.plan)
        share = Share(request.number, request.count) if request.count else None
        self._shapes[dataflow_id] = _Shape.of(plan, request.index_key, share)
        as_of = Timestamp(request.as_of)
        whole_from = request.whole_from if isinstance(request, CreateRequest) else None
        self._evaluator.create(
            dataflow_id,
            plan,
            index_key=request.index_key,
            as_of=as_of,
            share=share,
            whole_from=None if whole_from is None else Timestamp(whole_from),
        )
        return DoneReply()

    def _load(self, dataflow_id: GlobalId, request: LoadRequest) -> Reply:
        sent = request.directory is None
        directory = self._received.of(dataflow_id) if sent else Path(request.directory or "")
        try:
            states = read_states(directory, decode_plan(request.plan))
            self._create(dataflow_id, request)
            upper = step_forward(Timestamp(request.as_of))
            self._evaluator.load_state(dataflow_id, states, upper)
        finally:
            self._received.forget(dataflow_id)
        return DoneReply()

    def _tick(self, dataflow_id: GlobalId, request: TickRequest) -> Reply:
        shape = self._shapes[dataflow_id]
        inputs = {
            GlobalId(g): from_payload(shape.inputs[GlobalId(g)], encoded)
            for g, encoded in request.inputs.items()
        }
        lower, upper = Timestamp(request.lower), Timestamp(request.upper)
        output = self._evaluator.begin(dataflow_id, inputs, lower, upper)
        reply = tick_reply(to_batch(desc_of(shape.output), output))
        due = self._evaluator.due.get(dataflow_id)
        return reply if due is None else msgspec.structs.replace(reply, due=due)

    def _stage(self, dataflow_id: GlobalId, request: StageRequest) -> Reply:
        shape = self._shapes[dataflow_id]
        received = {
            position: [
                delta_of(from_payload(desc_of(shape.nodes[position].types), part)) for part in parts
            ]
            for position, parts in request.received.items()
        }
        span = Timestamp(request.lower), Timestamp(request.upper)
        turn = StageTurn(request.first, request.last, received, *span)
        result = self._evaluator.turn(dataflow_id, turn)
        sent = {
            position: [encode_delta(shape.nodes[position].types, delta) for delta in parts]
            for position, parts in result.sent.items()
        }
        reply = tick_reply(to_batch(desc_of(shape.output), result.output))
        reply = msgspec.structs.replace(reply, due=self._evaluator.due.get(dataflow_id))
        return StageReply(sent, reply, result.failed, result.quiet)

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
