"""Plans of types and secrets to catalog ops."""

from typing import assert_never

from evertide.catalog.objects import NamedType, stored_columns, stored_type
from evertide.catalog.ops import CreateItemOp, CreateSecretOp, Op, SetSecretOp
from evertide.sql.plan.named.plans import (
    AlterSecretPlan,
    CreateSecretPlan,
    CreateTypePlan,
    NamedPlan,
)
from evertide.vocab.ids import RoleId


def named_op(plan: NamedPlan, owner: RoleId) -> Op:
    """The one change that such a plan asks for."""
    match plan:
        case CreateTypePlan():
            return CreateItemOp(
                schema_id=plan.schema_id,
                name=plan.name,
                owner=owner,
                create_sql=plan.create_sql,
                columns=stored_columns(plan.fields),
                depends_on=plan.depends_on,
                definition=NamedType(type=stored_type(plan.type), parts=plan.parts),
            )
        case CreateSecretPlan():
            return CreateSecretOp(
                schema_id=plan.schema_id, name=plan.name, owner=owner, stored_at=plan.stored_at
            )
        case AlterSecretPlan():
            return SetSecretOp(secret_id=plan.secret_id, stored_at=plan.stored_at)
        case _:
            assert_never(plan)
