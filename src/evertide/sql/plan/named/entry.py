"""Statements about types and secrets to plans."""

from typing import assert_never

from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.named.create_type import plan_create_type
from evertide.sql.plan.named.plans import NamedPlan
from evertide.sql.plan.named.secret import plan_alter_secret, plan_create_secret
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.syntax.named import (
    AlterSecretStatement,
    CreateSecretStatement,
    CreateTypeStatement,
    NamedStatement,
)


def plan_named(statement: NamedStatement, query: QueryContext) -> NamedPlan | NoticePlan:
    """The plan of any of them."""
    match statement:
        case CreateTypeStatement():
            return plan_create_type(statement, query)
        case CreateSecretStatement():
            return plan_create_secret(statement, query)
        case AlterSecretStatement():
            return plan_alter_secret(statement, query)
        case _:
            assert_never(statement)
