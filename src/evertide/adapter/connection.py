"""One connection's client of the adapter: parses, plans, dispatches, keeps the transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import structlog

from evertide.adapter.active_cluster import note_missing, with_cluster
from evertide.adapter.client import (
    CommandResponse,
    CopyInResponse,
    EmptyResponse,
    Prepared,
    Response,
    RowSink,
    RowStream,
    SessionEvents,
    StreamResponse,
    TransactionStatus,
)
from evertide.adapter.describe import result_desc
from evertide.adapter.dispatch import Request, dispatch
from evertide.adapter.environment import Environment
from evertide.adapter.planning import Parsed, Planner, Unparsed, parse
from evertide.adapter.rights.identity import DEFAULT_USER, login_role
from evertide.adapter.session import Login, Session, open_session
from evertide.adapter.transaction import Transaction
from evertide.adapter.variables import VARIABLES
from evertide.expr.compile import compile_scalar
from evertide.persist.faults import PersistFault
from evertide.persist.told import ends_the_process, told
from evertide.sql.parser.template import template_of
from evertide.sql.plan.clusters.plans import ReconfigureClusterPlan
from evertide.sql.plan.plans import (
    CommitPlan,
    ExecutePlan,
    FetchPlan,
    Plan,
    PreparePlan,
    RollbackPlan,
)
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import (
    DuplicatePreparedStatement,
    InFailedTransaction,
    QueryCanceled,
    SqlError,
    SqlSyntaxError,
    UndefinedPreparedStatement,
)
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import SqlType, type_of_oid

log = structlog.get_logger()

T = TypeVar("T")
_Running: TypeAlias = (
    asyncio.Task[Response] | asyncio.Task[Sequence[Row] | None] | asyncio.Task[str | None]
)


class Connection:
    """Implements adapter/client.py's SessionClient over one Session."""

    def __init__(
        self,
        session: Session,
        env: Environment,
        planner: Planner,
        on_fault: Callable[[PersistFault], None],
    ) -> None:
        self._session = session
        self._env = env
        self._planner = planner
        # Told of faults that concern the whole process: fenced ones must exit.
        self._on_fault = on_fault
        self._running: _Running | None = None
        # A cancel that came when what ran had just ended; a stream ends with it nevertheless.
        self._cancel_came_late = False

    @property
    def transaction_status(self) -> TransactionStatus:
        transaction = self._session.transaction
        if transaction is None or not transaction.explicit:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if transaction.failed else TransactionStatus.IN_TRANSACTION

    @property
    def parameters(self) -> dict[str, str]:
        return self._session.variables.reported()

    def split(self, text: str) -> list[Prepared]:
        template = template_of(text)
        if template is not None:
            return [Prepared(text, Unparsed(text, template))]
        return [Prepared(parsed.text, parsed) for parsed in parse(text)]

    async def prepare(self, text: str, parameter_oids: Sequence[int]) -> Prepared:
        parsed = parse(text)
        if len(parsed) > 1:
            raise SqlSyntaxError("cannot insert multiple commands into a prepared statement")
        if not parsed:
            return Prepared(text, None)
        types = [type_of_oid(oid) if oid else None for oid in parameter_oids]
        return await self._prepared(text, parsed[0], types)

    async def _prepared(
        self, text: str, parsed: Parsed, types: Sequence[SqlType | None]
    ) -> Prepared:
        try:
            snapshot = await self._env.catalog.current()
        except PersistFault as fault:
            raise _told(fault, self._on_fault) from fault
        planned = self._planner.plan(parsed, types, self._session, snapshot)
        result = result_desc(planned.plan, self._session)
        return Prepared(text, parsed, planned.parameter_types, result)

    async def execute(self, prepared: Prepared, parameters: Sequence[Datum]) -> Response:
        if prepared.statement is None:
            return EmptyResponse()
        self._running = asyncio.create_task(self._execute(prepared, parameters))
        try:
            return await self._told(self._running)
        except BaseException:
            self._fail_transaction()
            raise
        finally:
            self._running = None

    def _fail_transaction(self) -> None:
        if self._session.transaction is not None and self._session.transaction.explicit:
            self._session.transaction.failed = True

    async def _take(self, stream: RowStream, most: int | None) -> Sequence[Row] | None:
        self._cancel_came_late = False
        running = self._running = asyncio.create_task(_taken(stream, most))
        try:
            rows = await self._told(running)
            if self._cancel_came_late:
                raise _canceled()
            return rows
        except BaseException:
            stream.close()
            self._fail_transaction()
            raise
        finally:
            self._running = None

    async def _give(self, sink: RowSink, received: bytes | None) -> str | None:
        running = self._running = asyncio.create_task(_given(sink, received))
        try:
            return await self._told(running)
        except BaseException:
            self._fail_transaction()
            raise
        finally:
            self._running = None

    async def _told(self, running: asyncio.Task[T]) -> T:
        """Wait for what runs; a cancel is told as 57014, a fault as the error it means."""
        try:
            return await running
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the connection itself is ending
            raise _canceled() from None
        except PersistFault as fault:
            raise _told(fault, self._on_fault) from fault

    async def _execute(self, prepared: Prepared, parameters: Sequence[Datum]) -> Response:
        """Run it within the statement's timeout. Of a stream only its beginning is bounded so."""
        timeout_ms = self._session.statement_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1_000 if timeout_ms else None) as limit:
                request = await self._request(prepared, parameters)
                if isinstance(request.plan, FetchPlan | ReconfigureClusterPlan):
                    # They have timeouts of their own, and may wait as long as nothing happens.
                    limit.reschedule(None)
                return await self._run(request)
        except TimeoutError:
            raise QueryCanceled("canceling statement due to statement timeout") from None

    async def _request(self, prepared: Prepared, parameters: Sequence[Datum]) -> Request:
        parsed = prepared.statement
        snapshot = await self._env.catalog.current()
        if isinstance(parsed, Unparsed):
            return self._planner.request_by_template(parsed, self._session, snapshot)
        assert isinstance(parsed, Parsed)
        return self._planner.request(
            parsed, prepared.parameter_types, parameters, self._session, snapshot
        )

    async def _run(self, request: Request) -> Response:
        self._refuse_after_failure(request.plan)
        if self._session.transaction is None:
            self._session.transaction = Transaction(explicit=False)
        match request.plan:
            case PreparePlan() as plan:
                return await self._prepare_named(plan)
            case ExecutePlan() as plan:
                return await self._execute_named(plan)
            case _:
                response = await dispatch(request, self._session, self._env)
        if isinstance(response, StreamResponse):
            return replace(response, rows=_Stream(response.rows, self._take))
        if isinstance(response, CopyInResponse):
            return replace(response, rows=_Sink(response.rows, self._give))
        return response

    def _refuse_after_failure(self, plan: Plan) -> None:
        transaction = self._session.transaction
        if transaction is None or not transaction.failed:
            return
        if not isinstance(plan, CommitPlan | RollbackPlan):
            raise InFailedTransaction(
                "current transaction is aborted, commands ignored until end of transaction block"
            )

    async def _prepare_named(self, plan: PreparePlan) -> Response:
        if plan.name in self._session.prepared:
            raise DuplicatePreparedStatement(f'prepared statement "{plan.name}" already exists')
        parsed = parse(plan.sql)
        types: Sequence[SqlType | None] = plan.parameter_types
        prepared = await self._prepared(plan.sql, parsed[0], types)
        self._session.prepared[plan.name] = prepared
        return CommandResponse("PREPARE")

    async def _execute_named(self, plan: ExecutePlan) -> Response:
        prepared = self._session.prepared.get(plan.name)
        if prepared is None:
            raise UndefinedPreparedStatement(f'prepared statement "{plan.name}" does not exist')
        if len(plan.arguments) != len(prepared.parameter_types):
            raise SqlSyntaxError(
                f'wrong number of parameters for prepared statement "{plan.name}"',
                detail=f"Expected {len(prepared.parameter_types)} parameters but got"
                f" {len(plan.arguments)}.",
            )
        arguments = [compile_scalar(argument)(()) for argument in plan.arguments]
        return await self._execute(prepared, arguments)

    def cursor_desc(self, name: str) -> RelationDesc | None:
        cursor = self._session.cursors.get(name)
        return None if cursor is None else cursor.desc

    async def end_implicit(self, *, failed: bool) -> None:
        transaction = self._session.transaction
        if transaction is None:
            return
        if transaction.explicit:
            transaction.failed = transaction.failed or failed
        else:
            self._session.end_transaction()

    def take_events(self) -> SessionEvents:
        notices, self._session.notices = self._session.notices, []
        return SessionEvents(notices, self._session.variables.take_changed())

    def cancel(self) -> None:
        if self._running is not None and not self._running.cancel():
            self._cancel_came_late = True

    async def close(self) -> None:
        self.cancel()
        self._session.end_transaction()


