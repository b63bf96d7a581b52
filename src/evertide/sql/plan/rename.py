"""ALTER ... RENAME TO."""

from evertide.catalog.objects import Item, Secret, object_key
from evertide.catalog.ops import RenameObjectOp
from evertide.sql.plan.clusters.plans import ChangePlan
from evertide.sql.plan.clusters.rename import RENAMED, plan_rename_in_cluster
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.named.secret import resolve_secret
from evertide.sql.plan.plans import NoticePlan, RenameItemPlan
from evertide.sql.plan.renames.schema import plan_rename_database, plan_rename_schema
from evertide.sql.plan.renames.texts import own_text, texts_naming
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs
from evertide.sql.plan.skipped import skipped
from evertide.sql.resolve import no_connection, position_of
from evertide.sql.syntax.definition import ObjectKind, RenameStatement
from evertide.vocab.errors import (
    DuplicateTable,
    FeatureNotSupported,
    UndefinedDatabase,
    UndefinedSchema,
    UndefinedTable,
)
from evertide.vocab.ids import SchemaId

_MISSING = (UndefinedTable, UndefinedSchema, UndefinedDatabase)


def plan_rename(
    statement: RenameStatement, query: QueryContext
) -> RenameItemPlan | RolePlan | ChangePlan | NoticePlan:
    """The object under its new name. Texts that name it go on meaning it."""
    if statement.kind in RENAMED:
        return plan_rename_in_cluster(statement, query)
    try:
        return _plan(statement, query)
    except _MISSING:
        if not statement.if_exists:
            raise
        return NoticePlan(f"ALTER {statement.kind}", (skipped(statement.kind, statement.name),))


def _plan(statement: RenameStatement, query: QueryContext) -> RenameItemPlan | RolePlan:
    names = query.plan.names
    match statement.kind:
        case ObjectKind.SCHEMA:
            return plan_rename_schema(statement, query)
        case ObjectKind.DATABASE:
            return plan_rename_database(statement, query)
        case ObjectKind.SECRET:
            return _secret(statement, resolve_secret(statement.name, names), query)
        case ObjectKind.CONNECTION:
            no_connection(statement.name, names)
        case kind if kind in ITEM_KINDS:
            use = "ALTER {} to rename {}"
            item = item_of_kind(statement.name, ITEM_KINDS[kind], names, use=use)
            return _item(statement, item, query)
        case kind:
            raise FeatureNotSupported(
                f"ALTER {kind} ... RENAME TO is not supported", position=position_of(statement.at)
            )


def _item(statement: RenameStatement, item: Item, query: QueryContext) -> RenameItemPlan:
    snapshot, name = query.plan.snapshot, statement.new_name
    _refuse_taken(statement, item.schema_id, query, with_types=True)
    return RenameItemPlan(
        item.item_id,
        name,
        own_text(item, name, snapshot),
        f"ALTER {statement.kind}",
        texts_naming(item, name, snapshot),
    )


def _secret(statement: RenameStatement, secret: Secret, query: QueryContext) -> RolePlan:
    _refuse_taken(statement, secret.schema_id, query, with_types=False)
    key = object_key(secret)
    op = RenameObjectOp(target=key, new_name=statement.new_name)
    return RolePlan("ALTER SECRET", (op,), Needs(owner_of=(key,)))


def _refuse_taken(
    statement: RenameStatement, schema_id: SchemaId, query: QueryContext, *, with_types: bool
) -> None:
    snapshot, name = query.plan.snapshot, statement.new_name
    taken = snapshot.item_named(schema_id, name) is not None or (
        with_types and snapshot.type_named(schema_id, name) is not None
    )
    if taken:
        raise DuplicateTable(
            f"catalog item '{name}' already exists", position=position_of(statement.at)
        )
