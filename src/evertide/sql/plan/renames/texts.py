"""The stored texts that name something which gets another name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from evertide.catalog.naming import full_name
from evertide.catalog.objects import Item, Subsource
from evertide.catalog.snapshot import Snapshot
from evertide.sql.kept_meaning import keeps_meaning
from evertide.sql.parser.entry import parse_statement
from evertide.sql.pretty import to_sql
from evertide.sql.rebuild import parts_of
from evertide.sql.renamed_definition import T, renamed_definition
from evertide.sql.renamed_item import AmbiguousName, with_renamed_item
from evertide.sql.renaming import with_relations
from evertide.sql.resolve import name_of
from evertide.sql.syntax.definition import CreateIndexStatement
from evertide.sql.syntax.query import TableRef
from evertide.sql.syntax.statement import Statement
from evertide.vocab.errors import DependentObjectsStillExist
from evertide.vocab.ids import ItemId, SchemaId

Parts = tuple[str, ...]
Texts = tuple[tuple[ItemId, str], ...]


def own_text(item: Item, name: str, snapshot: Snapshot) -> str:
    """An item's own definition under another name."""
    renaming = _OfItem(name_of(item, snapshot).parts, name)
    statement = renamed_definition(parse_statement(item.create_sql), renaming.item, renaming)
    if isinstance(statement, CreateIndexStatement):
        statement = replace(statement, name=name)
    return to_sql(statement)


def texts_naming(item: Item, name: str, snapshot: Snapshot) -> Texts:
    """The definitions of all that name an item, once it has another name."""
    old = name_of(item, snapshot).parts
    renaming = _OfItem(old, name)
    users = snapshot.dependants(item.item_id)
    if isinstance(item.definition, Subsource):
        users.append(snapshot.items[item.definition.source_id])
    found: list[tuple[ItemId, str]] = []
    for one in users:
        statement = parse_statement(one.create_sql)
        try:
            renamed = renamed_definition(statement, renaming.item, renaming)
        except AmbiguousName:
            raise conflict(one, ".".join(old), f"item named {item.name}", snapshot) from None
        if not keeps_meaning(statement, renamed):
            raise conflict(one, ".".join(old), f"item named {item.name}", snapshot)
        found.append((one.item_id, to_sql(renamed)))
    return tuple(found)


def conflict(user: Item, used: str, what: str, snapshot: Snapshot) -> DependentObjectsStillExist:
    """What is renamed would leave a text that means something else, or nothing."""
    return DependentObjectsStillExist(
        f"renaming conflict: in {full_name(user, snapshot)}, which uses {used}, ambiguous"
        f" reference to {what}"
    )


@dataclass(frozen=True, slots=True)
class _OfItem:
    """One item gets another name."""

    old: Parts
    name: str

    def item(self, parts: Parts) -> Parts:
        return (*parts[:-1], self.name) if parts == self.old else parts

    def __call__(self, node: T, /) -> T:
        return with_renamed_item(node, self.old, self.name)


@dataclass(frozen=True, slots=True)
class OfSchemas:
    """Schemas of one database get other names; or the database does, if it has a new name."""

    database: str
    schemas: Mapping[str, str]
    new_database: str | None = None

    def item(self, parts: Parts) -> Parts:
        match parts:
            case (where, schema, name) if where == self.database:
                return (self._database, self.schemas.get(schema, schema), name)
            case _:
                return parts

    def column(self, parts: Parts) -> Parts:
        match parts:
            case (schema, table, name):
                return (self.schemas.get(schema, schema), table, name)
            case (where, schema, table, name) if where == self.database:
                return (self._database, self.schemas.get(schema, schema), table, name)
            case _:
                return parts

    @property
    def _database(self) -> str:
        return self.database if self.new_database is None else self.new_database

    def __call__(self, node: T, /) -> T:
        return with_relations(node, self.item, self.column)

    def texts(self, moved: Collection[SchemaId], snapshot: Snapshot) -> Texts:
        """The definitions of all that is in these schemas, or reads from there."""
        found: list[tuple[ItemId, str]] = []
        for item in snapshot.items.values():
            if item.schema_id in moved or _reads_from(item, moved, snapshot):
                statement = parse_statement(item.create_sql)
                renamed = renamed_definition(statement, self.item, self)
                if not keeps_meaning(statement, renamed):
                    raise self._conflict(item, statement, snapshot)
                found.append((item.item_id, to_sql(renamed)))
        return tuple(found)

    def _conflict(
        self, item: Item, statement: Statement, snapshot: Snapshot
    ) -> DependentObjectsStillExist:
        refs = (part.name.parts for part in parts_of(statement) if isinstance(part, TableRef))
        named = {parts[1] for parts in refs if len(parts) == 3 and parts[0] == self.database}
        schema = next((one for one in self.schemas if one in named), None)
        if schema is None:
            return conflict(item, self.database, f"database named {self.database}", snapshot)
        return conflict(item, f"{self.database}.{schema}", f"schema named {schema}", snapshot)


def _reads_from(item: Item, schemas: Collection[SchemaId], snapshot: Snapshot) -> bool:
    below = (snapshot.items.get(item_id) for item_id in item.depends_on)
    return any(found is not None and found.schema_id in schemas for found in below)
