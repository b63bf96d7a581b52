"""An adapter's client of a cluster: sends peeks to its replicas; the first answer wins.

A replica is found by the socket that carries its process's name in the generation's private
directory. A replica that is away, restarting or behind costs time, never a wrong answer: the caller
can always read the shards instead.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
import structlog

from evertide.catalog.snapshot import Snapshot
from evertide.controller.orchestrator import POOL, process_name
from evertide.dataflow.channel import Channel, FrameTooLarge
from evertide.dataflow.protocol import (
    CancelCommand,
    Command,
    FactsResponse,
    FailedResponse,
    IntrospectCommand,
    PeekIndexCommand,
    PeekRelationCommand,
    RefusedResponse,
    Response,
    RowsResponse,
)
from evertide.expr.codec import encode_relation
from evertide.expr.relation import Relation
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.vocab.datum import Row
from evertide.vocab.errors import DataError, SqlError
from evertide.vocab.ids import ClusterId, GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

log = structlog.get_logger()

# A row of a system relation as a replica reports it.
Facts: TypeAlias = tuple[str | int | float | bool | None, ...]


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
        self._reader = asyncio.create_task(self._read())

    @property
    def closed(self) -> bool:
        return self._reader.done()

    async def _read(self) -> None:
        try:
            while (response := await self._channel.receive()) is not None:
                future = self._waiting.pop(response.request_id, None)
                if future is not None and not future.done():
                    future.set_result(response)
        except (FrameTooLarge, msgspec.DecodeError) as error:
            log.error("a replica sent what cannot be read", reason=str(error))
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Unanswered("the replica went away"))
            self._waiting.clear()

    async def request(self, request_id: int, command: Command) -> Response:
        """Send and wait. Cancelling the caller tells the replica to forget it."""
        if self.closed:
            raise Unanswered("the replica went away")
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            await self._channel.send(command)
            return await future
        except ConnectionError as error:
            raise Unanswered("the replica went away") from error
        except asyncio.CancelledError:
            if not self.closed:
                await self._channel.send(CancelCommand(request_id))
            raise
        finally:
            self._waiting.pop(request_id, None)

    def close(self) -> None:
        self._channel.close()
        self._reader.cancel()


class ComputeClient:
    """Owns the connections of one adapter to all replicas."""

    def __init__(self, runtime: Path) -> None:
        self._runtime = runtime
        self._connections: dict[str, ReplicaConnection] = {}
        self._request_ids = itertools.count(1)
        self._decoder = msgspec.msgpack.Decoder(Response)

    async def peek_index(
        self,
        snapshot: Snapshot,
        cluster_id: ClusterId,
        index_id: GlobalId,
        desc: RelationDesc,
        keys: Sequence[Row] | None,
        as_of: Timestamp,
    ) -> list[Update]:
        """Rows of an index at a timestamp; raises Unanswered, or the SqlError that it gave."""
        encoded = None
        if keys is not None:
            encoded = encode_inline(Update(key, as_of, 1) for key in keys)
        response = await self._first_answer(
            replica_processes(snapshot, cluster_id),
            lambda request_id: PeekIndexCommand(
                request_id, snapshot.catalog_ts, index_id, as_of, encoded
            ),
        )
        return decode_inline(desc, _rows(response)).updates()

    async def peek_relation(
        self,
        snapshot: Snapshot,
        cluster_id: ClusterId,
        relation: Relation,
        imports: Sequence[GlobalId],
        desc: RelationDesc,
        as_of: Timestamp,
    ) -> list[Update]:
        """A query over many rows, run by Spark; raises Unanswered, or the SqlError it gave."""
        body = encode_relation(relation)
        response = await self._first_answer(
            replica_processes(snapshot, cluster_id),
            lambda request_id: PeekRelationCommand(
                request_id, snapshot.catalog_ts, body, tuple(imports), as_of
            ),
        )
        return decode_inline(desc, _rows(response)).updates()

    async def introspect(self, snapshot: Snapshot, relation: str) -> list[tuple[str, Facts]]:
        """What every replica process says of itself: (process, row); silent ones are left out."""
        rows: list[tuple[str, Facts]] = []
        names = {process_name(r) for r in snapshot.replicas.values()} or {POOL}
        for name in sorted(names):
            try:
                request_id = next(self._request_ids)
                connection = await self._connect(name)
                response = await asyncio.wait_for(
                    connection.request(request_id, IntrospectCommand(request_id, relation)), 5
                )
            except (Unanswered, TimeoutError):
                continue
            if isinstance(response, FactsResponse):
                rows.extend((name, row) for row in response.rows)
        return rows

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
        connection = ReplicaConnection(Channel(reader, writer, self._decoder))
        self._connections[name] = connection
        return connection

    def close(self) -> None:
        """End all connections; their requests end with Unanswered."""
        for connection in self._connections.values():
            connection.close()


def socket_path(runtime: Path, name: str) -> Path:
    """Where a replica process listens."""
    return runtime / f"{name}.sock"


def _rows(response: Response) -> bytes:
    match response:
        case RowsResponse(updates=updates):
            return updates
        case FailedResponse(code=code, message=message):
            raise DataError(code, message)
        case _:
            raise SqlError(f"unexpected response {type(response).__name__}")
