"""SAVEPOINT, RELEASE and ROLLBACK TO: how a block was, to go back to.

A block keeps what it would commit, so going back is forgetting what was added since. The time that
it reads at stays, and so does what it has read for its writes: to check more than needed is safe.
"""

from typing import Final

from evertide.adapter.client import CommandResponse
from evertide.adapter.savepoint import Savepoint
from evertide.adapter.session import Session
from evertide.adapter.transaction import Defining, Transaction, Untouched, Writing
from evertide.sql.plan.plans import CommitPlan, Plan, RollbackPlan, SavepointPlan
from evertide.sql.syntax.command import (
    CommitStatement,
    RollbackStatement,
    SavepointAction,
    SavepointStatement,
)
from evertide.sql.syntax.statement import Statement
from evertide.vocab.errors import InsufficientResources, InvalidSavepoint, NoActiveTransaction

# Some drivers set one before each statement and release none.
MOST_SAVEPOINTS: Final = 100_000
_WORDS: Final = {
    SavepointAction.SET: "SAVEPOINT",
    SavepointAction.RELEASE: "RELEASE SAVEPOINT",
    SavepointAction.ROLL_BACK: "ROLLBACK TO SAVEPOINT",
}


def ends_failure(asked: Plan | Statement) -> bool:
    """Whether a block that has failed may be asked for this: it ends, or goes back."""
    match asked:
        case SavepointPlan(action=action) | SavepointStatement(action=action):
            return action is SavepointAction.ROLL_BACK
        case _:
            return isinstance(
                asked, CommitPlan | RollbackPlan | CommitStatement | RollbackStatement
            )


def run_savepoint(plan: SavepointPlan, session: Session) -> CommandResponse:
    transaction = session.transaction
    if transaction is None or not transaction.explicit:
        raise NoActiveTransaction(f"{_WORDS[plan.action]} can only be used in transaction blocks")
    savepoints = session.own.savepoints
    if plan.action is SavepointAction.SET:
        if len(savepoints) >= MOST_SAVEPOINTS:
            raise InsufficientResources(
                f"a transaction is limited to {MOST_SAVEPOINTS} savepoints",
                hint="Release those that are no longer needed.",
            )
        savepoints.append(_savepoint(plan.name, session, transaction))
        return CommandResponse(plan.action)
    # Of several with one name the newest is meant.
    found = [at for at, savepoint in enumerate(savepoints) if savepoint.name == plan.name]
    if not found:
        raise InvalidSavepoint(f'savepoint "{plan.name}" does not exist')
    if plan.action is SavepointAction.RELEASE:
        del savepoints[found[-1] :]
        return CommandResponse(plan.action)
    _go_back(savepoints[found[-1]], session, transaction)
    del savepoints[found[-1] + 1 :]
    return CommandResponse(plan.action)


def _savepoint(name: str, session: Session, transaction: Transaction) -> Savepoint:
    work = transaction.work
    changes = None
    if isinstance(work, Writing):
        changes = {shard_id: len(writes) for shard_id, writes in work.changes.items()}
    steps = len(work.steps) if isinstance(work, Defining) else 0
    return Savepoint(
        name,
        changes,
        steps,
        frozenset(session.cursors),
        session.variables.saved(),
        session.temporary.held,
    )


def _go_back(savepoint: Savepoint, session: Session, transaction: Transaction) -> None:
    transaction.failed = False
    session.variables.roll_back(savepoint.variables)
    session.temporary.roll_back(savepoint.temporary)
    for name in [name for name in session.cursors if name not in savepoint.cursors]:
        session.cursors.pop(name).end()
    work = transaction.work
    if isinstance(work, Defining):
        del work.steps[savepoint.steps :]
        work.tried = None
        if not work.steps:
            transaction.work = Untouched()
    if not isinstance(work, Writing):
        return
    if savepoint.changes is None:
        transaction.work = Untouched()
        return
    work.go_back(savepoint.changes)
