"""Names to ids, against one catalog snapshot.

A name that is not qualified is looked for among the session's temporary objects, which nobody else
sees; then in the system schemas, so that no user can put a relation of his own before one that
tools rely on; and then along the search path.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from evertide.catalog.builtin.registry import find_builtin
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.kinds.temporary import (
    TEMPORARY_ALIAS,
    TEMPORARY_SCHEMA,
    TEMPORARY_SCHEMA_ID,
)
from evertide.catalog.objects import Cluster, Database, Item, ItemKind, Schema
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.temporary import SESSION_SCHEMA
from evertide.sql.syntax.expression import UNPLACED, Name
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidTableDefinition,
    SqlSyntaxError,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from evertide.vocab.ids import GlobalId, ItemId
from evertide.vocab.relation_desc import RelationDesc

# Looked at before the search path, unless that names them itself.
IMPLICIT_SCHEMAS = ("mz_catalog", "pg_catalog")


@dataclass(frozen=True, slots=True)
class Recall:
    """How a stored text is meant, whatever has become since of what it names."""

    # Versions that it was planned against; of what is not among them, the first is meant.
    versions: Collection[GlobalId] = ()
    # Names that may mean something else by now, or nothing.
    items: Mapping[tuple[str, ...], ItemId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NameContext:
    """What decides which object a name means."""

    snapshot: Snapshot
    database: str
    search_path: tuple[str, ...]
    recall: Recall | None = None  # None: the text is new, and means what is newest


@dataclass(frozen=True, slots=True)
class RelationName:
    """The full name of a relation; system relations are in no database."""

    database: str | None
    schema: str
    name: str

    @property
    def parts(self) -> tuple[str, ...]:
        qualifier = () if self.database is None else (self.database,)
        return (*qualifier, self.schema, self.name)


@dataclass(frozen=True, slots=True)
class Readable:
    """A relation that a query may read."""

    item_id: ItemId
    global_id: GlobalId
    name: RelationName
    desc: RelationDesc
    item: Item | None  # None: a system relation


def position_of(at: int) -> int | None:
    """Where an error points, given the offset of a node; nowhere for nodes made by code."""
    return None if at == UNPLACED else at + 1


def resolve_readable(name: Name, names: NameContext) -> Readable:
    """The relation a FROM clause means by this name."""
    found = find_object(name, names)
    if found is None:
        raise missing(name, names)
    if isinstance(found, Builtin):
        return _system_relation(found)
    if found.kind in (ItemKind.INDEX, ItemKind.SINK):
        article = "an" if found.kind is ItemKind.INDEX else "a"
        raise WrongObjectType(
            f"catalog item '{found.name}' is {article} {found.kind.sql_words} and so cannot be"
            " depended upon",
            position=position_of(name.at),
        )
    if found.kind is ItemKind.SOURCE and found.shard_id is None:
        tables = [one.name for one in names.snapshot.dependants(found.item_id)]
        raise WrongObjectType(
            f"source '{found.name}' holds no rows itself",
            hint=f"Its tables are {', '.join(tables)}.",
            position=position_of(name.at),
        )
    return _user_relation(found, name, names)


def _system_relation(builtin: Builtin) -> Readable:
    name = RelationName(None, builtin.schema, builtin.name)
    return Readable(builtin.item_id, builtin.global_id, name, builtin.desc, None)


def _user_relation(item: Item, name: Name, names: NameContext) -> Readable:
    """An item as a relation to read, by the columns of the version that is meant.

    A text that is older than the item's name has it under the name of then: columns are qualified
    by that.
    """
    recall = names.recall
    version = item.versions[-1] if recall is None else item.version_among(recall.versions)
    full = name_of(item, names.snapshot)
    if recall is not None and name.parts in recall.items:
        database, schema, last = name.parts
        full = RelationName(database, schema, last)
    return Readable(item.item_id, version.global_id, full, version.desc, item)


def name_of(item: Item, snapshot: Snapshot) -> RelationName:
    """The full name of an item."""
    schema = snapshot.schemas[item.schema_id]
    database = None if schema.database_id is None else snapshot.databases[schema.database_id].name
    return RelationName(database, schema.name, item.name)


def resolve_item(name: Name, names: NameContext) -> Item:
    """The user's item of any kind with this name; system relations are refused."""
    found = find_object(name, names) or find_type(name.parts, names)
    if found is None:
        raise missing(name, names)
    if isinstance(found, Builtin):
        raise FeatureNotSupported(
            f"system item '{found.schema}.{found.name}' cannot be modified",
            position=position_of(name.at),
        )
    return found


