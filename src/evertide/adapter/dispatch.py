"""The one exhaustive match from Plan to the file that runs it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from evertide.adapter.client import (
    CommandResponse,
    CopyInResponse,
    CopyOutResponse,
    Response,
    RowsResponse,
    StreamResponse,
)
from evertide.adapter.copy_layout import copy_layout
from evertide.adapter.cursor import check_declare, run_close, run_declare, run_fetch
from evertide.adapter.ddl.applying import run_apply
from evertide.adapter.ddl.block import run_in_block
from evertide.adapter.ddl.entry import run_ddl
from evertide.adapter.ddl.undropping import run_undrop
from evertide.adapter.environment import Environment
from evertide.adapter.explain.entry import run_explain
from evertide.adapter.explain.replacement import run_explain_replacement
from evertide.adapter.explain.timestamp import run_explain_timestamp
from evertide.adapter.lookups.object_names import with_names
from evertide.adapter.lookups.vectors import with_words
from evertide.adapter.mapped_stream import MappedStream
from evertide.adapter.reading.isolation import refuse_stale_writes
from evertide.adapter.reading.question import Question
from evertide.adapter.reading.read import open_read
from evertide.adapter.reading.result_size import check_result_size
from evertide.adapter.reading.result_stream import ResultStream
from evertide.adapter.rights.needs import write_needs
from evertide.adapter.savepoints import run_savepoint
from evertide.adapter.session import Session
from evertide.adapter.settings import (
    run_reset_all,
    run_set,
    run_set_transaction,
    run_show,
)
from evertide.adapter.subscribe.start import run_subscribe
from evertide.adapter.temporary.blocks import only_own
from evertide.adapter.transaction import Defining, Planning, only_defining
from evertide.adapter.writing.copy_in import start_copy
from evertide.adapter.writing.transact import (
    commit_collected,
    run_begin,
    run_commit,
    run_rollback,
)
from evertide.adapter.writing.write import run_delete, run_insert, run_update
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import CollectionDropped
from evertide.expr.scalar import Literal
from evertide.sql.plan.clusters.plans import (
    AlterClusterProfilePlan,
    ChangePlan,
    CreateClusterPlan,
    CreateClusterProfilePlan,
    ReconfigureClusterPlan,
)
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
from evertide.sql.plan.named.plans import AlterSecretPlan, CreateSecretPlan, CreateTypePlan
from evertide.sql.plan.plans import (
    AlterHistoryPlan,
    AlterSystemPlan,
    BeginPlan,
    ClosePlan,
    CommitPlan,
    CopyFromPlan,
    CopyToPlan,
    CreateDatabasePlan,
    CreateIndexPlan,
    CreateMaterializedViewPlan,
    CreateSchemaPlan,
    CreateTablePlan,
    CreateViewPlan,
    DataPlan,
    DdlPlan,
    DeallocatePlan,
    DeclarePlan,
    DeletePlan,
    DiscardTemporaryPlan,
    DropPlan,
    ExecutePlan,
    ExplainPlan,
    ExplainReplacementPlan,
    ExplainTimestampPlan,
    FetchPlan,
    InsertPlan,
    NoticePlan,
    Plan,
    PreparePlan,
    RenameItemPlan,
    ResetAllPlan,
    RollbackPlan,
    SavepointPlan,
    SelectPlan,
    SessionPlan,
    SetTransactionPlan,
    SetVariablePlan,
    ShowVariablePlan,
    SubscribePlan,
    UpdatePlan,
)
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.vocab.errors import SqlError, UndefinedPreparedStatement


@dataclass(frozen=True, slots=True)
class Request:
    """A planned statement on its way.

    `plan_again` plans the same statement against another snapshot, for DDL that lost a race.
    """

    plan: Plan
    snapshot: Snapshot
    parameters: tuple[Literal, ...]
    plan_again: Callable[[Snapshot], Plan]


async def dispatch(request: Request, session: Session, env: Environment) -> Response:
    """Run a plan. EXECUTE does not come here: the connection replaces it by what it names."""
    try:
        response = await _run(request, session, env)
    except CollectionDropped as dropped:
        raise dropped.named(request.snapshot) from dropped
    return with_names(response, request.snapshot, session)


async def _run(request: Request, session: Session, env: Environment) -> Response:
    plan, snapshot, parameters = request.plan, request.snapshot, request.parameters
    _note_taken(plan, session, snapshot)
    _refuse_beside_definitions(plan, session)
    match plan:
        case SelectPlan():
            return await _select(plan, parameters, session, env, snapshot)
        case SubscribePlan():
            stream = await run_subscribe(plan, parameters, session, env, snapshot)
            return StreamResponse(plan.desc, stream)
        case CopyToPlan(source=source, format=form):
            if isinstance(source, SubscribePlan):
                stream = await run_subscribe(source, parameters, session, env, snapshot)
                return StreamResponse(source.desc, stream, copy_layout(form))
            selected = await _select(source, parameters, session, env, snapshot)
            if isinstance(selected, StreamResponse):
                return replace(selected, layout=copy_layout(form))
            return CopyOutResponse(source.desc, selected.rows, copy_layout(form))
        case InsertPlan():
            return await run_insert(plan, parameters, session, env, snapshot)
        case CopyFromPlan():
            sink = start_copy(plan, session, env, snapshot)
            return CopyInResponse(sink.column_count, sink, sink.binary_types)
        case UpdatePlan():
            return await run_update(plan, parameters, session, env, snapshot)
        case DeletePlan():
            return await run_delete(plan, parameters, session, env, snapshot)
        case DeclarePlan(name=name, source=source):
            check_declare(name, session)
            if isinstance(source, SubscribePlan):
                stream = await run_subscribe(source, parameters, session, env, snapshot)
                return run_declare(name, StreamResponse(source.desc, stream), session)
            selected = await _select(source, parameters, session, env, snapshot)
            return run_declare(name, replace(selected, tag="SELECT"), session)
        case ExplainPlan():
            return await run_explain(plan, parameters, session, env, snapshot)
        case ExplainReplacementPlan():
            return await run_explain_replacement(plan, session, env, snapshot)
        case ExplainTimestampPlan():
            return await run_explain_timestamp(plan, parameters, session, env, snapshot)
        case (
            CreateTablePlan()
            | CreateViewPlan()
            | CreateMaterializedViewPlan()
            | CreateIndexPlan()
            | CreateSourcePlan()
            | CreateSinkPlan()
            | RolePlan()
            | CreateTypePlan()
            | CreateSecretPlan()
            | AlterSecretPlan()
            | CreateSchemaPlan()
            | CreateDatabasePlan()
            | CreateClusterPlan()
            | CreateClusterProfilePlan()
            | AlterClusterProfilePlan()
            | ReconfigureClusterPlan()
            | ChangePlan()
            | DropPlan()
            | RenameItemPlan()
            | AlterHistoryPlan()
            | AlterSystemPlan()
            | ApplyReplacementPlan()
            | UndropPlan()
        ):
            return await _ddl(request, plan, session, env)
        case _:
            return await _session_statement(plan, session, env, snapshot)


def _note_taken(plan: Plan, session: Session, snapshot: Snapshot) -> None:
    """What a statement that writes leaves behind; in a block its rights are asked for again."""
    if not isinstance(plan, InsertPlan | CopyFromPlan | UpdatePlan | DeletePlan):
        return
    refuse_stale_writes(session)
    session.own.note_write()
    transaction = session.transaction
    if transaction is not None and transaction.goes_on:
        transaction.taken.update(dict.fromkeys(write_needs(plan, snapshot)))


def _refuse_beside_definitions(plan: Plan, session: Session) -> None:
    """A block that changes objects does nothing else, be it with constants alone."""
    transaction = session.transaction
    if transaction is None or not isinstance(plan, DataPlan):
        return
    if isinstance(transaction.work, Defining):
        raise only_defining()
    transaction.queried = True


async def _select(
    plan: SelectPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> RowsResponse | StreamResponse:
    """The rows of a query. Those that come as a stream do so no longer than the transaction."""
    question = Question(plan.relation, plan.finishing, parameters)
    exact, at_least = (None, plan.as_of) if plan.at_least else (plan.as_of, None)
    found = await open_read(question, session, env, snapshot, wanted_as_of=exact, at_least=at_least)
    words = partial(with_words, vectors=plan.vectors) if plan.vectors else None
    if not isinstance(found, ResultStream):
        check_result_size(found, session)
        return RowsResponse(plan.desc, found if words is None else words(found), plan.tag)
    assert session.transaction is not None, "every statement runs in one"
    session.transaction.streams.append(found)
    try:
        check_result_size(found, session)
    except SqlError:
        found.close()
        raise
    rows = found if words is None else MappedStream(found, words)
    return StreamResponse(plan.desc, rows, tag=plan.tag, is_query=True)


class _AnotherPlan(Exception):
    """What a statement names went or came meanwhile, so that it has become another kind of plan."""

    def __init__(self, plan: Plan, snapshot: Snapshot) -> None:
        super().__init__(type(plan).__name__)
        self.plan = plan
        self.snapshot = snapshot


async def _ddl(request: Request, plan: DdlPlan, session: Session, env: Environment) -> Response:
    """DDL commits by itself. In a transaction block it waits for COMMIT, but for what concerns the
    session's temporary objects alone, which is undone with the block."""
    transaction = session.transaction
    if transaction is not None and transaction.explicit:
        waits = isinstance(transaction.work, Defining) or not only_own(plan)
        if waits:
            return run_in_block(plan, _planning(plan, request), session, env, request.snapshot)
    elif transaction is not None:
        await commit_collected(transaction, session, env)

    def plan_again(newer: Snapshot) -> DdlPlan:
        snapshot = session.temporary.over(newer)
        if snapshot.version == request.snapshot.version:
            return plan
        again = request.plan_again(snapshot)
        if not isinstance(again, type(plan)):
            raise _AnotherPlan(again, snapshot)
        return again

    try:
        if isinstance(plan, ApplyReplacementPlan):
            return await run_apply(plan, plan_again, session, env, request.snapshot)
        if isinstance(plan, UndropPlan):
            return await run_undrop(plan_again, session, env, request.snapshot)
        return await run_ddl(plan_again, session, env, request.snapshot)
    except _AnotherPlan as other:
        # ALTER ... IF EXISTS of what was dropped: nothing was changed, and a notice is the answer.
        now = replace(request, plan=other.plan, snapshot=other.snapshot)
    return await dispatch(now, session, env)


