"""Requests of adapters, answered by a replica: index lookups, one-shot queries, introspection."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
import structlog

from evertide.dataflow.channel import Channel, FrameTooLarge
from evertide.dataflow.description import Import, IndexExport
from evertide.dataflow.listening import Listening
from evertide.dataflow.protocol import (
    AcknowledgeCommand,
    BatchResponse,
    CancelCommand,
    ChangesCommand,
    Command,
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
from evertide.expr.codec import decode_relation
from evertide.expr.functions.table import by_signature
from evertide.persist.coding.inline import encode_inline
from evertide.persist.faults import BelowSince, PersistFault
from evertide.persist.told import told
from evertide.spark.arrangements.arrangement import BelowSince as IndexBelowSince
from evertide.spark.arrangements.key_order import LookupRefused
from evertide.spark.asked_in_vain import asked_in_vain
from evertide.spark.bulk.results import Result, Select
from evertide.spark.engine import EngineFailing, EngineLost
from evertide.spark.partitions.connection import ResidentFault
from evertide.spark.reports import Facts, Reports
from evertide.spark.running import RunningDataflow
from evertide.spark.subscribe import Asker, Subscribes
from evertide.spark.watch import JobFailed, JobStarved
from evertide.spark.worker import Worker
from evertide.vocab.errors import InternalError, ProgramLimitExceeded, SqlError
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp, step_forward
from evertide.vocab.update import Update

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


Answered: TypeAlias = PeekIndexCommand | IntrospectCommand
RunSelect: TypeAlias = Callable[
    [Select, tuple[Import, ...], Timestamp], AbstractAsyncContextManager[Result]
]


class PeekServer:
    """Listens on the replica's socket."""

    def __init__(
        self,
        worker: Worker,
        catalog: CatalogView,
        run_select: RunSelect,
        subscribes: Subscribes,
        others: Callable[[str], list[Facts]] = lambda _: [],
    ) -> None:
        self._worker = worker
        self._reports = Reports(worker, others)
        self._subscribes = subscribes
        self._catalog = catalog
        self._run_select = run_select
        # Who reads results, and whether the last batch was taken.
        self._results: dict[Asker, asyncio.Event] = {}
        self._listening = Listening(self._serve)

    async def start(self, path: Path) -> None:
        await self._listening.start(path)

    async def stop(self) -> None:
        """Ends the connections too; adapters see them close."""
        await self._listening.stop()

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
                if isinstance(command, AcknowledgeCommand):
                    self._acknowledge((channel, command.request_id))
                    continue
                if isinstance(command, SubscribeCommand | SelectCommand | ChangesCommand):
                    # It may last for ever, so it takes nobody's turn.
                    task = asyncio.create_task(self._lasting(command, channel))
                    running[command.request_id] = task
                    task.add_done_callback(partial(_ended, running, command.request_id))
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

    def _acknowledge(self, asker: Asker) -> None:
        """The last batch was taken."""
        if asker in self._results:
            self._results[asker].set()
        else:
            self._subscribes.acknowledge(asker)

    async def _lasting(
        self, command: SubscribeCommand | SelectCommand | ChangesCommand, channel: Channel[Command]
    ) -> None:
        match command:
            case SubscribeCommand():
                work: Coroutine[None, None, Response | None] = self._subscribe(command, channel)
            case SelectCommand():
                work = self._select(command, channel)
            case ChangesCommand():
                work = self._changes(command)
        response = await self._settled(command.request_id, work)
        if response is not None:
            await _send(channel, response)

    async def _subscribe(self, command: SubscribeCommand, channel: Channel[Command]) -> None:
        await self._catalog.wait_beyond(Timestamp(command.catalog_ts))
        imports = self._catalog.imports([GlobalId(g) for g in command.imports])
        await self._subscribes.serve(command, imports, channel)

    async def _changes(self, command: ChangesCommand) -> Response:
        """A view's newest changes, as soon as they are computed."""
        await self._catalog.wait_beyond(Timestamp(command.catalog_ts))
        dataflow = self._worker.dataflow(GlobalId(command.global_id))
        if dataflow is None or dataflow.sink is None:
            raise Refused(f"no materialized view {command.global_id} here")
        as_of = Timestamp(command.as_of)
        await _wait_for_frontier(dataflow, as_of)
        lower = step_forward(Timestamp(command.beyond))
        found = dataflow.sink.changes(lower, step_forward(as_of))
        if found is None:
            raise Refused(f"the changes of {command.global_id} are in its shard")
        return RowsResponse(command.request_id, found.payload if len(found) else b"")

    async def _answer(self, command: Answered, channel: Channel[Command]) -> None:
        response = await self._settled(command.request_id, self._run(command))
        assert response is not None, "a request that succeeds has an answer"
        await _send(channel, response)

    async def _settled(
        self, request_id: int, work: Coroutine[None, None, Response | None]
    ) -> Response | None:
        """What the work gives, or what it failed with."""
        try:
            return await work
        except (Refused, LookupRefused, EngineLost, BelowSince, IndexBelowSince) as refusal:
            return RefusedResponse(request_id, str(refusal))
        except PersistFault as fault:
            # One that must end this process is met by the worker as well.
            return _failed(request_id, told(fault))
        except SqlError as error:
            return _failed(request_id, error)
        except JobStarved as starved:
            return _failed(request_id, starved.error)
        except JobFailed as failure:
            log.error("bulk work failed", reason=str(failure))
            return _failed(request_id, InternalError(f"bulk work failed: {failure}"))
        except FrameTooLarge as error:
            return FailedResponse(request_id, ProgramLimitExceeded.sqlstate, str(error))
        except ConnectionError:
            return None  # the adapter went away; nobody waits for the answer
        except Exception:  # this task owns the request
            log.exception("request failed")
            return FailedResponse(
                request_id, InternalError.sqlstate, "internal error on the replica"
            )

    async def _run(self, command: Answered) -> Response:
        match command:
            case PeekIndexCommand():
                return await self._peek_index(command)
            case IntrospectCommand(request_id=request_id, relation=relation):
                return await self._reports.response(request_id, relation)

    async def _peek_index(self, command: PeekIndexCommand) -> Response:
        await self._catalog.wait_beyond(Timestamp(command.catalog_ts))
        dataflow = self._worker.dataflow(GlobalId(command.global_id))
        export = None if dataflow is None else dataflow.description.export
        if dataflow is None or not isinstance(export, IndexExport):
            raise Refused(f"no index {command.global_id} here")
        as_of = Timestamp(command.as_of)
        await _wait_for_frontier(dataflow, as_of)
        placement = dataflow.placement
        if placement is None or as_of < placement.since:
            raise Refused(f"index {command.global_id} is not readable at {as_of}")
        global_id = dataflow.description.global_id
        try:
            peeked = await placement.engine.peek(global_id, command.lookup, as_of)
        except (EngineFailing, ResidentFault) as fault:
            asked_in_vain(self._worker, dataflow, placement.engine, fault)
            if isinstance(fault, ResidentFault) and not fault.broken:
                raise
            raise Refused(f"index {command.global_id} does not answer: {fault}") from fault
        updates = peeked.updates(as_of)
        if len(dataflow.plan.types) > export.desc.arity:
            updates = _without_expressions(updates, export.desc.arity)
        return RowsResponse(command.request_id, encode_inline(updates))

    async def _select(self, command: SelectCommand, channel: Channel[Command]) -> None:
        """A result as it is read. What it needs on disk goes with this task."""
        await self._catalog.wait_beyond(Timestamp(command.catalog_ts))
        imports = self._catalog.imports([GlobalId(g) for g in command.imports])
        as_of = Timestamp(command.as_of)
        relation = decode_relation(command.relation, by_signature)
        select = Select(relation, command.order, command.most)
        reader = (channel, command.request_id)
        taken = self._results[reader] = asyncio.Event()
        try:
            async with self._run_select(select, imports, as_of) as result:
                await channel.send(
                    ResultResponse(
                        command.request_id, result.batches, result.rows, result.size_bytes
                    )
                )
                async for payload in result.payloads:
                    taken.clear()
                    await channel.send(BatchResponse(command.request_id, payload, as_of))
                    await taken.wait()
        finally:
            del self._results[reader]


