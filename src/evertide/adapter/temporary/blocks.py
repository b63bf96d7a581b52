"""Which statements that change objects may stand in a transaction block."""

from evertide.catalog.kinds.temporary import TEMPORARY_SCHEMA_ID, is_temporary_id
from evertide.sql.plan.plans import (
    CreateTablePlan,
    CreateViewPlan,
    DdlPlan,
    DropPlan,
    RenameItemPlan,
)


def only_own(plan: DdlPlan) -> bool:
    """Whether it changes nothing but the session's temporary objects, so that it can be undone."""
    match plan:
        case CreateTablePlan(name=name) | CreateViewPlan(name=name):
            return name.schema_id == TEMPORARY_SCHEMA_ID
        case DropPlan(items=items):
            others = (plan.schemas, plan.databases, plan.replicas, plan.clusters, plan.secrets)
            return not any(others) and all(map(is_temporary_id, items))
        case RenameItemPlan(item_id=item_id, others_sql=others_sql):
            return is_temporary_id(item_id) and all(is_temporary_id(i) for i, _ in others_sql)
        case _:
            return False
