"""ALTER ... SET SCHEMA: an item or a secret in another schema of its database."""

from dataclasses import dataclass

from evertide.catalog.kinds.temporary import TEMPORARY_ALIAS, TEMPORARY_SCHEMA
from evertide.catalog.moving_ops import MoveToSchemaOp
from evertide.catalog.objects import Item, Schema, Secret, Subsource, object_key
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.temporary import is_temporary
from evertide.sql.kept_meaning import keeps_meaning
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.named.secret import resolve_secret
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.renames.texts import Parts, Texts, conflict
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs, Privilege
from evertide.sql.plan.skipped import skipped
from evertide.sql.pretty import to_sql
from evertide.sql.renamed_definition import T, renamed_definition
from evertide.sql.renaming import with_relations
from evertide.sql.resolve import name_of, no_connection, position_of, resolve_schema
from evertide.sql.syntax.definition import AlterSetSchemaStatement, ObjectKind
from evertide.vocab.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InsufficientPrivilege,
    UndefinedDatabase,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)

_MISSING = (UndefinedTable, UndefinedSchema, UndefinedDatabase)


def plan_set_schema(
    statement: AlterSetSchemaStatement, query: QueryContext
) -> RolePlan | NoticePlan:
    """What owns it stays, and every definition that names it goes on meaning it."""
    try:
        found = _found(statement, query)
    except _MISSING:
        if not statement.if_exists:
            raise
        return NoticePlan(f"ALTER {statement.kind}", (skipped(statement.kind, statement.name),))
    snapshot = query.plan.snapshot
    schema = _destination(statement, found, query)
    key = object_key(found)
    ops: tuple[MoveToSchemaOp, ...] = ()
    if schema.schema_id != found.schema_id:
        texts: Texts = ()
        if isinstance(found, Item):
            _refuse_taken(statement, found, schema, snapshot)
            texts = _texts(found, schema, snapshot)
        ops = (MoveToSchemaOp(target=key, schema_id=schema.schema_id, items_sql=texts),)
    created = Privilege(("schema", schema.schema_id), "C")
    needs = Needs(owner_of=(key,), privileges=(created,))
    return RolePlan(f"ALTER {statement.kind}", ops, needs)


def _found(statement: AlterSetSchemaStatement, query: QueryContext) -> Item | Secret:
    names = query.plan.names
    match statement.kind:
        case ObjectKind.SECRET:
            return resolve_secret(statement.name, names)
        case ObjectKind.CONNECTION:
            no_connection(statement.name, names)
        case kind:
            use = "ALTER {} to move {}"
            item = item_of_kind(statement.name, ITEM_KINDS[kind], names, use=use)
    if kind is ObjectKind.INDEX:
        raise WrongObjectType(
            f'cannot change schema of index "{item.name}"',
            hint="Change the schema of the table instead.",
            position=position_of(statement.name.at),
        )
    return item


def _destination(
    statement: AlterSetSchemaStatement, found: Item | Secret, query: QueryContext
) -> Schema:
    wanted, snapshot = statement.schema, query.plan.snapshot
    if wanted in (TEMPORARY_ALIAS, TEMPORARY_SCHEMA) or is_temporary(found):
        raise FeatureNotSupported(
            "cannot move objects into or out of temporary schemas",
            position=position_of(statement.at),
        )
    database_id = snapshot.schemas[found.schema_id].database_id
    assert database_id is not None, "what users make is in a database"
    parts = (snapshot.databases[database_id].name, wanted)
    schema = resolve_schema(parts, query.plan.names, at=statement.at)
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
    return schema


def _refuse_taken(
    statement: AlterSetSchemaStatement, item: Item, schema: Schema, snapshot: Snapshot
) -> None:
    """Before texts are looked at, in which both of one name would be called a conflict."""
    there = (snapshot.item_named, snapshot.type_named)
    if any(named(schema.schema_id, item.name) is not None for named in there):
        raise DuplicateTable(
            f"catalog item '{item.name}' already exists", position=position_of(statement.at)
        )


def _texts(item: Item, schema: Schema, snapshot: Snapshot) -> Texts:
    """The definitions of the item and of all that name it, its indexes among them."""
    old = name_of(item, snapshot).parts
    moved = _Moved(old, (old[0], schema.name, old[2]))
    users = [item, *snapshot.dependants(item.item_id)]
    if isinstance(item.definition, Subsource):
        users.append(snapshot.items[item.definition.source_id])
    return tuple((one.item_id, moved.text(one, snapshot)) for one in users)


@dataclass(frozen=True, slots=True)
class _Moved:
    """One item gets another full name; the last part of it stays, and so do aliases."""

    old: Parts
    new: Parts

    def item(self, parts: Parts) -> Parts:
        return self.new if parts == self.old else parts

    def column(self, parts: Parts) -> Parts:
        *qualifier, name = parts
        if len(qualifier) > 1 and tuple(qualifier) == self.old[-len(qualifier) :]:
            return (*self.new[-len(qualifier) :], name)
        return parts

    def __call__(self, node: T, /) -> T:
        return with_relations(node, self.item, self.column)

    def text(self, item: Item, snapshot: Snapshot) -> str:
        statement = parse_statement(item.create_sql)
        moved = renamed_definition(statement, self.item, self)
        if not keeps_meaning(statement, moved):
            raise conflict(item, ".".join(self.old), f"item named {self.old[-1]}", snapshot)
        return to_sql(moved)
