"""One connection's client of the adapter: parses, plans, dispatches, keeps the transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import structlog

from evertide.adapter.active_cluster import with_cluster
from evertide.adapter.client import (
    CommandResponse,
    CopyInResponse,
    Credentials,
    EmptyResponse,
    Prepared,
    Response,
    RowSink,
    RowStream,
    SessionEvents,
    StreamResponse,
    TransactionStatus,
)
from evertide.adapter.ddl.block import as_seen
from evertide.adapter.describe import result_desc
from evertide.adapter.dispatch import Request, dispatch
from evertide.adapter.environment import Environment
from evertide.adapter.limit import Limit
from evertide.adapter.lookups.named_parameters import with_oids
from evertide.adapter.missing_names import note_missing
from evertide.adapter.notices import wanted_notices
from evertide.adapter.pipelines import must_part
from evertide.adapter.planning import (
    Listed,
    Parsed,
    Planner,
    Unparsed,
    parse,
    statements_of,
)
from evertide.adapter.rights.identity import DEFAULT_USER, login_role
from evertide.adapter.rights.passwords import check_still_proved, credentials_of
from evertide.adapter.running import Running
from evertide.adapter.savepoints import ends_failure
from evertide.adapter.session import Login, Session, open_session
from evertide.adapter.shared import Shared
from evertide.adapter.short_way.lookups import SessionLookups
from evertide.adapter.stored_variables import starting_values
from evertide.adapter.temporary.objects import Temporary
from evertide.adapter.temporary.tables import Space
from evertide.adapter.transaction import Span, Transaction
from evertide.adapter.writing.transact import commit_collected
from evertide.catalog.snapshot import Snapshot
from evertide.expr.compile import compile_scalar
from evertide.persist.faults import BlobMissing, Corrupt, PersistFault
from evertide.persist.told import ends_the_process, told
from evertide.sql.parser.template import template_of
from evertide.sql.plan.clusters.plans import ReconfigureClusterPlan
from evertide.sql.plan.plans import (
    BeginPlan,
    DeletePlan,
    ExecutePlan,
    FetchPlan,
    InsertPlan,
    Plan,
    PreparePlan,
    SelectPlan,
    UpdatePlan,
)
from evertide.sql.syntax.command import CommitStatement, RollbackStatement
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import (
    DuplicatePreparedStatement,
    InFailedTransaction,
    Notice,
    QueryCanceled,
    SqlError,
    SqlSyntaxError,
    UndefinedPreparedStatement,
)
from evertide.vocab.sql_type import SqlType, type_of_oid

log = structlog.get_logger()

T = TypeVar("T")
_BLOCK_ENDS = CommitStatement | RollbackStatement
# After these the catalog, as far as the session is concerned, is as it was.
_LEAVES_CATALOG = BeginPlan | InsertPlan | UpdatePlan | DeletePlan

# Lines, rows, or None once there are no more.
_Received: TypeAlias = bytes | Sequence[Row] | None


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
        self._statement = Running()
        self._shared = Shared(session, env, planner)
        self.lookups = SessionLookups(session, env, planner)

    @property
    def transaction_status(self) -> TransactionStatus:
        transaction = self._session.transaction
        if transaction is None or not transaction.explicit:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if transaction.failed else TransactionStatus.IN_TRANSACTION

    @property
    def parameters(self) -> dict[str, str]:
        return self._session.variables.reported()

    @property
    def shared(self) -> Shared:
        return self._shared

    def split(self, text: str) -> list[Prepared]:
        self._statement.begin_turn()
        template = template_of(text)
        if template is not None:
            self._shared.begin(is_string=False)
            return [Prepared(text, Unparsed(text, template))]
        statements = statements_of(text)
        self._shared.begin(is_string=len(statements) > 1)
        return [Prepared(statement.text, statement) for statement in statements]

    async def prepare(self, text: str, parameter_oids: Sequence[int]) -> Prepared:
        self._shared.begin(is_string=False)
        parsed = parse(text)
        if len(parsed) > 1:
            raise SqlSyntaxError("cannot insert multiple commands into a prepared statement")
        if not parsed:
            return Prepared(text, None)
        if not ends_failure(parsed[0].statement):
            self._refuse_failed()
        types = [type_of_oid(oid) if oid else None for oid in parameter_oids]
        return await self._prepared(text, parsed[0], types)

    async def _prepared(
        self, text: str, parsed: Parsed, types: Sequence[SqlType | None]
    ) -> Prepared:
        try:
            snapshot = await self._env.catalog.current()
        except PersistFault as fault:
            raise _told(fault, self._on_fault) from fault
        snapshot = await self._seen(parsed, snapshot)
        planned = self._planner.plan(parsed, types, self._session, snapshot)
        result = result_desc(planned.plan, self._session)
        return Prepared(text, parsed, planned.parameter_types, result)

    async def execute(self, prepared: Prepared, parameters: Sequence[Datum]) -> Response:
        if prepared.statement is None:
            return EmptyResponse()
        return await self._ran(lambda: self._execute(prepared, parameters))

    def _fail_transaction(self) -> None:
        if self._session.transaction is not None and self._session.transaction.explicit:
            self._session.transaction.failed = True

    async def _take(self, stream: RowStream, most: int | None) -> Sequence[Row] | None:
        try:
            return await self._ran(lambda: _taken(stream, most))
        except BaseException:
            stream.close()
            raise

    async def _give(self, sink: RowSink, received: _Received) -> str | None:
        return await self._ran(lambda: _given(sink, received))

    async def _ran(self, work: Callable[[], Coroutine[None, None, T]]) -> T:
        """Its result; a cancel is told as 57014, a fault as the error it means."""
        try:
            return await self._statement.run(work)
        except BaseException as error:
            self._fail_transaction()
            if isinstance(error, PersistFault):
                raise _told(error, self._on_fault, self._env.catalog.newest) from error
            raise

    async def _execute(self, prepared: Prepared, parameters: Sequence[Datum]) -> Response:
        """Run it within the statement's timeout. Of a stream only its beginning is bounded so."""
        limit = Limit(self._session.statement_timeout_ms)
        try:
            request = await self._request(prepared, parameters)
            if isinstance(request.plan, FetchPlan | ReconfigureClusterPlan):
                # They have timeouts of their own, and may wait as long as nothing happens.
                limit.lift()
            return await self._run(request)
        except asyncio.CancelledError:
            if not limit.passed:
                raise
            raise QueryCanceled(
                "canceling statement due to statement timeout",
                hint="If it waited for a view, mz_internal.mz_hydration_statuses says what that"
                " waits for; mz_internal.mz_cluster_replica_statuses, how its replicas are.",
            ) from None
        finally:
            limit.lift()

    async def _request(self, prepared: Prepared, parameters: Sequence[Datum]) -> Request:
        parsed = prepared.statement
        snapshot = await self._seen(parsed, await self._catalog(parsed))
        if isinstance(parsed, Unparsed):
            return self._planner.request_by_template(parsed, self._session, snapshot)
        if isinstance(parsed, Listed):
            return self._planner.request_by_shape(parsed, self._session, snapshot)
        assert isinstance(parsed, Parsed)
        types = prepared.parameter_types
        known = with_oids(parameters, types, snapshot, self._session)
        request = self._planner.request(parsed, types, known, self._session, snapshot)
        if not isinstance(request.plan, _LEAVES_CATALOG):
            self._shared.seen = None
        return request

    async def _catalog(self, parsed: object) -> Snapshot:
        """The catalog with every DDL that was acknowledged before the message came.

        Statements of one text share one look at it, as long as none of them may have changed it.
        COMMIT looks for itself: by then a right may have been taken away.
        """
        shared = self._shared
        ends = isinstance(parsed, Parsed) and isinstance(parsed.statement, _BLOCK_ENDS)
        if shared.seen is not None and not ends:
            return shared.seen
        snapshot = await self._env.catalog.current()
        shared.seen = snapshot if shared.is_string else None
        return snapshot

    async def _seen(self, parsed: object, snapshot: Snapshot) -> Snapshot:
        """The catalog as the session sees it; what ends a block does not look at what is in it."""
        if isinstance(parsed, Parsed) and isinstance(parsed.statement, _BLOCK_ENDS):
            return self._session.temporary.over(snapshot)
        return await as_seen(snapshot, self._session, self._env)

    async def _run(self, request: Request) -> Response:
        self._refuse_after_failure(request.plan)
        if not self._shared.is_string and must_part(self._session.transaction, request.plan):
            await self.end_implicit(failed=False)
        if self._session.transaction is None:
            span = Span.STRING if self._shared.is_string else Span.STATEMENT
            span = Span.PIPELINE if self._shared.pipelined else span
            self._session.transaction = Transaction(span)
            self._session.temporary.begin()
        match request.plan:
            case FetchPlan(name=name):
                await self._run_portal(name)
            case SelectPlan(desc=desc):
                self._shared.unfinished = desc
            case _:
                pass
        match request.plan:
            case PreparePlan() as plan:
                return await self._prepare_named(plan)
            case ExecutePlan() as plan:
                return await self._execute_named(plan)
            case _:
                response = await dispatch(request, self._session, self._env)
        self._shared.unfinished = None
        if isinstance(response, StreamResponse):
            return replace(response, rows=_Stream(response.rows, self._take))
        if isinstance(response, CopyInResponse):
            return replace(response, rows=_Sink(response.rows, self._give))
        return response

    async def _run_portal(self, name: str) -> None:
        """FETCH may name what Bind has made, and be the first to ask for its rows."""
        portal = self._session.cursors.get(name)
        if portal is not None and portal.response is None:
            portal.response = await self._execute(portal.prepared, portal.parameters)

    def _refuse_after_failure(self, plan: Plan) -> None:
        if not ends_failure(plan):
            self._refuse_failed()

    def _refuse_failed(self) -> None:
        transaction = self._session.transaction
        if transaction is not None and transaction.failed:
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
        self._shared.check_described(prepared)
        arguments = [compile_scalar(argument)(()) for argument in plan.arguments]
        return await self._execute(prepared, arguments)

    async def end_implicit(self, *, failed: bool) -> None:
        # No text goes on behind this; where one parts statements of a pipeline, none did.
        self._shared.begin(is_string=False)
        transaction = self._session.transaction
        if transaction is None:
            return
        if transaction.explicit:
            transaction.failed = transaction.failed or failed
            return
        try:
            if failed:
                self._session.temporary.roll_back()
            else:
                await commit_collected(transaction, self._session, self._env)
        except BaseException as error:
            # What was made of its own goes with what could not be committed.
            self._session.temporary.roll_back()
            if isinstance(error, PersistFault):
                raise _told(error, self._on_fault, self._env.catalog.newest) from error
            raise
        finally:
            self._session.end_transaction()

    def take_events(self) -> SessionEvents:
        notices, self._session.notices = self._session.notices, []
        if notices:
            least = self._session.variables.get("client_min_messages")
            notices = wanted_notices(notices, least)
        changed = self._session.variables.take_changed()
        return SessionEvents(notices, changed, self._shared.take_unfinished())

    def cancel(self) -> None:
        self._statement.cancel()

    async def close(self) -> None:
        self.cancel()
        self._session.end_transaction()
        self._session.temporary.clear()


