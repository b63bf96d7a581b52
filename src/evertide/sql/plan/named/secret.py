"""CREATE SECRET and ALTER SECRET ... AS: a value that is kept, and shown to nobody."""

from typing import Final

from evertide.catalog.objects import Secret
from evertide.expr.functions.cast import CastContext
from evertide.expr.scalar import Literal
from evertide.expr.transform.fold_scalar import fold_heavy_scalar
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.free_name import free_destination
from evertide.sql.plan.named.plans import AlterSecretPlan, CreateSecretPlan
from evertide.sql.plan.place import start_of
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.scope import Scope
from evertide.sql.resolve import NameContext, missing, position_of, schemas_of
from evertide.sql.syntax.expression import Expression, Name
from evertide.sql.syntax.named import AlterSecretStatement, CreateSecretStatement
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    Notice,
    UndefinedTable,
)
from evertide.vocab.sql_type import BYTEA

MOST_BYTES: Final = 512 * 1024


def plan_create_secret(statement: CreateSecretStatement, query: QueryContext) -> CreateSecretPlan:
    """The value is worked out now: no later session might."""
    destination = free_destination(statement.name, query, statement.if_not_exists, is_secret=True)
    return CreateSecretPlan(
        schema_id=destination.schema.schema_id,
        name=destination.name,
        value=_value(statement.value, query),
        if_not_exists=statement.if_not_exists,
    )


def plan_alter_secret(
    statement: AlterSecretStatement, query: QueryContext
) -> AlterSecretPlan | NoticePlan:
    try:
        secret = resolve_secret(statement.name, query.plan.names)
    except UndefinedTable as error:
        if not statement.if_exists:
            raise
        note = Notice("NOTICE", "00000", f"{error.message}, skipping")
        return NoticePlan("ALTER SECRET", (note,))
    return AlterSecretPlan(
        secret_id=secret.secret_id,
        value=_value(statement.value, query),
    )


def resolve_secret(name: Name, names: NameContext) -> Secret:
    """The secret of this name."""
    *_, last = name.parts
    for schema in schemas_of(name, names):
        found = names.snapshot.secret_named(schema.schema_id, last)
        if found is not None:
            return found
    raise missing(name, names)


def _value(node: Expression, query: QueryContext) -> bytes:
    """Messages tell nothing of the value."""
    deferred = Deferred()
    context = plain_context(Scope(), query, Clause.DEFAULT, deferred)
    at = start_of(node)
    bound = coerce(context.bind(node), BYTEA, CastContext.EXPLICIT, query, at=at)
    folded = fold_heavy_scalar(bound)  # secrets may be long, within their limit
    if deferred.values or not isinstance(folded, Literal):
        raise FeatureNotSupported(
            "the value of a secret must be a constant", position=position_of(at)
        )
    if not isinstance(folded.value, bytes):
        raise InvalidParameterValue("secret value can not be null", position=position_of(at))
    if len(folded.value) > MOST_BYTES:
        raise InvalidParameterValue(
            "secrets can not be bigger than 512KiB", position=position_of(at)
        )
    return folded.value
