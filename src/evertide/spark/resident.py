"""The driver's side of the resident task: keeps one running, and asks it.

A task may be killed at any moment, and one that was cancelled lives on for seconds. So every
incarnation has its own connection and its own engine object: when the connection ends, that engine
is lost for good, and its state with it; the next incarnation is another engine. Spark runs a killed
task again by itself; a job that ended is submitted again from here.
"""

import asyncio
import hmac
import secrets
import shutil
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from evertide.dataflow.channel import Channel, FrameTooLarge
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.lookup import Lookup
from evertide.dataflow.plan_codec import encode_plan
from evertide.persist.coding.batch import UpdateBatch, no_updates, to_batch
from evertide.spark.arrangement import BelowSince
from evertide.spark.channel import (
    BelowSinceReply,
    CompactRequest,
    CreateRequest,
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
from evertide.spark.engine import EngineLost, Peeked
from evertide.spark.hydrate import Hydrated
from evertide.spark.key_order import LookupRefused
from evertide.spark.operators.arrange import Wanted
from evertide.spark.resident_task import ResidentTask, state_directory
from evertide.spark.session import gateway_process
from evertide.spark.state_files import write_states
from evertide.spark.tables import desc_of
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

JOB_GROUP: Final = "evertide-resident"
HELLO_SECONDS: Final = 10.0
RESUBMIT_SECONDS: Final = 0.2
# Between two looks at whether the task has made ready what a peek needs.
FIRST_PAUSE_SECONDS: Final = 0.005
LONGEST_PAUSE_SECONDS: Final = 0.1
# More rows than this are coded on a thread, so that the replica's loop goes on.
LARGE_ROWS: Final = 2_000
# The same for those that are only copied.
HUGE_ROWS: Final = 50_000

log = structlog.get_logger()
Incoming = Hello | Reply


class ResidentFault(Exception):
    """The task could not carry out a request; a bug, not a state of the world."""

    def __init__(self, reply: FailedReply) -> None:
        super().__init__(f"{reply.kind}: {reply.message}\n{reply.trace}")
        self.kind = reply.kind


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a dataflow's rows look like, going in and coming out."""

    inputs: Mapping[GlobalId, RelationDesc]
    output: RelationDesc

    @classmethod
    def of(cls, plan: DeltaPlan) -> "_Shape":
        return cls(input_descs(plan), desc_of(plan.types))


class ResidentEngine:
    """One incarnation of the task, as an Engine. Raises EngineLost once its connection ended."""

    executor = "resident"

    def __init__(self, channel: Channel[Incoming], hello: Hello) -> None:
        self.hello = hello
        self._channel = channel
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._lost = False
        self._shapes: dict[GlobalId, _Shape] = {}
        self._due: dict[GlobalId, int | None] = {}

    async def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
    ) -> None:
        self._shapes[dataflow_id] = _Shape.of(plan)
        await self._ask(CreateRequest(dataflow_id, encode_plan(plan), index_key, as_of))

    async def load(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        hydrated: Hydrated,
        *,
        index_key: tuple[int, ...] | None,
        directory: Path,
    ) -> None:
        """Make a dataflow whose first tick follows what Spark hydrated.

        `directory` is for files on the way, private to this call; it is gone afterwards.
        """
        self._shapes[dataflow_id] = _Shape.of(plan)
        try:
            await asyncio.to_thread(write_states, directory, plan, hydrated.states)
            await self._ask(
                LoadRequest(
                    dataflow_id, encode_plan(plan), index_key, hydrated.as_of, str(directory)
                )
            )
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Mapping[GlobalId, Sequence[Update]],
        lower: Timestamp,
        upper: Timestamp,
    ) -> UpdateBatch:
        """Batches go to the task and come from it as bytes, which nobody here looks into."""
        shape = self._shapes[dataflow_id]
        batches = {g: to_batch(shape.inputs[g], u) for g, u in inputs.items() if len(u)}
        if any(map(_takes_long, batches.values())):
            encoded = await asyncio.to_thread(_encode_inputs, batches)
        else:
            encoded = _encode_inputs(batches)
        reply = await self._ask(TickRequest(dataflow_id, encoded, lower, upper))
        assert isinstance(reply, UpdatesReply), "a tick gives updates"
        self._due[dataflow_id] = reply.due
        if not reply.count:
            return no_updates(shape.output)
        span = (Timestamp(reply.first), Timestamp(reply.last))
        return UpdateBatch(shape.output, payload=reply.updates, count=reply.count, span=span)

    def due(self, dataflow_id: GlobalId) -> Timestamp | None:
        due = self._due.get(dataflow_id)
        return None if due is None else Timestamp(due)

    async def peek(self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp) -> Peeked:
        types = self._shapes[dataflow_id].output.types
        if keys is None or isinstance(keys, Lookup):
            request = PeekRequest(dataflow_id, None, as_of, keys)
        else:
            request = PeekRequest(dataflow_id, encode_rows([(key, 1) for key in keys], []), as_of)
        pause = FIRST_PAUSE_SECONDS
        while isinstance(reply := await self._ask(request), PendingReply):
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        if isinstance(reply, RefusedReply):
            raise LookupRefused(reply.reason)
        assert isinstance(reply, UpdatesReply), "a peek gives rows"
        return Peeked(*decode_rows(types, reply.updates))

    async def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        await self._ask(CompactRequest(dataflow_id, since))

    async def drop(self, dataflow_id: GlobalId) -> None:
        self._shapes.pop(dataflow_id, None)
        self._due.pop(dataflow_id, None)
        await self._ask(DropRequest(dataflow_id))

    async def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        """How large the dataflow's state is, by name."""
        reply = await self._ask(SizesRequest(dataflow_id))
        assert isinstance(reply, SizesReply), "sizes give sizes"
        return reply.sizes

    async def listen(self) -> None:
        """Take the task's replies until the connection ends; then every waiting call is lost."""
        try:
            while (reply := await self._channel.receive()) is not None:
                if isinstance(reply, Hello) or not self._waiting:
                    log.error("resident task spoke out of turn", pid=self.hello.pid)
                    return
                future = self._waiting.popleft()
                if not future.done():
                    future.set_result(reply)
        finally:
            self.close()

    def close(self) -> None:
        """End the incarnation: the task finds its socket closed and returns."""
        self._lost = True
        self._channel.close()
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(EngineLost(self))

    async def _ask(self, request: Request) -> Reply:
        """Replies come in the order of requests, and nothing waits between the next two lines."""
        if self._lost:
            raise EngineLost(self)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await self._channel.send(request)
        except ConnectionError:
            raise EngineLost(self) from None
        except FrameTooLarge:
            # It was not sent, so no reply will come.
            self._waiting.remove(future)
            raise
        reply = await future
        match reply:
            case FailedReply():
                raise ResidentFault(reply)
            case BelowSinceReply(as_of=as_of, since=since):
                raise BelowSince(Timestamp(as_of), Timestamp(since))
            case _:
                return reply


