"""An adapter's client of a cluster: sends peeks to all its replicas, and the first answer wins; has
one of them compute a query over much data.

A replica is found by the socket that carries its process's name in the generation's private
directory. A replica that is away, restarting or behind costs time, never a wrong answer: the caller
can always read the shards instead.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import structlog

from evertide.catalog.snapshot import Snapshot
from evertide.controller.orchestrator import POOL, SUPERVISOR, process_name
from evertide.dataflow.channel import Channel
from evertide.dataflow.lookup import Lookup
from evertide.dataflow.protocol import (
    AcknowledgeCommand,
    BatchResponse,
    CancelCommand,
    ChangesCommand,
    Command,
    FactsResponse,
    FailedResponse,
    IntrospectCommand,
    PeekIndexCommand,
    RefusedResponse,
    Response,
    ResultResponse,
    RowsResponse,
    SelectCommand,
    SubscribeCommand,
)
from evertide.persist.coding.inline import decode_inline
from evertide.vocab.errors import DataError, IoError, SqlError
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

log = structlog.get_logger()

# A replica that has not read so much is not asked any more until it has.
MAX_UNSENT_BYTES: Final = 4 << 20

# More requests that wait for what is yet to be computed are not sent to a replica.
MAX_LASTING: Final = 512

# A replica that is down or hangs must not keep anybody from what the others report.
INTROSPECT_SECONDS = 2.0

# A row of a system relation as a replica reports it.
Facts: TypeAlias = tuple[str | int | float | bool | None, ...]


# Takes what a replica says to a subscribe or a select; None once it went away.
OnResponse: TypeAlias = Callable[[Response | None], None]


class Unanswered(Exception):
    """No replica could answer: none is there, or those that are refused."""


def replica_processes(snapshot: Snapshot, cluster_id: ClusterId) -> list[str]:
    """The processes that run a cluster's replicas."""
    names = [process_name(replica) for replica in snapshot.replicas_of(cluster_id)]
    return list(dict.fromkeys(names))


class ReplicaConnection:
    """One socket to one replica; requests are answered in any order."""

    def __init__(self, channel: Channel[Response]) -> None:
        self._channel = channel
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        # Who takes the many responses of a subscribe or a select.
        self._streams: dict[int, OnResponse] = {}
        self._ended = False
        channel.push(self._take, self._end)

    @property
    def closed(self) -> bool:
        return self._ended

    @property
    def is_deaf(self) -> bool:
        """Whether the replica leaves unread what it was sent."""
        return self._channel.unsent_bytes > MAX_UNSENT_BYTES

    @property
    def stream_count(self) -> int:
        """How many subscribes and selects it has to do with."""
        return len(self._streams)

    def _take(self, response: Response) -> None:
        on_response = self._streams.get(response.request_id)
        if on_response is not None:
            on_response(response)
            return
        future = self._waiting.pop(response.request_id, None)
        if future is not None and not future.done():
            future.set_result(response)

    def _end(self, fault: Exception | None) -> None:
        """The other end closed, or is not to be understood."""
        if fault is not None:
            log.error("a replica sent what cannot be read", reason=str(fault))
        self._ended = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Unanswered("the replica went away"))
        self._waiting.clear()
        streams, self._streams = self._streams, {}
        for on_response in streams.values():
            on_response(None)

    async def request(self, request_id: int, command: Command) -> Response:
        """Send and wait. Cancelling the caller tells the replica to forget it."""
        if self.closed:
            raise Unanswered("the replica went away")
        if self.is_deaf:
            raise Unanswered("the replica does not listen")
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            await self._channel.send(command)
            return await future
        except ConnectionError as error:
            raise Unanswered("the replica went away") from error
        except asyncio.CancelledError:
            # Without waiting: a replica that stands still would never let the caller go.
            if not self.closed:
                self._channel.send_soon(CancelCommand(request_id))
            raise
        finally:
            self._waiting.pop(request_id, None)

    def ask_soon(self, command: ChangesCommand) -> "asyncio.Future[Response] | None":
        """Send at once what is answered when the time has come; None if it cannot be sent now.

        Cancelling the future tells the replica to forget it.
        """
        if self.closed or self.is_deaf or len(self._waiting) > MAX_LASTING:
            return None
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[command.request_id] = future
        self._channel.send_soon(command)
        future.add_done_callback(partial(self._done_asking, command.request_id))
        return future

    def _done_asking(self, request_id: int, future: "asyncio.Future[Response]") -> None:
        self._waiting.pop(request_id, None)
        if not future.cancelled():
            future.exception()  # looked at: nobody may wait for it any more
        elif not self.closed:
            self._channel.send_soon(CancelCommand(request_id))

    def stream(self, command: SubscribeCommand | SelectCommand, on_response: OnResponse) -> None:
        """Send; responses are handed over as they come, until `forget` or the connection's end."""
        self._streams[command.request_id] = on_response
        self._channel.send_soon(command)

    def acknowledge(self, request_id: int) -> None:
        """There is room for one more batch."""
        self._channel.send_soon(AcknowledgeCommand(request_id))

    def forget(self, request_id: int) -> None:
        """No more responses are wanted, and the replica learns that."""
        if self._streams.pop(request_id, None) is not None and not self.closed:
            self._channel.send_soon(CancelCommand(request_id))

    def close(self) -> None:
        self._channel.close()


