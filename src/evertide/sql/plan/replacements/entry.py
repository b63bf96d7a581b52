"""Statements about replacements to plans."""

from typing import assert_never

from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import CreateMaterializedViewPlan, NoticePlan
from evertide.sql.plan.replacements.apply import plan_apply_replacement
from evertide.sql.plan.replacements.changes import (
    plan_explain_replacement as plan_explain_replacement,
)
from evertide.sql.plan.replacements.changes import plan_show_changes as plan_show_changes
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.sql.plan.replacements.restore import plan_restore_version
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.syntax.replacement import (
    ApplyReplacementStatement,
    ReplacementStatement,
    RestoreVersionStatement,
)


def plan_replacement_statement(
    statement: ReplacementStatement, query: QueryContext
) -> ApplyReplacementPlan | CreateMaterializedViewPlan | RolePlan | NoticePlan:
    """What ALTER MATERIALIZED VIEW does with replacements."""
    match statement:
        case ApplyReplacementStatement():
            return plan_apply_replacement(statement, query)
        case RestoreVersionStatement():
            return plan_restore_version(statement, query)
        case _:
            assert_never(statement)