class Connections:
    """Opens sessions over one environment: the SessionFactory of an adapter."""

    def __init__(self, env: Environment, on_fault: Callable[[PersistFault], None]) -> None:
        self._env = env
        self._planner = Planner(env)
        self._on_fault = on_fault
        self._temporary_space = Space()
        # What the log has been told of stored values: sessions are many.
        self._told_ignored: set[Notice] = set()

    async def credentials(self, user: str) -> Credentials:
        """By what the user's password is checked."""
        return credentials_of(user, await self._snapshot())

    async def _snapshot(self) -> Snapshot:
        try:
            return await self._env.catalog.current()
        except PersistFault as fault:
            raise _told(fault, self._on_fault) from fault

    async def open_session(
        self, parameters: dict[str, str], *, internal: bool, proved: Credentials | None = None
    ) -> Connection:
        """A session with the system's defaults, its role's, and the startup message's wishes."""
        snapshot = await self._snapshot()
        user = parameters.get("user") or DEFAULT_USER
        if proved is not None:
            check_still_proved(user, proved, snapshot)
        role = login_role(user, snapshot, internal=internal)
        starting = starting_values(role, snapshot)
        login = Login(role.role_id, role.superuser, internal)
        own = Temporary(self._temporary_space)
        session = open_session(parameters, with_cluster(starting.values, snapshot), login, own)
        self._note_ignored(starting.ignored, session)
        note_missing(session, snapshot)
        return Connection(session, self._env, self._planner, self._on_fault)

    def _note_ignored(self, ignored: Sequence[Notice], session: Session) -> None:
        """The client is told each time, so that whoever may mend it learns of it."""
        session.notices.extend(ignored)
        for notice in ignored:
            if notice not in self._told_ignored:
                self._told_ignored.add(notice)
                log.warning(notice.message, hint=notice.hint)