@dataclass(frozen=True, slots=True)
class RunningSubscribe:
    """A subscription's dataflow on one replica."""

    connection: ReplicaConnection
    request_id: int

    def acknowledge(self) -> None:
        """Its last batch was taken."""
        self.connection.acknowledge(self.request_id)

    def close(self) -> None:
        """End it."""
        self.connection.forget(self.request_id)


class RunningSelect:
    """A query over much data on one replica, and its result, of which one batch at most waits here.

    The next is on its way as soon as one was taken. Whoever closes it, or takes the last batch,
    lets the replica forget the result; until then it lies there.
    """

    def __init__(self, connection: ReplicaConnection, request_id: int) -> None:
        self._connection = connection
        self._request_id = request_id
        self._result: ResultResponse | None = None
        self._batches: deque[bytes] = deque()
        self._taken = 0
        self._failure: Exception | None = None
        self._heard = asyncio.Event()

    def hear(self, response: Response | None) -> None:
        """Take what the replica says; None: it went away."""
        match response:
            case ResultResponse():
                self._result = response
            case BatchResponse(updates=updates):
                self._batches.append(updates)
            case FailedResponse():
                self._failure = error_of(response)
            case _ if self._result is not None:
                # There is no other like it: what was told of an unordered result is nobody else's.
                self._failure = IoError(
                    "the replica that holds the result went away", hint="Run the query again."
                )
            case RefusedResponse(reason=reason):
                self._failure = Unanswered(reason)
            case None:
                self._failure = Unanswered("the replica went away")
            case _:
                self._failure = SqlError(f"unexpected response {type(response).__name__}")
        self._heard.set()

    async def wait_for_result(self) -> ResultResponse:
        """Waits for the result; raises Unanswered, or the SqlError that the query came to."""
        while self._result is None:
            if self._failure is not None:
                raise self._failure
            await self._news()
        return self._result

    async def next_batch(self) -> bytes | None:
        """The next batch, encoded; None once all that were announced have been taken.

        Raises the SqlError that keeps the rest from coming. Cancelling loses no batch.
        """
        result = await self.wait_for_result()
        if self._taken == result.batches:
            self.close()
            return None
        while not self._batches:
            if self._failure is not None:
                raise self._failure
            await self._news()
        self._taken += 1
        if self._taken == result.batches:
            self.close()
        else:
            self._connection.acknowledge(self._request_id)
        return self._batches.popleft()

    async def _news(self) -> None:
        self._heard.clear()
        await self._heard.wait()

    def close(self) -> None:
        """The replica need not keep it. May be repeated."""
        self._connection.forget(self._request_id)


