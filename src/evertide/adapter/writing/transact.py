"""BEGIN, COMMIT and ROLLBACK."""

from evertide.adapter.client import CommandResponse
from evertide.adapter.ddl.block import commit_definitions
from evertide.adapter.environment import Environment
from evertide.adapter.rights.check import authorize_commit
from evertide.adapter.session import Session
from evertide.adapter.transaction import Defining, Span, Transaction, Untouched, Writing
from evertide.adapter.writing.write import commit_transaction
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.plans import BeginPlan
from evertide.vocab.errors import Notice


def run_begin(plan: BeginPlan, session: Session) -> CommandResponse:
    """Start a transaction block; a second BEGIN only warns."""
    current = session.transaction
    if current is not None and current.explicit:
        message = "there is already a transaction in progress"
        session.notices.append(Notice("WARNING", "25001", message))
        current.become(read_only=plan.read_only, isolation=plan.isolation)
        if plan.isolation is not None:
            session.variables.set("transaction_isolation", plan.isolation, local=True)
        return CommandResponse(plan.tag)
    if current is None:
        current = session.transaction = Transaction()
    current.span, current.read_only = Span.BLOCK, bool(plan.read_only)
    session.variables.begin_transaction()
    session.temporary.begin()
    if plan.isolation is not None:
        session.variables.set("transaction_isolation", plan.isolation, local=True)
    return CommandResponse(plan.tag)


async def run_commit(session: Session, env: Environment, snapshot: Snapshot) -> CommandResponse:
    """Commit what was collected, if that is still allowed; of a failed transaction nothing is."""
    transaction = session.transaction
    if transaction is None or not transaction.explicit:
        session.notices.append(_no_transaction())
        if transaction is not None:
            await commit_collected(transaction, session, env)
            session.end_transaction()
        return CommandResponse("COMMIT")
    if transaction.failed:
        session.variables.roll_back()
        session.temporary.roll_back()
        session.end_transaction()
        return CommandResponse("ROLLBACK")
    work = transaction.work
    try:
        if isinstance(work, Writing):
            await _commit_writes(work, transaction, session, env, snapshot)
        elif isinstance(work, Defining):
            await commit_definitions(work, session, env)
    except BaseException:
        session.temporary.roll_back()
        raise
    finally:
        session.end_transaction()
    return CommandResponse("COMMIT")


async def commit_collected(transaction: Transaction, session: Session, env: Environment) -> None:
    """Commit what statements that were sent together have collected so far."""
    if isinstance(transaction.work, Writing):
        work, transaction.work = transaction.work, Untouched()
        snapshot = session.temporary.over(await env.catalog.current())
        await _commit_writes(work, transaction, session, env, snapshot)


async def _commit_writes(
    work: Writing,
    transaction: Transaction,
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> None:
    authorize_commit(transaction.taken, session.role_id, snapshot)
    await commit_transaction(work, session, env)


def run_rollback(session: Session) -> CommandResponse:
    """Forget what was collected."""
    if session.transaction is None or not session.transaction.explicit:
        session.notices.append(_no_transaction())
    else:
        session.variables.roll_back()
        session.temporary.roll_back()
    session.end_transaction()
    return CommandResponse("ROLLBACK")


def _no_transaction() -> Notice:
    return Notice("WARNING", "25P01", "there is no transaction in progress")