class _Sink:
    """Rows for a COPY, taken as part of its session: a cancel ends it, and faults are told."""

    def __init__(
        self, sink: RowSink, give: Callable[[RowSink, _Received], Awaitable[str | None]]
    ) -> None:
        self._sink = sink
        self._give = give

    async def feed(self, received: bytes) -> None:
        await self._give(self._sink, received)

    async def feed_rows(self, rows: Sequence[Row]) -> None:
        await self._give(self._sink, rows)

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


async def _given(sink: RowSink, received: _Received) -> str | None:
    if received is None:
        return await sink.finish()
    if isinstance(received, bytes):
        await sink.feed(received)
    else:
        await sink.feed_rows(received)
    return None


async def _taken(stream: RowStream, most: int | None) -> Sequence[Row] | None:
    return await stream.take(most)


def _told(
    fault: PersistFault, on_fault: Callable[[PersistFault], None], snapshot: Snapshot | None = None
) -> SqlError:
    """The client's error; the process hears of the fault if it must end with it."""
    if ends_the_process(fault):
        on_fault(fault)
    return told(fault, None if snapshot is None else _whose(fault, snapshot))


def _whose(fault: PersistFault, snapshot: Snapshot) -> str | None:
    """What a client calls the shard that a fault names."""
    if not isinstance(fault, Corrupt | BlobMissing) or fault.shard_id is None:
        return None
    owners = (item for item in snapshot.items.values() if item.shard_id == fault.shard_id)
    item = next(owners, None)
    return None if item is None else f'{item.kind.sql_words} "{item.name}"'
