"""What a system relation is: a name, ids, a shape, and a rule that gives its rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import GlobalId, ItemId, SchemaId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import Kind, SqlType, array_of

# The role that system relations belong to.
OWNER_OF_BUILTINS: Final = "s1"


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """Who looks at what. pg_catalog and information_schema show one database's objects."""

    snapshot: Snapshot
    database: str
    builtins: "tuple[Builtin, ...]"

    def visible_schemas(self) -> set[SchemaId]:
        """Those of the session's database, and the system's."""
        database = self.snapshot.database_named(self.database)
        shown = {None} if database is None else {None, database.database_id}
        schemas = self.snapshot.schemas.values()
        return {schema.schema_id for schema in schemas if schema.database_id in shown}

    def visible_items(self) -> list[Item]:
        """The items of the session's database, in the order of their oids."""
        schema_ids = self.visible_schemas()
        items = (i for i in self.snapshot.items.values() if i.schema_id in schema_ids)
        return sorted(items, key=lambda item: item.oid)


Projection: TypeAlias = Callable[[Viewpoint], Iterable[Row]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Builtin:
    """One system relation; there is one value of each, compared by identity.

    Its id is `s` and its oid: fixed numbers, because stored views depend on them.
    """

    oid: int
    schema: str
    name: str
    desc: RelationDesc
    # None: dynamic. The rows are not in the catalog; whoever runs the query supplies them.
    rows: Projection | None
    is_view: bool = False  # as clients see it: relkind v, not r

    @property
    def item_id(self) -> ItemId:
        return ItemId(f"s{self.oid}")

    @property
    def global_id(self) -> GlobalId:
        return GlobalId(f"s{self.oid}")

    @property
    def dynamic(self) -> bool:
        return self.rows is None


def no_rows(_viewpoint: Viewpoint) -> Iterable[Row]:
    """Relations of things that this system does not have: empty rather than missing."""
    return ()


def shape(columns: str) -> RelationDesc:
    """Columns as `name type`, separated by commas; `!` means not null.

    >>> shape("id text!, names text[]").columns[0].nullable
    False
    """
    return RelationDesc(tuple(_column(text.split()) for text in columns.split(",")))


def _column(words: list[str]) -> ColumnDesc:
    name, type_name = words
    return ColumnDesc(name, parse_type(type_name.rstrip("!")), nullable=not type_name.endswith("!"))


def parse_type(name: str) -> SqlType:
    """A type by its pg_type name, `[]` for an array and `-list` for a list of it."""
    if name.endswith("[]"):
        return array_of(parse_type(name.removesuffix("[]")))
    if name.endswith("-list"):
        return SqlType(Kind.LIST, element=parse_type(name.removesuffix("-list")))
    return SqlType(Kind(name))


class Template:
    """Makes rows of a wide relation from the few values that matter.

    The others are NULL, or their type's zero where the column is not null.
    """

    def __init__(self, desc: RelationDesc) -> None:
        self._blank = tuple(_absent(column) for column in desc.columns)
        self._positions = {name: position for position, name in enumerate(desc.names)}

    def row(self, **values: Datum) -> Row:
        row = list(self._blank)
        for name, value in values.items():
            row[self._positions[name]] = value
        return tuple(row)


def _absent(column: ColumnDesc) -> Datum:
    if column.nullable:
        return None
    match column.type.kind:
        case Kind.BOOL:
            return False
        case Kind.TEXT | Kind.NAME | Kind.CHAR | Kind.VARCHAR:
            return ""
        case Kind.ARRAY | Kind.LIST:
            return ()
        case Kind.BYTEA:
            return b""
        case Kind.FLOAT4 | Kind.FLOAT8:
            return 0.0
        case _:
            return 0
