"""Requests of adapters, answered by a replica: index lookups, one-shot queries, introspection."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from evertide.dataflow.channel import Channel, FrameTooLarge
from evertide.dataflow.description import Import, IndexExport
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
from evertide.expr.codec import decode_relation
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Relation
from evertide.persist.coding.inline import decode_inline, encode_inline
from evertide.persist.faults import BelowSince, PersistFault
from evertide.persist.told import told
from evertide.spark.arrangement import BelowSince as IndexBelowSince
from evertide.spark.engine import EngineLost, Peeked
from evertide.spark.running import RunningDataflow
from evertide.spark.worker import Worker
from evertide.vocab.errors import InternalError, ProgramLimitExceeded, SqlError
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

# A connection with more requests than this under way is not read from.
MAX_REQUESTS = 256

log = structlog.get_logger()


class CatalogView(Protocol):
    """What a replica's server must know of the catalog it follows."""

    async def wait_beyond(self, catalog_ts: Timestamp) -> None:
        """Returns once every change up to this catalog timestamp has been carried out here."""
        ...

    def imports(self, global_ids: Sequence[GlobalId]) -> tuple[Import, ...]:
        """The collections of these ids."""
        ...


class Refused(Exception):
    """Not answerable here; the adapter reads the shards instead."""


OneShot = Callable[[Relation, tuple[Import, ...], Timestamp], Awaitable[Peeked]]


class PeekServer:
    """Listens on the replica's socket."""

    def __init__(self, worker: Worker, catalog: CatalogView, one_shot: OneShot) -> None:
        self._worker = worker
        self._catalog = catalog
        self._one_shot = one_shot
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, path: Path) -> None:
        self._server = await asyncio.start_unix_server(self._accept, str(path))

    async def stop(self) -> None:
        """Ends the connections too; adapters see them close."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Not a coroutine: a task that asyncio made of one would log its own cancellation."""
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One adapter's connection: requests run side by side, and end with it."""
        channel = Channel(reader, writer, msgspec.msgpack.Decoder(Command))
        running: dict[int, asyncio.Task[None]] = {}
        free = asyncio.Semaphore(MAX_REQUESTS)
        try:
            while (command := await channel.receive()) is not None:
                if isinstance(command, CancelCommand):
                    if command.request_id in running:
                        running[command.request_id].cancel()
                    continue
                await free.acquire()
                task = asyncio.create_task(self._answer(command, channel))
                running[command.request_id] = task
                forget = partial(_forget, running, command.request_id, free)
                task.add_done_callback(forget)
        finally:
            for task in list(running.values()):
                task.cancel()
            channel.close()

    async def _answer(self, command: Command, channel: Channel[Command]) -> None:
        try:
            response = await self._run(command)
        except (Refused, EngineLost, BelowSince, IndexBelowSince) as refusal:
            response = RefusedResponse(command.request_id, str(refusal))
        except PersistFault as fault:
            # One that must end this process is met by the worker as well.
            response = _failed(command.request_id, told(fault))
        except SqlError as error:
            response = _failed(command.request_id, error)
        except Exception:  # this task owns the request
            log.exception("request failed")
            response = FailedResponse(
                command.request_id, InternalError.sqlstate, "internal error on the replica"
            )
        try:
            await channel.send(response)
        except FrameTooLarge as error:
            too_large = FailedResponse(
                command.request_id, ProgramLimitExceeded.sqlstate, str(error)
            )
            await channel.send(too_large)
        except ConnectionError:
            pass  # the adapter went away; nobody waits for the answer

    async def _run(self, command: Command) -> Response:
        match command:
            case PeekIndexCommand():
                return await self._peek_index(command)
            case PeekRelationCommand():
                return await self._peek_relation(command)
            case IntrospectCommand(request_id=request_id, relation=relation):
                return FactsResponse(request_id, self._facts(relation))
            case CancelCommand(request_id=request_id):
                return RefusedResponse(request_id, "cancelled")

    async def _peek_index(self, command: PeekIndexCommand) -> Response:
        await self._catalog.wait_beyond(Timestamp(command.catalog_ts))
        dataflow = self._worker.dataflow(GlobalId(command.global_id))
        if dataflow is None or not isinstance(dataflow.description.export, IndexExport):
            raise Refused(f"no index {command.global_id} here")
        as_of = Timestamp(command.as_of)
        await _wait_for_frontier(dataflow, as_of)
        placement = dataflow.placement
        if placement is None or as_of < placement.since:
            raise Refused(f"index {command.global_id} is not readable at {as_of}")
        keys = None
        if command.keys is not None:
            export = dataflow.description.export
            desc = RelationDesc(tuple(export.desc.columns[i] for i in export.key))
            keys = list(decode_inline(desc, command.keys).rows)
        peeked = await placement.engine.peek(dataflow.description.global_id, keys, as_of)
        return RowsResponse(command.request_id, encode_inline(peeked.updates(as_of)))

    async def _peek_relation(self, command: PeekRelationCommand) -> Response:
        await self._catalog.wait_beyond(Timestamp(command.catalog_ts))
        imports = self._catalog.imports([GlobalId(g) for g in command.imports])
        as_of = Timestamp(command.as_of)
        peeked = await self._one_shot(
            decode_relation(command.relation, by_signature), imports, as_of
        )
        return RowsResponse(command.request_id, encode_inline(peeked.updates(as_of)))

    def _facts(self, relation: str) -> tuple[tuple[str | int | float | bool | None, ...], ...]:
        """Rows of a system relation; the second column, the replica, is left to the adapter."""
        match relation:
            case "mz_tick_records":
                return tuple(
                    (r.object_id, None, r.started_at_us, r.rows_in, r.rows_out, r.executor,
                     r.duration_ms, r.upper)
                    for r in self._worker.tick_records
                )  # fmt: skip
            case "mz_hydration_statuses":
                return tuple(
                    (d.description.global_id, None, d.placement is not None)
                    for d in self._worker.dataflows()
                )
            case _:
                return ()


def _forget(
    running: dict[int, asyncio.Task[None]],
    request_id: int,
    free: asyncio.Semaphore,
    _: asyncio.Task[None],
) -> None:
    """A request has been answered: there is room for another."""
    running.pop(request_id, None)
    free.release()


def _failed(request_id: int, error: SqlError) -> FailedResponse:
    return FailedResponse(request_id, error.code, error.message)


async def _wait_for_frontier(dataflow: RunningDataflow, as_of: Timestamp) -> None:
    """Returns once the index is complete at `as_of`; a stopped one is refused."""
    while dataflow.frontier <= as_of:
        if dataflow.stopped is not None:
            raise Refused(f"the index stopped: {dataflow.stopped}")
        await dataflow.moved.wait()