class Resident:
    """Keeps one resident task running and tells which incarnation is the one to use.

    `on_ready` gets each new engine, `on_lost` each that ended, `on_dead` is called when the JVM
    itself has ended and no task will ever come again; all are called on the loop.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: Path,
        *,
        on_ready: Callable[[ResidentEngine], None],
        on_lost: Callable[[ResidentEngine], None],
        on_dead: Callable[[], None] | None = None,
    ) -> None:
        self._jobs = _JobThread(session, directory, self._spark_died)
        self._directory = directory
        self._on_ready = on_ready
        self._on_lost = on_lost
        self._on_dead = on_dead
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: asyncio.Server | None = None
        self._current: ResidentEngine | None = None

    async def start(self) -> None:
        """Listen, then submit the job; `on_ready` follows when the task has said hello."""
        for part in ("socket", "state"):
            (self._directory / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._loop = asyncio.get_running_loop()
        with socket_address(self._directory / "socket") as address:
            self._server = await asyncio.start_unix_server(self._serve, address)
        self._jobs.start()

    async def stop(self) -> None:
        """Let the task return, and the job end."""
        self._jobs.stopping.set()
        if self._server is not None:
            self._server.close()
        if self._current is not None:
            self._current.close()
        await asyncio.to_thread(self._jobs.join, HELLO_SECONDS)
        await asyncio.to_thread(shutil.rmtree, self._directory / "state", ignore_errors=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a task that proves who it is replaces the one before it."""
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(Incoming))
        try:
            hello = await asyncio.wait_for(channel.receive(), HELLO_SECONDS)
        except (TimeoutError, msgspec.DecodeError):
            hello = None
        if not isinstance(hello, Hello) or not self._is_newest(hello):
            channel.close()
            return
        engine = ResidentEngine(channel, hello)
        if self._current is not None:
            self._current.close()
        self._current = engine
        log.info("resident task is up", pid=hello.pid, job=hello.job, attempt=hello.attempt)
        self._on_ready(engine)
        try:
            await engine.listen()
        finally:
            log.info("resident task is gone", pid=hello.pid)
            self._on_lost(engine)
            state = state_directory(self._directory / "state", hello.job, hello.attempt)
            await asyncio.to_thread(shutil.rmtree, state, ignore_errors=True)

    def _spark_died(self) -> None:
        """Called on the job's thread."""
        if self._loop is not None and self._on_dead is not None:
            self._loop.call_soon_threadsafe(self._on_dead)

    def _is_newest(self, hello: Hello) -> bool:
        if not hmac.compare_digest(hello.token, self._jobs.token):
            return False
        current = self._current
        return current is None or (hello.job, hello.attempt) > (
            current.hello.job,
            current.hello.attempt,
        )


class _JobThread(threading.Thread):
    """Submits the job, waits for its end, and submits it again.

    A thread of its own, because Spark's call returns only when the job has ended. Every job has a
    fresh token, so that what is left of an earlier one cannot take its place.
    """

    def __init__(self, session: SparkSession, directory: Path, on_dead: Callable[[], None]) -> None:
        super().__init__(name="resident-job", daemon=True)
        self._context = session.sparkContext
        self._jvm = gateway_process(session)
        self._directory = directory
        self._on_dead = on_dead
        self.token = secrets.token_bytes(32)
        self.stopping = threading.Event()

    def run(self) -> None:
        job = 0
        while not self.stopping.is_set():
            if self._jvm is not None and self._jvm.poll() is not None:
                log.error("spark is gone", exit_code=self._jvm.returncode)
                self._on_dead()
                return
            job += 1
            self.token = secrets.token_bytes(32)
            self._run_job(job)
            self.stopping.wait(RESUBMIT_SECONDS)

    def _run_job(self, job: int) -> None:
        task = ResidentTask(
            str(self._directory / "socket"), str(self._directory / "state"), self.token, job
        )
        try:
            self._context.setJobGroup(JOB_GROUP, "the resident task", interruptOnCancel=False)
            self._context.parallelize([0], 1).mapPartitions(task).collect()
        except (Py4JError, PySparkException, OSError) as error:
            if not self.stopping.is_set():
                log.warning("resident job ended", job=job, reason=type(error).__name__)


def _takes_long(batch: UpdateBatch) -> bool:
    return len(batch) > (HUGE_ROWS if batch.columnar else LARGE_ROWS)


def _encode_inputs(inputs: Mapping[GlobalId, UpdateBatch]) -> dict[str, bytes]:
    return {str(global_id): batch.payload for global_id, batch in inputs.items()}
