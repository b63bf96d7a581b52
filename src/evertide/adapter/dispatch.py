"""The one exhaustive match from Plan to the file that runs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from evertide.adapter.client import (
    CommandResponse,
    CopyInResponse,
    CopyOutResponse,
    Response,
    RowsResponse,
    StreamResponse,
)
from evertide.adapter.cursor import check_declare, run_close, run_declare, run_fetch
from evertide.adapter.ddl.applying import run_apply
from evertide.adapter.ddl.entry import run_ddl
from evertide.adapter.environment import Environment
from evertide.adapter.explain.entry import run_explain
from evertide.adapter.explain.replacement import run_explain_replacement
from evertide.adapter.explain.timestamp import run_explain_timestamp
from evertide.adapter.lookups.object_names import with_names
from evertide.adapter.reading.read import Question, run_read
from evertide.adapter.rights.needs import write_needs
from evertide.adapter.session import Cursor, Session, StreamCursor
from evertide.adapter.settings import (
    run_reset_all,
    run_set,
    run_set_transaction,
    run_show,
)
from evertide.adapter.subscribe.start import run_subscribe
from evertide.adapter.writing.copy_in import start_copy
from evertide.adapter.writing.transact import run_begin, run_commit, run_rollback
from evertide.adapter.writing.write import run_delete, run_insert, run_update
from evertide.catalog.snapshot import Snapshot
from evertide.expr.scalar import Literal
from evertide.sql.plan.clusters.plans import (
    AlterClusterProfilePlan,
    ChangePlan,
    CreateClusterPlan,
    CreateClusterProfilePlan,
    ReconfigureClusterPlan,
)
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
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
    DdlPlan,
    DeallocatePlan,
    DeclarePlan,
    DeletePlan,
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
from evertide.vocab.datum import Row
from evertide.vocab.errors import ActiveTransaction, UndefinedPreparedStatement


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
    return with_names(await _run(request, session, env), request.snapshot, session)


async def _run(request: Request, session: Session, env: Environment) -> Response:
    plan, snapshot, parameters = request.plan, request.snapshot, request.parameters
    _note_taken(plan, session, snapshot)
    match plan:
        case SelectPlan():
            rows = await select_rows(plan, parameters, session, env, snapshot)
            return RowsResponse(plan.desc, rows, plan.tag)
        case SubscribePlan():
            stream = await run_subscribe(plan, parameters, session, env, snapshot)
            return StreamResponse(plan.desc, stream)
        case CopyToPlan(source=source):
            if isinstance(source, SubscribePlan):
                stream = await run_subscribe(source, parameters, session, env, snapshot)
                return StreamResponse(source.desc, stream, copy=True)
            rows = await select_rows(source, parameters, session, env, snapshot)
            return CopyOutResponse(source.desc, rows)
        case InsertPlan():
            return await run_insert(plan, parameters, session, env, snapshot)
        case CopyFromPlan():
            sink = start_copy(plan, session, env, snapshot)
            return CopyInResponse(sink.column_count, sink)
        case UpdatePlan():
            return await run_update(plan, parameters, session, env, snapshot)
        case DeletePlan():
            return await run_delete(plan, parameters, session, env, snapshot)
        case DeclarePlan(name=name, source=source):
            check_declare(name, session)
            if isinstance(source, SubscribePlan):
                stream = await run_subscribe(source, parameters, session, env, snapshot)
                return run_declare(name, StreamCursor(source.desc, stream), session)
            rows = await select_rows(source, parameters, session, env, snapshot)
            return run_declare(name, Cursor(source.desc, rows), session)
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
        ):
            return await _ddl(request, plan, session, env)
        case _:
            return await _session_statement(plan, session, env, snapshot)


def _note_taken(plan: Plan, session: Session, snapshot: Snapshot) -> None:
    """In a block, rights to write are asked for again at COMMIT."""
    transaction = session.transaction
    if transaction is None or not transaction.explicit:
        return
    if isinstance(plan, InsertPlan | CopyFromPlan | UpdatePlan | DeletePlan):
        transaction.taken.update(dict.fromkeys(write_needs(plan, snapshot)))


async def select_rows(
    plan: SelectPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Sequence[Row]:
    """The rows of a query."""
    question = Question(plan.relation, plan.finishing, parameters)
    exact, at_least = (None, plan.as_of) if plan.at_least else (plan.as_of, None)
    return await run_read(question, session, env, snapshot, wanted_as_of=exact, at_least=at_least)


class _AnotherPlan(Exception):
    """What a statement names went or came meanwhile, so that it has become another kind of plan."""

    def __init__(self, plan: Plan, snapshot: Snapshot) -> None:
        super().__init__(type(plan).__name__)
        self.plan = plan
        self.snapshot = snapshot


async def _ddl(request: Request, plan: DdlPlan, session: Session, env: Environment) -> Response:
    """DDL commits by itself, so it cannot be part of a transaction block."""
    if session.transaction is not None and session.transaction.explicit:
        raise ActiveTransaction(
            "this statement cannot be run inside a transaction block",
            hint="Run it on its own, outside BEGIN and COMMIT.",
        )

    def plan_again(snapshot: Snapshot) -> DdlPlan:
        if snapshot.upper == request.snapshot.upper:
            return plan
        again = request.plan_again(snapshot)
        if not isinstance(again, type(plan)):
            raise _AnotherPlan(again, snapshot)
        return again

    try:
        if isinstance(plan, ApplyReplacementPlan):
            return await run_apply(plan, plan_again, session, env, request.snapshot)
        return await run_ddl(plan_again, session, env, request.snapshot)
    except _AnotherPlan as other:
        # ALTER ... IF EXISTS of what was dropped: nothing was changed, and a notice is the answer.
        now = replace(request, plan=other.plan, snapshot=other.snapshot)
    return await dispatch(now, session, env)


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
        case SetTransactionPlan():
            return run_set_transaction(plan, session)
        case BeginPlan():
            return run_begin(plan, session)
        case CommitPlan():
            return await run_commit(session, env, snapshot)
        case RollbackPlan():
            return run_rollback(session)
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
