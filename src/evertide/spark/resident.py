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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from evertide.dataflow.channel import Channel
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.lookup import Lookup
from evertide.dataflow.plan_codec import encode_plan
from evertide.dataflow.read_columns import read_columns
from evertide.persist.coding.batch import UpdateBatch, to_batch
from evertide.spark.building.encoded_inputs import encoded_inputs
from evertide.spark.channel import (
    CompactRequest,
    CreateRequest,
    DropRequest,
    Hello,
    LoadRequest,
    PeekRequest,
    SizesReply,
    SizesRequest,
    TickRequest,
    UpdatesReply,
    decode_rows,
    encode_rows,
    input_descs,
    socket_address,
    updates_told,
)
from evertide.spark.engine import Inputs, Peeked
from evertide.spark.operators.arrange import Wanted
from evertide.spark.partitions.asking import peek_reply, send_files
from evertide.spark.partitions.connection import Connection, Incoming, ResidentFault
from evertide.spark.resident_task import AnyHost, ResidentTask, SameHost, state_directory
from evertide.spark.session import gateway_process
from evertide.spark.tables import desc_of
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

JOB_GROUP: Final = "evertide-resident"
HELLO_SECONDS: Final = 10.0
HELLO_BYTES: Final = 1_024
RESUBMIT_SECONDS: Final = 0.2
# More rows than this are coded on a thread, so that the replica's loop goes on.
LARGE_ROWS: Final = 2_000
# The same for those that are only copied.
HUGE_ROWS: Final = 50_000

__all__ = ["Resident", "ResidentEngine", "ResidentFault"]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a dataflow's rows look like, going in and coming out."""

    inputs: Mapping[GlobalId, RelationDesc]
    # The columns that the plan looks at.
    read: Mapping[GlobalId, frozenset[int]]
    output: RelationDesc

    @classmethod
    def of(cls, plan: DeltaPlan) -> "_Shape":
        return cls(input_descs(plan), read_columns(plan), desc_of(plan.types))