def find_object(name: Name, names: NameContext) -> Item | Builtin | None:
    """What the name means, or None. A schema or database that is missing is an error."""
    if names.recall is not None and name.parts in names.recall.items:
        return names.snapshot.items.get(names.recall.items[name.parts])
    item = name.parts[-1]
    found = (_in_schema(schema, item, names.snapshot) for schema in schemas_of(name, names))
    return next((thing for thing in found if thing is not None), None)


def schemas_of(name: Name, names: NameContext) -> Iterator[Schema]:
    """Where to look for what has this name: one schema, or those of the search path."""
    *qualifier, _ = name.parts
    if len(qualifier) > 2:
        raise too_many_parts(name)
    if not qualifier:
        return _search_path(names)
    return iter([resolve_schema(tuple(qualifier), names, at=name.at)])


def no_connection(name: Name, names: NameContext) -> NoReturn:
    """There are no connections, so whatever is said about one is about nothing."""
    raise missing(name, names)


def find_type(parts: tuple[str, ...], names: NameContext) -> Item | None:
    """The user's type that a name means, or None; also where its schema is missing."""
    if names.recall is not None and parts in names.recall.items:
        return names.snapshot.items.get(names.recall.items[parts])
    if len(parts) > 3:
        return None
    try:
        schemas = schemas_of(Name(parts), names)
    except (UndefinedSchema, UndefinedDatabase):
        return None
    found = (names.snapshot.type_named(schema.schema_id, parts[-1]) for schema in schemas)
    return next((item for item in found if item is not None), None)


def _in_schema(schema: Schema, name: str, snapshot: Snapshot) -> Item | Builtin | None:
    if schema.database_id is None and schema.schema_id != TEMPORARY_SCHEMA_ID:
        return find_builtin(schema.name, name)
    return snapshot.item_named(schema.schema_id, name)


def _search_path(names: NameContext) -> Iterator[Schema]:
    """The schemas to look in; those that do not exist are passed over, as in PostgreSQL."""
    if TEMPORARY_SCHEMA not in names.search_path and TEMPORARY_ALIAS not in names.search_path:
        yield from _schemas_named(TEMPORARY_SCHEMA, names)
    for schema in IMPLICIT_SCHEMAS:
        if schema not in names.search_path:
            yield from _schemas_named(schema, names)
    for schema in names.search_path:
        yield from _schemas_named(schema, names)


def _schemas_named(name: str, names: NameContext) -> Iterator[Schema]:
    snapshot = names.snapshot
    if name in (TEMPORARY_SCHEMA, TEMPORARY_ALIAS):
        if TEMPORARY_SCHEMA_ID in snapshot.schemas:
            yield SESSION_SCHEMA
        return
    database = snapshot.database_named(names.database)
    own = None if database is None else snapshot.schema_named(database.database_id, name)
    found = own or snapshot.schema_named(None, name)
    if found is not None:
        yield found


