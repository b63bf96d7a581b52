"""BEGIN, COMMIT and ROLLBACK."""

from evertide.adapter.client import CommandResponse
from evertide.adapter.environment import Environment
from evertide.adapter.rights.check import authorize_commit
from evertide.adapter.session import Session
from evertide.adapter.transaction import Transaction, Writing
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
        return CommandResponse(plan.tag)
    session.transaction = Transaction(explicit=True, read_only=bool(plan.read_only))
    session.variables.begin_transaction()
    if plan.isolation is not None:
        session.variables.set("transaction_isolation", plan.isolation, local=True)
    return CommandResponse(plan.tag)


async def run_commit(session: Session, env: Environment, snapshot: Snapshot) -> CommandResponse:
    """Commit what was collected, if that is still allowed; of a failed transaction nothing is."""
    transaction = session.transaction
    if transaction is None or not transaction.explicit:
        session.notices.append(_no_transaction())
        return CommandResponse("COMMIT")
    if transaction.failed:
        session.variables.roll_back()
        session.end_transaction()
        return CommandResponse("ROLLBACK")
    work = transaction.work
    try:
        if isinstance(work, Writing):
            authorize_commit(transaction.taken, session.role_id, snapshot)
            await commit_transaction(work, env)
    finally:
        session.end_transaction()
    return CommandResponse("COMMIT")


def run_rollback(session: Session) -> CommandResponse:
    """Forget what was collected."""
    if session.transaction is None or not session.transaction.explicit:
        session.notices.append(_no_transaction())
    else:
        session.variables.roll_back()
    session.end_transaction()
    return CommandResponse("ROLLBACK")


def _no_transaction() -> Notice:
    return Notice("WARNING", "25P01", "there is no transaction in progress")
