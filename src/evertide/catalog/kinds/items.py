"""Databases, schemas, and the items that live in them."""

from collections.abc import Container, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import count
from typing import ClassVar, TypeAlias

import msgspec

from evertide.catalog.kinds.external import Sink, Source, Subsource
from evertide.catalog.kinds.kind import ObjectKind
from evertide.catalog.kinds.privileges import Acl
from evertide.catalog.kinds.refresh import StoredRefresh
from evertide.catalog.kinds.replacements import PastVersion, Replacement
from evertide.catalog.kinds.temporary import TEMPORARY_SCHEMA_ID
from evertide.catalog.kinds.types import NamedType, StoredType, stored_type
from evertide.vocab.ids import ClusterId, DatabaseId, GlobalId, ItemId, RoleId, SchemaId, ShardId
from evertide.vocab.refresh import RefreshSchedule
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.timestamp import Timestamp


class Database(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A set of schemas; a session looks at one at a time."""

    KIND: ClassVar[ObjectKind] = ObjectKind.DATABASE
    KEY: ClassVar[tuple[str, ...]] = ("database_id",)

    database_id: DatabaseId
    oid: int
    name: str
    owner: RoleId
    privileges: Acl = ()


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A namespace of items."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SCHEMA
    KEY: ClassVar[tuple[str, ...]] = ("schema_id",)

    schema_id: SchemaId
    oid: int
    database_id: DatabaseId | None  # None: a system schema, seen from every database
    name: str
    owner: RoleId
    privileges: Acl = ()


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One column of one version of an item."""

    name: str
    type: StoredType
    nullable: bool = True
    default: str | None = None  # SQL text of a table column's DEFAULT; None: NULL


class ItemVersion(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One schema of an item under the GlobalId that names its collection.

    The columns of an index are those of its key, those of a record type its fields.
    """

    global_id: GlobalId
    columns: tuple[Column, ...]

    @cached_property
    def desc(self) -> RelationDesc:
        return RelationDesc(
            tuple(ColumnDesc(c.name, c.type.to_sql_type(), c.nullable) for c in self.columns)
        )


def stored_columns(
    desc: RelationDesc, defaults: Sequence[str | None] | None = None
) -> tuple[Column, ...]:
    """The stored form of a relation's columns; `defaults` has one entry per column."""
    texts = (None,) * desc.arity if defaults is None else defaults
    return tuple(
        Column(name=c.name, type=stored_type(c.type), nullable=c.nullable, default=default)
        for c, default in zip(desc.columns, texts, strict=True)
    )


class Table(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="table",
    omit_defaults=True,
    gc=False,
):
    """Rows that users write; its upper is that of the txns shard."""

    shard_id: ShardId
    history_ms: int | None = None  # how long its past stays readable; None: as usual


class View(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="view", gc=False):
    """A name for a query; nothing is stored or run for it."""


class MaterializedView(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="materialized_view",
    omit_defaults=True,
    gc=False,
):
    """A query whose result one cluster keeps in a shard.

    Between the transaction that gives it another definition and the one that notes that this one
    writes the shard, it is handing over: the dataflows of both run.
    """

    shard_id: ShardId  # of a replacement: its target's, which it does not write yet
    cluster_id: ClusterId
    as_of: Timestamp  # the result is exact from here on
    history_ms: int | None = None
    replacement: Replacement | None = None  # None: it is no replacement
    past: tuple[PastVersion, ...] = ()  # of all the item's versions but the last
    handing_over: bool = False
    forward_time: bool = False  # while handing over: an interval may be left unreadable
    # While handing over: what the last version depends on, and the item will afterwards.
    depends_on_after: tuple[ItemId, ...] = ()
    refresh: StoredRefresh | None = None  # None: it is kept up to date all the time


class IndexKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One key column of an index: a column of the relation, or an expression over them."""

    position: int | None = None  # from 0; None: an expression
    expression: str | None = None  # SQL text; None: a plain column


class Index(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="index",
    omit_defaults=True,
    gc=False,
):
    """A relation that the replicas of one cluster keep arranged by a key, in memory."""

    on_id: ItemId
    cluster_id: ClusterId
    keys: tuple[IndexKey, ...]
    history_ms: int | None = None

    def key_places(self, arity: int) -> tuple[int, ...]:
        """Where each key is in what the index holds: the values of expressions stand behind the
        relation's columns, so many of which there are."""
        behind = count(arity)
        return tuple(next(behind) if k.position is None else k.position for k in self.keys)


Definition: TypeAlias = (
    Table | View | MaterializedView | Index | Source | Subsource | Sink | NamedType
)


class ItemKind(StrEnum):
    """What an item is, in the words of errors, audit events and mz_objects."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized-view"
    INDEX = "index"
    SOURCE = "source"
    SINK = "sink"
    TYPE = "type"

    @property
    def sql_words(self) -> str:
        """As SQL and error messages spell it.

        >>> ItemKind.MATERIALIZED_VIEW.sql_words
        'materialized view'
        """
        return self.value.replace("-", " ")


_ITEM_KINDS: dict[type[Definition], ItemKind] = {
    Table: ItemKind.TABLE,
    View: ItemKind.VIEW,
    MaterializedView: ItemKind.MATERIALIZED_VIEW,
    Index: ItemKind.INDEX,
    Source: ItemKind.SOURCE,
    Subsource: ItemKind.SOURCE,
    Sink: ItemKind.SINK,
    NamedType: ItemKind.TYPE,
}


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An object living in a schema. `item_id` is its identity through rename and replacement."""

    KIND: ClassVar[ObjectKind] = ObjectKind.ITEM
    KEY: ClassVar[tuple[str, ...]] = ("item_id",)

    item_id: ItemId
    oid: int
    schema_id: SchemaId
    name: str
    owner: RoleId
    create_sql: str  # normalised: names qualified, implied clauses written out
    versions: tuple[ItemVersion, ...]  # oldest first; the last is current
    depends_on: tuple[ItemId, ...] = ()  # direct ones, builtins included
    definition: Definition
    privileges: Acl = ()  # of an index or a sink: none
    # Versions of what it depends on that its text means, where that is not the first one.
    planned_against: tuple[GlobalId, ...] = ()

    @property
    def kind(self) -> ItemKind:
        return _ITEM_KINDS[type(self.definition)]

    @property
    def global_id(self) -> GlobalId:
        """The current version's."""
        return self.versions[-1].global_id

    @property
    def columns(self) -> tuple[Column, ...]:
        """The current version's, with defaults."""
        return self.versions[-1].columns

    @property
    def desc(self) -> RelationDesc:
        """The current version's shape; of an index, its key columns."""
        return self.versions[-1].desc

    @property
    def shard_id(self) -> ShardId | None:
        """Where its rows are durable; None: nowhere, or not yet, as those of a replacement."""
        match self.definition:
            case MaterializedView(replacement=Replacement()):
                return None
            case Table() if self.schema_id == TEMPORARY_SCHEMA_ID:
                return None
            case Table() | MaterializedView() | Source() | Subsource():
                return self.definition.shard_id
            case View() | Index() | Sink() | NamedType():
                return None

    @property
    def history_ms(self) -> int | None:
        """How long its past stays readable, if it was asked for; None: as usual."""
        if isinstance(self.definition, View | Sink | NamedType):
            return None
        return self.definition.history_ms

    @property
    def cluster_id(self) -> ClusterId | None:
        """The cluster that works for it; None: none does, or for a subsource its source's."""
        match self.definition:
            case MaterializedView() | Index() | Source() | Sink():
                return self.definition.cluster_id
            case Table() | View() | Subsource() | NamedType():
                return None

    def version(self, global_id: GlobalId) -> ItemVersion:
        """The version of this id."""
        found = next((one for one in self.versions if one.global_id == global_id), None)
        assert found is not None, f"{self.item_id} has no version {global_id}"
        return found

    def version_among(self, planned_against: Container[GlobalId]) -> ItemVersion:
        """The version that a text means which was planned against these: else the first."""
        meant = (one for one in self.versions if one.global_id in planned_against)
        return next(meant, self.versions[0])

    @property
    def replacement(self) -> Replacement | None:
        """What it replaces once it is applied; None: it is no replacement."""
        return (
            self.definition.replacement if isinstance(self.definition, MaterializedView) else None
        )

    @property
    def refresh(self) -> RefreshSchedule | None:
        """The only times at which a materialized view changes; None: whenever its inputs do."""
        if not isinstance(self.definition, MaterializedView) or self.definition.refresh is None:
            return None
        return self.definition.refresh.schedule

    @property
    def reads(self) -> tuple[ItemId, ...]:
        """What its current definition names, directly.

        A replacement also depends on its target, and what is handing over on what it read before.
        """
        match self.definition:
            case MaterializedView(replacement=Replacement(target=target)):
                return tuple(item_id for item_id in self.depends_on if item_id != target)
            case MaterializedView(handing_over=True, depends_on_after=after):
                return after
            case _:
                return self.depends_on

    @property
    def outgoing(self) -> "Item | None":
        """While it is handing over: the item under its last version but one, which still runs."""
        if isinstance(self.definition, MaterializedView) and self.definition.handing_over:
            return self.as_was(self.definition.past[-1].global_id)
        return None

    def as_was(self, global_id: GlobalId) -> "Item":
        """The item under an earlier version: its definition, its columns, where it ran."""
        assert isinstance(self.definition, MaterializedView), "other items have one version"
        ids = [past.global_id for past in self.definition.past]
        number = ids.index(global_id)
        past = self.definition.past[number]
        definition = MaterializedView(
            shard_id=self.definition.shard_id,
            cluster_id=past.cluster_id,
            as_of=past.as_of,
            history_ms=self.definition.history_ms,
            past=self.definition.past[:number],
        )
        return msgspec.structs.replace(
            self,
            create_sql=past.create_sql,
            versions=self.versions[: number + 1],
            depends_on=past.depends_on,
            definition=definition,
            planned_against=past.planned_against,
        )


class Secret(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """That a secret exists and whose it is. Its value is never in the catalog."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SECRET
    KEY: ClassVar[tuple[str, ...]] = ("secret_id",)

    secret_id: ItemId  # numbered as items are, whose namespace it shares
    oid: int
    schema_id: SchemaId
    name: str
    owner: RoleId
    privileges: Acl = ()
    stored_at: str = ""  # under which key the value is kept