def _forget(
    running: dict[int, asyncio.Task[None]],
    request_id: int,
    free: asyncio.Semaphore,
    _: asyncio.Task[None],
) -> None:
    """A request has been answered: there is room for another."""
    running.pop(request_id, None)
    free.release()


def _ended(running: dict[int, asyncio.Task[None]], request_id: int, _: asyncio.Task[None]) -> None:
    """A subscription is over."""
    running.pop(request_id, None)


async def _send(channel: Channel[Command], response: Response) -> None:
    with suppress(ConnectionError):  # the adapter went away; nobody waits for the answer
        try:
            await channel.send(response)
        except FrameTooLarge as error:
            code = ProgramLimitExceeded.sqlstate
            await channel.send(FailedResponse(response.request_id, code, str(error)))


def _failed(request_id: int, error: SqlError) -> FailedResponse:
    return FailedResponse(request_id, error.code, error.message, error.hint)


def _without_expressions(updates: Sequence[Update], arity: int) -> list[Update]:
    """What an index by expressions shows: the relation's columns.

    One that fails for some row puts the index in error, but not the relation: then others answer.
    """
    if any(update.error is not None for update in updates):
        raise Refused("an expression of the index's key fails for some row")
    return [update._replace(row=update.row[:arity]) for update in updates]


async def _wait_for_frontier(dataflow: RunningDataflow, as_of: Timestamp) -> None:
    """Returns once the output is complete at `as_of`; a stopped one is refused."""
    while dataflow.frontier <= as_of:
        if dataflow.stopped is not None:
            raise Refused(f"the dataflow stopped: {dataflow.stopped}")
        await dataflow.moved.wait()
