"""Statements that come before one Sync: one transaction, as far as they can be.

A transaction either reads, or writes, or changes objects. A client that sends ahead has not begun
one and does not expect to be refused, so where statements of two kinds meet, the first kind is
committed and a new transaction begins.
"""

from evertide.adapter.transaction import Defining, Reading, Subscribing, Transaction, Writing
from evertide.expr.traverse import gets
from evertide.sql.plan.plans import (
    CopyFromPlan,
    CopyToPlan,
    DdlPlan,
    DeclarePlan,
    DeletePlan,
    InsertPlan,
    Plan,
    SelectPlan,
    SubscribePlan,
    UpdatePlan,
)


def must_part(transaction: Transaction | None, plan: Plan) -> bool:
    """Whether the plan cannot be part of this transaction, which nobody began."""
    if transaction is None or transaction.explicit or transaction.failed:
        return False
    match transaction.work:
        case Writing():
            return _reads(plan) or isinstance(plan, DdlPlan)
        case Reading() | Subscribing():
            return _writes(plan) or isinstance(plan, DdlPlan)
        case Defining():
            return _reads(plan) or _writes(plan)
        case _:
            return False


def _writes(plan: Plan) -> bool:
    return isinstance(plan, InsertPlan | UpdatePlan | DeletePlan | CopyFromPlan)


def _reads(plan: Plan) -> bool:
    """Constants are no reading: they are the same at any time."""
    match plan:
        case SelectPlan(relation=relation):
            return bool(gets(relation))
        case CopyToPlan(source=source) | DeclarePlan(source=source):
            return _reads(source)
        case SubscribePlan():
            return True
        case _:
            return False