class Connections:
    """Opens sessions over one environment: the SessionFactory of an adapter."""

    def __init__(self, env: Environment, on_fault: Callable[[PersistFault], None]) -> None:
        self._env = env
        self._planner = Planner(env)
        self._on_fault = on_fault

    async def open_session(self, parameters: dict[str, str], *, internal: bool) -> Connection:
        """A session with the system's defaults, its role's, and the startup message's wishes."""
        try:
            snapshot = await self._env.catalog.current()
        except PersistFault as fault:
            raise _told(fault, self._on_fault) from fault
        user = parameters.get("user") or DEFAULT_USER
        role = login_role(user, snapshot, internal=internal)
        given = {**snapshot.system_configurations, **dict(role.variables)}
        defaults = {name: value for name, value in given.items() if name.lower() in VARIABLES}
        login = Login(role.role_id, role.superuser, internal)
        session = open_session(parameters, with_cluster(defaults, snapshot), login)
        note_missing(session, snapshot)
        return Connection(session, self._env, self._planner, self._on_fault)


class _Sink:
    """Rows for a COPY, taken as part of its session: a cancel ends it, and faults are told."""

    def __init__(
        self, sink: RowSink, give: Callable[[RowSink, bytes | None], Awaitable[str | None]]
    ) -> None:
        self._sink = sink
        self._give = give

    async def feed(self, received: bytes) -> None:
        await self._give(self._sink, received)

    async def finish(self) -> str:
        tag = await self._give(self._sink, None)
        assert tag is not None, "the last call gives the tag"
        return tag


class _Stream:
    """Rows that come, taken as part of their session: a cancel ends it, and faults are told."""

    def __init__(
        self,
        rows: RowStream,
        take: Callable[[RowStream, int | None], Awaitable[Sequence[Row] | None]],
    ) -> None:
        self._rows = rows
        self._take = take

    async def take(self, most: int | None) -> Sequence[Row] | None:
        return await self._take(self._rows, most)

    @property
    def ready(self) -> bool:
        return self._rows.ready

    def close(self) -> None:
        self._rows.close()


async def _given(sink: RowSink, received: bytes | None) -> str | None:
    if received is None:
        return await sink.finish()
    await sink.feed(received)
    return None


async def _taken(stream: RowStream, most: int | None) -> Sequence[Row] | None:
    return await stream.take(most)


def _canceled() -> QueryCanceled:
    return QueryCanceled("canceling statement due to user request")


def _told(fault: PersistFault, on_fault: Callable[[PersistFault], None]) -> SqlError:
    """The client's error; the process hears of the fault if it must end with it."""
    if ends_the_process(fault):
        on_fault(fault)
    return told(fault)
