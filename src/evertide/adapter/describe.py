"""The shape of a plan's answer, before it runs: what Describe tells a client."""

from evertide.adapter.session import Session
from evertide.adapter.variables import lookup
from evertide.sql.plan.plans import (
    DeletePlan,
    ExecutePlan,
    ExplainPlan,
    ExplainReplacementPlan,
    ExplainTimestampPlan,
    FetchPlan,
    InsertPlan,
    Plan,
    SelectPlan,
    ShowVariablePlan,
    SubscribePlan,
    UpdatePlan,
)
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import TEXT


def result_desc(plan: Plan, session: Session) -> RelationDesc | None:
    """The rows' columns; None for statements without rows."""
    match plan:
        case SelectPlan(desc=desc) | SubscribePlan(desc=desc):
            return desc
        case (
            InsertPlan(returning=returning)
            | UpdatePlan(returning=returning)
            | DeletePlan(returning=returning)
        ):
            return None if returning is None else returning.desc
        case ShowVariablePlan(name=None):
            return relation_desc(("name", TEXT), ("setting", TEXT), ("description", TEXT))
        case ShowVariablePlan(name=str(name)):
            return relation_desc((lookup(name).name, TEXT))
        case ExplainPlan() | ExplainReplacementPlan():
            return relation_desc(("Explain", TEXT))
        case ExplainTimestampPlan():
            return relation_desc(("Timestamp", TEXT))
        case FetchPlan(name=name):
            cursor = session.cursors.get(name)
            return None if cursor is None else cursor.desc
        case ExecutePlan(name=name):
            prepared = session.prepared.get(name)
            return None if prepared is None else prepared.result
        case _:
            return None
