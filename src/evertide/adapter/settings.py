"""SHOW, SET and RESET of session variables."""

from typing import Final

from evertide.adapter.client import CommandResponse, RowsResponse
from evertide.adapter.environment import Environment
from evertide.adapter.missing_names import names_something, note_missing_value
from evertide.adapter.session import Session
from evertide.adapter.transaction import Span
from evertide.adapter.variables import lookup
from evertide.sql.plan.plans import (
    ResetAllPlan,
    SetTransactionPlan,
    SetVariablePlan,
    ShowVariablePlan,
)
from evertide.sql.schema_list import variable_text
from evertide.vocab.errors import ActiveTransaction, FeatureNotSupported
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT

# A client that sends ahead has not begun anything yet.
_BLOCKS: Final = (Span.BLOCK, Span.STRING)


def run_show(plan: ShowVariablePlan, session: Session) -> RowsResponse:
    """One variable's value, or all with their descriptions."""
    if plan.name is None:
        desc = relation_desc(("name", TEXT), ("setting", TEXT), ("description", TEXT))
        return RowsResponse(desc, session.variables.all(), tag="SHOW")
    variable = lookup(plan.name)
    desc = relation_desc((variable.name, TEXT))
    return RowsResponse(desc, [(session.variables.get(plan.name),)], tag="SHOW")


async def run_set(plan: SetVariablePlan, session: Session, env: Environment) -> CommandResponse:
    """Set or reset one variable. What names nothing is only noted."""
    name = lookup(plan.name).name
    transaction = session.transaction
    if transaction is not None and transaction.explicit and transaction.queried:
        if name == "cluster":
            raise ActiveTransaction("SET cluster cannot be called in an active transaction")
        if name == "transaction_isolation":
            transaction.become(read_only=None, isolation=name)
    value = None if plan.values is None else variable_text(name, plan.values)
    session.variables.set(plan.name, value, local=plan.local)
    if names_something(name):
        note_missing_value(name, session, await env.catalog.current())
    return CommandResponse(plan.tag)


def run_reset_all(plan: ResetAllPlan, session: Session) -> CommandResponse:
    """RESET ALL; DISCARD ALL also forgets prepared statements, cursors and temporary objects."""
    block = session.transaction is not None and session.transaction.span in _BLOCKS
    if block and plan.tag == "DISCARD ALL":
        raise ActiveTransaction("DISCARD ALL cannot run inside a transaction block")
    session.variables.reset_all()
    if plan.tag.startswith("DISCARD"):
        session.prepared.clear()
        session.cursors.clear()
        session.temporary.clear()
    return CommandResponse(plan.tag)


def run_set_transaction(plan: SetTransactionPlan, session: Session) -> CommandResponse:
    """SET TRANSACTION, or SET SESSION CHARACTERISTICS for those to come."""
    if session.transaction is not None and not plan.session:
        if plan.read_only is not None and not session.transaction.explicit:
            # It would hold for nothing.
            raise FeatureNotSupported("SET TRANSACTION <access-mode> not yet supported")
        session.transaction.become(read_only=plan.read_only, isolation=plan.isolation)
    if plan.isolation is not None:
        session.variables.set("transaction_isolation", plan.isolation, local=not plan.session)
    return CommandResponse("SET")
