"""ALTER SCHEMA ... SWAP WITH: all that is in two schemas changes places, by their names."""

from collections.abc import Iterator
from dataclasses import replace

from evertide.catalog.objects import Item, Schema, object_key
from evertide.catalog.ops import RenameObjectOp
from evertide.catalog.snapshot import Snapshot
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs
from evertide.sql.pretty import to_sql
from evertide.sql.renaming import Renaming, with_relations
from evertide.sql.resolve import resolve_schema
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
    SwapStatement,
)
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
)
from evertide.sql.syntax.statement import Statement
from evertide.vocab.errors import InsufficientPrivilege
from evertide.vocab.ids import ItemId, SchemaId


def plan_swap_schemas(statement: SwapStatement, query: QueryContext) -> RolePlan:
    """Both schemas under each other's name, and every definition that names one of them."""
    *database, _ = statement.name.parts
    first = _own(resolve_schema(statement.name.parts, query.plan.names, at=statement.name.at))
    second = _own(resolve_schema((*database, statement.other), query.plan.names, at=statement.at))
    snapshot = query.plan.snapshot
    keys = (object_key(first), object_key(second))
    ops: tuple[RenameObjectOp, ...] = ()
    if first != second:
        texts = tuple(_texts(first, second, snapshot))
        ops = (
            RenameObjectOp(target=keys[0], new_name=_spare(first, snapshot)),
            RenameObjectOp(target=keys[1], new_name=first.name),
            RenameObjectOp(target=keys[0], new_name=second.name, items_sql=texts),
        )
    return RolePlan("ALTER SCHEMA", ops, Needs(owner_of=tuple(dict.fromkeys(keys))))


def _own(schema: Schema) -> Schema:
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
    return schema


def _spare(schema: Schema, snapshot: Snapshot) -> str:
    """A name that is free for a moment: two objects never have one name, not even in between."""
    number = 1
    while snapshot.schema_named(schema.database_id, f"{schema.name}_swap_{number}") is not None:
        number += 1
    return f"{schema.name}_swap_{number}"


def _texts(first: Schema, second: Schema, snapshot: Snapshot) -> Iterator[tuple[ItemId, str]]:
    assert first.database_id is not None, "system schemas are refused"
    swapped = {first.name: second.name, second.name: first.name}
    database = snapshot.databases[first.database_id].name

    def relation(parts: tuple[str, ...]) -> tuple[str, ...]:
        match parts:
            case (where, schema, name) if where == database:
                return (where, swapped.get(schema, schema), name)
            case _:
                return parts

    def column(parts: tuple[str, ...]) -> tuple[str, ...]:
        match parts:
            case (schema, table, name):
                return (swapped.get(schema, schema), table, name)
            case (where, schema, table, name) if where == database:
                return (where, swapped.get(schema, schema), table, name)
            case _:
                return parts

    moved = {first.schema_id, second.schema_id}
    for item in snapshot.items.values():
        if item.schema_id in moved or _reads_from(item, moved, snapshot):
            parsed = parse_statement(item.create_sql)
            yield item.item_id, to_sql(_renamed(parsed, relation, column))


def _reads_from(item: Item, schemas: set[SchemaId], snapshot: Snapshot) -> bool:
    below = (snapshot.items.get(item_id) for item_id in item.depends_on)
    return any(found is not None and found.schema_id in schemas for found in below)


def _renamed(statement: Statement, relation: Renaming, column: Renaming) -> Statement:
    """A definition with all relations that it names under their new names."""

    def named(name: Name) -> Name:
        return Name(relation(name.parts))

    match statement:
        case CreateTableStatement():
            return replace(statement, name=named(statement.name))
        case CreateViewStatement():
            body = with_relations(statement.query, relation, column)
            return replace(statement, name=named(statement.name), query=body)
        case CreateMaterializedViewStatement():
            body = with_relations(statement.query, relation, column)
            target = None if statement.replacing is None else named(statement.replacing)
            return replace(statement, name=named(statement.name), query=body, replacing=target)
        case CreateIndexStatement():
            return replace(statement, on=named(statement.on))
        case CreateSourceStatement():
            tables = tuple(
                one if one.name is None else replace(one, name=named(one.name))
                for one in statement.tables or ()
            )
            kept = statement.tables if statement.tables is None else tables
            return replace(statement, name=named(statement.name), tables=kept)
        case CreateSubsourceStatement():
            return replace(statement, name=named(statement.name), source=named(statement.source))
        case CreateSinkStatement():
            return replace(statement, name=named(statement.name), from_=named(statement.from_))
        case _:
            raise AssertionError("an item's definition creates it")