def _planning(plan: DdlPlan, request: Request) -> Planning:
    """How a statement of a block is planned again."""

    def planning(newer: Snapshot) -> DdlPlan | None:
        if newer.version == request.snapshot.version:
            return plan
        again = request.plan_again(newer)
        return again if isinstance(again, type(plan)) else None

    return planning


async def _session_statement(
    plan: SessionPlan, session: Session, env: Environment, snapshot: Snapshot
) -> Response:
    """Statements that concern the session alone."""
    match plan:
        case ShowVariablePlan():
            return run_show(plan, session)
        case SetVariablePlan():
            return await run_set(plan, session, env)
        case ResetAllPlan():
            return run_reset_all(plan, session)
        case DiscardTemporaryPlan():
            session.temporary.clear()
            return CommandResponse("DISCARD TEMP")
        case SetTransactionPlan():
            return run_set_transaction(plan, session)
        case BeginPlan():
            return run_begin(plan, session)
        case CommitPlan():
            return await run_commit(session, env, snapshot)
        case RollbackPlan():
            return run_rollback(session)
        case SavepointPlan():
            return run_savepoint(plan, session)
        case FetchPlan():
            return await run_fetch(plan, session)
        case ClosePlan():
            return run_close(plan, session)
        case DeallocatePlan(name=name):
            return _deallocate(name, session)
        case NoticePlan(tag=tag, notices=notices):
            session.notices.extend(notices)
            return CommandResponse(tag)
        case PreparePlan() | ExecutePlan():
            raise AssertionError("the connection handles prepared statements itself")
        case _:
            assert_never(plan)


def _deallocate(name: str | None, session: Session) -> Response:
    if name is None:
        session.prepared.clear()
        return CommandResponse("DEALLOCATE ALL")
    if session.prepared.pop(name, None) is None:
        raise UndefinedPreparedStatement(f'prepared statement "{name}" does not exist')
    return CommandResponse("DEALLOCATE")
