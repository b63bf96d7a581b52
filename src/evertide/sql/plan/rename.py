"""ALTER ... RENAME TO of items."""

from dataclasses import replace

from evertide.catalog.objects import Index, Item, Subsource
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.clusters.plans import ChangePlan
from evertide.sql.plan.clusters.rename import RENAMED, plan_rename_in_cluster
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
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
)
from evertide.vocab.errors import DuplicateTable, FeatureNotSupported, Notice, UndefinedTable


def plan_rename(
    statement: RenameStatement, query: QueryContext
) -> RenameItemPlan | ChangePlan | NoticePlan:
    """The item under its new name. Definitions of others that name it would have to change too."""
    if statement.kind in RENAMED:
        return plan_rename_in_cluster(statement, query)
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
    parts = snapshot.dependants(item.item_id)
    if not all(_is_part(part, item) for part in parts):
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
    others = tuple((part.item_id, _of_renamed(part, statement.new_name)) for part in parts)
    if isinstance(item.definition, Subsource):
        source = snapshot.items[item.definition.source_id]
        text = _with_renamed_table(source, item.definition.table, statement.new_name)
        others = (*others, (source.item_id, text))
    return RenameItemPlan(item.item_id, statement.new_name, create_sql, tag, others)


def _is_part(part: Item, item: Item) -> bool:
    """Whether its definition names the item once, as what it belongs to."""
    replacement = part.replacement
    staged = replacement is not None and replacement.target == item.item_id
    return staged or isinstance(part.definition, Index | Subsource)


def _of_renamed(part: Item, name: str) -> str:
    """An index, a subsource or a replacement after what it belongs to was renamed."""
    definition = parse_statement(part.create_sql)
    match definition:
        case CreateMaterializedViewStatement(replacing=Name() as target):
            return to_sql(replace(definition, replacing=_last(target, name)))
        case CreateIndexStatement():
            return to_sql(replace(definition, on=_last(definition.on, name)))
        case CreateSubsourceStatement():
            return to_sql(replace(definition, source=_last(definition.source, name)))
        case _:
            raise AssertionError("parts are indexes, subsources and replacements")


def _with_renamed_table(source: Item, table: str, name: str) -> str:
    definition = parse_statement(source.create_sql)
    assert isinstance(definition, CreateSourceStatement), "a source's definition creates it"
    tables = tuple(
        replace(one, name=_last(one.name, name)) if one.table == table and one.name else one
        for one in definition.tables or ()
    )
    return to_sql(replace(definition, tables=tables))


def _last(full: Name, name: str) -> Name:
    return Name((*full.parts[:-1], name))


def _renamed(create_sql: str, name: str) -> str:
    definition = parse_statement(create_sql)
    match definition:
        case CreateIndexStatement():
            return to_sql(replace(definition, name=name))
        case (
            CreateTableStatement()
            | CreateViewStatement()
            | CreateMaterializedViewStatement()
            | CreateSourceStatement()
            | CreateSubsourceStatement()
            | CreateSinkStatement()
        ):
            return to_sql(replace(definition, name=_last(definition.name, name)))
        case _:
            raise AssertionError("an item's definition creates it")