class ComputeClient:
    """Owns the connections of one adapter to all replicas."""

    def __init__(self, runtime: Path) -> None:
        self._runtime = runtime
        self._connections: dict[str, ReplicaConnection] = {}
        self._request_ids = itertools.count(1)
        self._decoder = msgspec.msgpack.Decoder(Response)
        self._connecting: dict[str, asyncio.Task[bool]] = {}

    async def peek_index(
        self,
        snapshot: Snapshot,
        cluster_id: ClusterId,
        index_id: GlobalId,
        desc: RelationDesc,
        lookup: Lookup | None,
        as_of: Timestamp,
    ) -> list[Update]:
        """Rows of an index at a timestamp; raises Unanswered, or the SqlError that it gave."""
        response = await self._first_answer(
            replica_processes(snapshot, cluster_id),
            lambda request_id: PeekIndexCommand(
                request_id, snapshot.catalog_ts, index_id, as_of, lookup
            ),
        )
        return decode_inline(desc, _rows(response)).updates()

    def ask_changes(
        self,
        snapshot: Snapshot,
        cluster_id: ClusterId,
        view: GlobalId,
        beyond: Timestamp,
        as_of: Timestamp,
    ) -> "list[asyncio.Future[Response]]":
        """Ask at once what changed in a materialized view after one timestamp up to another: those
        replicas that are connected. Each answers as soon as it has computed it, or refuses."""
        asked = []
        for name in replica_processes(snapshot, cluster_id):
            connection = self._connections.get(name)
            if connection is None or connection.closed:
                # Whoever reads next will find it connected.
                self._connect_later(name)
                continue
            command = ChangesCommand(
                next(self._request_ids), snapshot.catalog_ts, view, beyond, as_of
            )
            future = connection.ask_soon(command)
            if future is not None:
                asked.append(future)
        return asked

    def _connect_later(self, name: str) -> None:
        """In the background, and only once however many wish for it."""
        if name not in self._connecting:
            task = asyncio.create_task(self.answers(name))
            self._connecting[name] = task
            task.add_done_callback(lambda _: self._connecting.pop(name, None))

    async def select(
        self, names: Sequence[str], command: Callable[[int], SelectCommand]
    ) -> RunningSelect:
        """Have one of these replicas compute a query over much data, however long that takes.

        One after the other is asked until one has the result. Raises Unanswered, or the SqlError
        that the query came to.
        """
        reason = "there is no replica"
        for name in sorted(names, key=self._reluctance):
            try:
                return await self._select(name, command)
            except Unanswered as unanswered:
                reason = str(unanswered)
        raise Unanswered(reason)

    def _reluctance(self, name: str) -> tuple[bool, int]:
        """Those that are connected come first, and those with the least to do."""
        connection = self._connections.get(name)
        if connection is None or connection.closed:
            return True, 0
        return False, connection.stream_count

    async def _select(self, name: str, command: Callable[[int], SelectCommand]) -> RunningSelect:
        connection = await self._connect(name)
        if connection.is_deaf:
            raise Unanswered("the replica does not listen")
        request_id = next(self._request_ids)
        running = RunningSelect(connection, request_id)
        connection.stream(command(request_id), running.hear)
        try:
            await running.wait_for_result()
        except BaseException:
            running.close()
            raise
        return running

    async def introspect(self, snapshot: Snapshot, relation: str) -> dict[str, Sequence[Facts]]:
        """What every replica process says of itself, by process; silent ones are left out.

        All are asked at once, so that many that hang take no longer than one.
        """
        names = sorted({process_name(r) for r in snapshot.replicas.values()} or {POOL})
        told = await asyncio.gather(*[self._facts(name, relation) for name in names])
        return {name: rows for name, rows in zip(names, told, strict=True) if rows is not None}

    async def told_by_supervisor(self, relation: str) -> Sequence[Facts] | None:
        """What it says of the replica processes; None where it cannot be asked."""
        return await self._facts(SUPERVISOR, relation)

    async def _facts(self, name: str, relation: str) -> Sequence[Facts] | None:
        """One process's rows; None if it does not answer soon."""
        try:
            async with asyncio.timeout(INTROSPECT_SECONDS):
                response = await self._ask(name, lambda given: IntrospectCommand(given, relation))
        except (Unanswered, TimeoutError):
            return None
        return response.rows if isinstance(response, FactsResponse) else None

    async def subscribe(
        self, name: str, command: Callable[[int], SubscribeCommand], on_response: OnResponse
    ) -> "RunningSubscribe":
        """Start a subscription's dataflow on a replica; raises Unanswered if it is not there."""
        connection = await self._connect(name)
        request_id = next(self._request_ids)
        connection.stream(command(request_id), on_response)
        return RunningSubscribe(connection, request_id)

    async def answers(self, name: str) -> bool:
        """Whether a replica process is there to be asked."""
        try:
            await self._connect(name)
        except Unanswered:
            return False
        return True

    async def _first_answer(
        self, names: Sequence[str], command: Callable[[int], Command]
    ) -> Response:
        """Ask all replicas at once and take the first answer that is one."""
        tasks = [asyncio.create_task(self._ask(name, command)) for name in names]
        for task in tasks:
            task.add_done_callback(_take_note)
        try:
            for next_done in asyncio.as_completed(tasks):
                try:
                    return await next_done
                except Unanswered:
                    continue
        finally:
            for task in tasks:
                task.cancel()
        raise Unanswered("no replica answered")

    async def _ask(self, name: str, command: Callable[[int], Command]) -> Response:
        connection = await self._connect(name)
        request_id = next(self._request_ids)
        response = await connection.request(request_id, command(request_id))
        if isinstance(response, RefusedResponse):
            raise Unanswered(response.reason)
        return response

    async def _connect(self, name: str) -> ReplicaConnection:
        known = self._connections.get(name)
        if known is not None and not known.closed:
            return known
        path = socket_path(self._runtime, name)
        try:
            reader, writer = await asyncio.open_unix_connection(str(path))
        except OSError as error:
            raise Unanswered(f"replica process {name} is not there") from error
        known = self._connections.get(name)
        if known is not None and not known.closed:
            writer.close()  # another was quicker
            return known
        connection = ReplicaConnection(Channel(reader, writer, self._decoder))
        self._connections[name] = connection
        return connection

    def close(self) -> None:
        """End all connections; their requests end with Unanswered."""
        for connection in self._connections.values():
            connection.close()


def _take_note(task: "asyncio.Task[Response]") -> None:
    """A replica that could not answer after another one did is nobody's trouble."""
    if not task.cancelled():
        task.exception()


def socket_path(runtime: Path, name: str) -> Path:
    """Where a replica process listens."""
    return runtime / f"{name}.sock"


def error_of(failed: FailedResponse) -> DataError:
    """What a replica says of a failure, as its client is told."""
    error = DataError(failed.code, failed.message)
    error.hint = failed.hint
    return error


def _rows(response: Response) -> bytes:
    match response:
        case RowsResponse(updates=updates):
            return updates
        case FailedResponse():
            raise error_of(response)
        case _:
            raise SqlError(f"unexpected response {type(response).__name__}")