class ResidentEngine:
    """One incarnation of the task, as an Engine. Raises EngineLost once its connection ended."""

    executor = "resident"

    def __init__(self, connection: Connection, *, same_host: bool = True) -> None:
        self.connection = connection
        connection.owner = self
        self._same_host = same_host
        self._shapes: dict[GlobalId, _Shape] = {}
        self._due: dict[GlobalId, int | None] = {}

    @property
    def hello(self) -> Hello:
        """What the task said of itself."""
        return self.connection.hello

    async def create(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        whole_from: Timestamp | None = None,
    ) -> None:
        self._shapes[dataflow_id] = _Shape.of(plan)
        request = CreateRequest(
            dataflow_id, encode_plan(plan), index_key, as_of, whole_from=whole_from
        )
        await self.connection.ask(request)

    async def load(
        self,
        dataflow_id: GlobalId,
        plan: DeltaPlan,
        *,
        index_key: tuple[int, ...] | None,
        as_of: Timestamp,
        directory: Path,
    ) -> None:
        """Make a dataflow whose first tick follows what Spark hydrated.

        Its states are the files of `directory`. A task that may be elsewhere is sent what is in
        them.
        """
        await self.drop(dataflow_id)  # and what is left of a load that failed
        self._shapes[dataflow_id] = _Shape.of(plan)
        if not self._same_host:
            await send_files(self.connection, dataflow_id, directory)
        place = str(directory) if self._same_host else None
        await self.connection.ask(
            LoadRequest(dataflow_id, encode_plan(plan), index_key, as_of, place)
        )

    async def prepared(self, dataflow_id: GlobalId, inputs: Inputs) -> Inputs:
        """As bytes, of which there are fewer the fewer columns the plan looks at."""
        shape = self._shapes[dataflow_id]
        return await asyncio.to_thread(encoded_inputs, shape.inputs, shape.read, inputs)

    async def tick(
        self,
        dataflow_id: GlobalId,
        inputs: Inputs,
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
        reply = await self.connection.ask(TickRequest(dataflow_id, encoded, lower, upper))
        assert isinstance(reply, UpdatesReply), "a tick gives updates"
        self._due[dataflow_id] = reply.due
        return updates_told(shape.output, reply)

    def due(self, dataflow_id: GlobalId) -> Timestamp | None:
        due = self._due.get(dataflow_id)
        return None if due is None else Timestamp(due)

    async def peek(self, dataflow_id: GlobalId, keys: Wanted, as_of: Timestamp) -> Peeked:
        types = self._shapes[dataflow_id].output.types
        if keys is None or isinstance(keys, Lookup):
            request = PeekRequest(dataflow_id, None, as_of, keys)
        else:
            request = PeekRequest(dataflow_id, encode_rows([(key, 1) for key in keys], []), as_of)
        reply = await peek_reply(self.connection, request)
        return Peeked(*decode_rows(types, reply.updates))

    async def allow_compaction(self, dataflow_id: GlobalId, since: Timestamp) -> None:
        await self.connection.ask(CompactRequest(dataflow_id, since))

    async def drop(self, dataflow_id: GlobalId) -> None:
        self._shapes.pop(dataflow_id, None)
        self._due.pop(dataflow_id, None)
        await self.connection.ask(DropRequest(dataflow_id))

    async def sizes(self, dataflow_id: GlobalId) -> Mapping[str, int]:
        """How large the dataflow's state is, by name."""
        reply = await self.connection.ask(SizesRequest(dataflow_id))
        assert isinstance(reply, SizesReply), "sizes give sizes"
        return reply.sizes


class Resident:
    """Keeps one resident task running and tells which incarnation is the one to use.

    The task comes through a Unix socket in the directory; or, where it may be on another host,
    to this `address`, and any free port. `on_ready` gets each new engine, `on_lost` each that
    ended, `on_dead` is called when the JVM itself has ended and no task will ever come again; all
    are called on the loop.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: Path,
        *,
        address: str | None = None,
        on_ready: Callable[[ResidentEngine], None],
        on_lost: Callable[[ResidentEngine], None],
        on_dead: Callable[[], None] | None = None,
    ) -> None:
        self._jobs = _JobThread(session)
        self._directory = directory
        self._address = address
        self._on_ready = on_ready
        self._on_lost = on_lost
        self._on_dead = on_dead
        self._server: asyncio.Server | None = None
        self._current: ResidentEngine | None = None

    async def start(self) -> None:
        """Listen, then submit the job; `on_ready` follows when the task has said hello."""
        if self._on_dead is not None:
            loop = asyncio.get_running_loop()
            self._jobs.on_dead = partial(loop.call_soon_threadsafe, self._on_dead)
        self._server, self._jobs.driver = await self._listen()
        self._jobs.start()

    async def _listen(self) -> tuple[asyncio.Server, SameHost | AnyHost]:
        if self._address is not None:
            server = await asyncio.start_server(self._serve, self._address, 0)
            return server, AnyHost(self._address, server.sockets[0].getsockname()[1])
        own, state = self._directory / "socket", self._directory / "state"
        for directory in (own, state):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with socket_address(own) as address:
            server = await asyncio.start_unix_server(self._serve, address)
        return server, SameHost(str(own), str(state))

    async def stop(self) -> None:
        """Let the task return, and the job end."""
        self._jobs.stopping.set()
        if self._server is not None:
            self._server.close()
        if self._current is not None:
            self._current.connection.close()
        await asyncio.to_thread(self._jobs.join, HELLO_SECONDS)
        await asyncio.to_thread(shutil.rmtree, self._directory / "state", ignore_errors=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a task that proves who it is replaces the one before it."""
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(Incoming))
        hello = await _first_words(reader)
        if hello is None or not self._is_newest(hello):
            channel.close()
            return
        connection = Connection(channel, hello)
        engine = ResidentEngine(connection, same_host=self._address is None)
        if self._current is not None:
            self._current.connection.close()
        self._current = engine
        log.info("resident task is up", pid=hello.pid, job=hello.job, attempt=hello.attempt)
        self._on_ready(engine)
        try:
            await engine.connection.listen()
        finally:
            log.info("resident task is gone", pid=hello.pid)
            self._on_lost(engine)
            state = state_directory(self._directory / "state", hello.job, hello.attempt)
            await asyncio.to_thread(shutil.rmtree, state, ignore_errors=True)

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

    def __init__(self, session: SparkSession) -> None:
        super().__init__(name="resident-job", daemon=True)
        self._context = session.sparkContext
        self._jvm = gateway_process(session)
        self.on_dead: Callable[[], object] | None = None
        # Where the task finds us; known before the thread is started.
        self.driver: SameHost | AnyHost | None = None
        self.token = secrets.token_bytes(32)
        self.stopping = threading.Event()

    def run(self) -> None:
        job = 0
        while not self.stopping.is_set():
            if self._jvm is not None and self._jvm.poll() is not None:
                log.error("spark is gone", exit_code=self._jvm.returncode)
                if self.on_dead is not None:
                    self.on_dead()
                return
            job += 1
            self.token = secrets.token_bytes(32)
            self._run_job(job)
            self.stopping.wait(RESUBMIT_SECONDS)

    def _run_job(self, job: int) -> None:
        assert self.driver is not None, "we listen before a task is asked to come"
        task = ResidentTask(self.driver, self.token, job)
        try:
            self._context.setJobGroup(JOB_GROUP, "the resident task", interruptOnCancel=False)
            self._context.parallelize([0], 1).mapPartitions(task).collect()
        except (Py4JError, PySparkException, OSError) as error:
            if not self.stopping.is_set():
                log.warning("resident job ended", job=job, reason=type(error).__name__)


async def _first_words(reader: asyncio.StreamReader) -> Hello | None:
    """What a task says of itself. Whoever is not known yet is not believed a long message."""
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            length = int.from_bytes(await reader.readexactly(4), "big")
            if length > HELLO_BYTES:
                return None
            return msgspec.msgpack.decode(await reader.readexactly(length), type=Hello)
    except (TimeoutError, msgspec.DecodeError, asyncio.IncompleteReadError, ConnectionError):
        return None


def _takes_long(batch: UpdateBatch) -> bool:
    return len(batch) > (HUGE_ROWS if batch.columnar else LARGE_ROWS)


def _encode_inputs(inputs: Mapping[GlobalId, UpdateBatch]) -> dict[str, bytes]:
    return {str(global_id): batch.payload for global_id, batch in inputs.items()}
