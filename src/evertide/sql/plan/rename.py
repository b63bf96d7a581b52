"""ALTER ... RENAME TO of items."""

from dataclasses import replace

from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.plans import NoticePlan, RenameItemPlan
from evertide.sql.pretty import to_sql
from evertide.sql.resolve import position_of
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
    RenameStatement,
)
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import DuplicateTable, FeatureNotSupported, Notice, UndefinedTable


def plan_rename(statement: RenameStatement, query: QueryContext) -> RenameItemPlan | NoticePlan:
    """The item under its new name. Definitions of others that name it would have to change too."""
    tag = f"ALTER {statement.kind}"
    if statement.kind not in ITEM_KINDS:
        raise FeatureNotSupported(
            f"{tag} ... RENAME TO is not supported", position=position_of(statement.at)
        )
    try:
        item = item_of_kind(statement.name, ITEM_KINDS[statement.kind], query.plan.names)
    except UndefinedTable as error:
        if not statement.if_exists:
            raise
        return NoticePlan(tag, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    snapshot = query.plan.snapshot
    if snapshot.dependants(item.item_id):
        raise FeatureNotSupported(
            f'renaming {item.kind.sql_words} "{item.name}" is not supported while other objects'
            " depend on it",
            position=position_of(statement.name.at),
        )
    if snapshot.item_named(item.schema_id, statement.new_name) is not None:
        raise DuplicateTable(
            f"catalog item '{statement.new_name}' already exists",
            position=position_of(statement.at),
        )
    create_sql = _renamed(item.create_sql, statement.new_name)
    return RenameItemPlan(item.item_id, statement.new_name, create_sql, tag)


def _renamed(create_sql: str, name: str) -> str:
    definition = parse_statement(create_sql)
    match definition:
        case CreateIndexStatement():
            return to_sql(replace(definition, name=name))
        case CreateTableStatement() | CreateViewStatement() | CreateMaterializedViewStatement():
            return to_sql(replace(definition, name=Name((*definition.name.parts[:-1], name))))
        case _:
            raise AssertionError("an item's definition creates it")