def resolve_schema(parts: tuple[str, ...], names: NameContext, *, at: int = UNPLACED) -> Schema:
    """The schema `[database.]schema`; system schemas are seen from every database."""
    snapshot = names.snapshot
    match parts:
        case (schema,):
            database_name = names.database
        case (database_name, schema):
            pass
        case _:
            raise too_many_parts(Name(parts, at=at), most=2)
    if schema == TEMPORARY_ALIAS:
        schema = TEMPORARY_SCHEMA
    system = snapshot.schema_named(None, schema)
    if len(parts) == 1 and system is not None:
        return system
    database = resolve_database(database_name, snapshot, at=at)
    found = snapshot.schema_named(database.database_id, schema) or system
    if found is None:
        raise UndefinedSchema(f"unknown schema '{'.'.join(parts)}'", position=position_of(at))
    return found


def resolve_database(name: str, snapshot: Snapshot, *, at: int = UNPLACED) -> Database:
    """The database of this name."""
    found = snapshot.database_named(name)
    if found is None:
        raise UndefinedDatabase(f"unknown database '{name}'", position=position_of(at))
    return found


def resolve_cluster(name: str, snapshot: Snapshot, *, at: int = UNPLACED) -> Cluster:
    """The cluster of this name."""
    found = snapshot.cluster_named(name)
    if found is None:
        raise UndefinedObject(f"unknown cluster '{name}'", position=position_of(at))
    return found


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a new item goes: its schema, and its full name. Temporary items are in no database."""

    database: Database | None
    schema: Schema
    name: str

    @property
    def temporary(self) -> bool:
        return self.schema.schema_id == TEMPORARY_SCHEMA_ID

    @property
    def parts(self) -> tuple[str, ...]:
        database = () if self.database is None else (self.database.name,)
        return (*database, self.schema.name, self.name)


def resolve_destination(name: Name, names: NameContext, *, temporary: bool = False) -> Destination:
    """Where an item to be created goes: the schema named, or the first of the search path.

    The temporary schema need not be there yet.
    """
    *qualifier, item = name.parts
    if (temporary and not qualifier) or qualifier in ([TEMPORARY_SCHEMA], [TEMPORARY_ALIAS]):
        return Destination(None, SESSION_SCHEMA, item)
    if temporary:
        raise InvalidTableDefinition(
            "cannot create temporary item in non-temporary schema", position=position_of(name.at)
        )
    if qualifier:
        schema = resolve_schema(tuple(qualifier), names, at=name.at)
    else:
        schema = current_schema(names, at=name.at)
    if schema.schema_id == TEMPORARY_SCHEMA_ID:
        return Destination(None, schema, item)
    if schema.database_id is None:
        raise FeatureNotSupported(
            f"cannot create an item in system schema '{schema.name}'",
            position=position_of(name.at),
        )
    return Destination(names.snapshot.databases[schema.database_id], schema, item)


def current_schema(names: NameContext, *, at: int = UNPLACED) -> Schema:
    """The first schema of the search path that exists."""
    resolve_database(names.database, names.snapshot, at=at)
    for schema in names.search_path:
        for found in _schemas_named(schema, names):
            return found
    raise UndefinedSchema(
        "no valid schema selected",
        hint="Name the schema, or set search_path to one that exists.",
        position=position_of(at),
    )


def too_many_parts(name: Name, most: int = 3) -> SqlSyntaxError:
    """The error for a.b.c.d where at most three names make sense."""
    return SqlSyntaxError(
        f"qualified name did not have between 1 and {most} components: {'.'.join(name.parts)}",
        position=position_of(name.at),
    )


def missing(name: Name, names: NameContext) -> UndefinedTable:
    """Says the peer's words; the hint is for a schema that is not on the search path."""
    item = name.parts[-1]
    elsewhere = sorted(
        ".".join(name_of(found, names.snapshot).parts)
        for found in names.snapshot.items.values()
        if found.name == item
    )
    hint = f"Perhaps you meant {elsewhere[0]}." if elsewhere else None
    return UndefinedTable(
        f"unknown catalog item '{'.'.join(name.parts)}'", hint=hint, position=position_of(name.at)
    )
