"""Every kind of object the catalog keeps, one frozen record each.

A record's fields are its stored form (durable/codec.py writes them as JSON), so types here are
plain: ids, text, numbers, and records of those. `KIND` names the kind in the stored row, `KEY` the
fields that identify an object of it; the other fields are its value.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, TypeAlias

import msgspec

from evertide.vocab.ids import (
    ClusterId,
    DatabaseId,
    GlobalId,
    ItemId,
    ProfileId,
    ReplicaId,
    RoleId,
    SchemaId,
    ShardId,
)
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import Kind, SqlType
from evertide.vocab.timestamp import Timestamp


class ObjectKind(StrEnum):
    """The first column of a stored row."""

    AUDIT_EVENT = "audit_event"
    CLUSTER = "cluster"
    CLUSTER_REPLICA = "cluster_replica"
    CONFIG = "config"
    DATABASE = "database"
    ID_ALLOCATOR = "id_allocator"
    ITEM = "item"
    ROLE = "role"
    SCHEMA = "schema"
    SETTING = "setting"
    SYSTEM_CONFIGURATION = "system_configuration"


class Database(msgspec.Struct, frozen=True, kw_only=True):
    """A set of schemas; a session looks at one at a time."""

    KIND: ClassVar[ObjectKind] = ObjectKind.DATABASE
    KEY: ClassVar[tuple[str, ...]] = ("database_id",)

    database_id: DatabaseId
    oid: int
    name: str
    owner: RoleId


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace of items."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SCHEMA
    KEY: ClassVar[tuple[str, ...]] = ("schema_id",)

    schema_id: SchemaId
    oid: int
    database_id: DatabaseId | None  # None: a system schema, seen from every database
    name: str
    owner: RoleId


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """A user or a group of users."""

    KIND: ClassVar[ObjectKind] = ObjectKind.ROLE
    KEY: ClassVar[tuple[str, ...]] = ("role_id",)

    role_id: RoleId
    oid: int
    name: str
    superuser: bool = False


class VirtualCluster(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="virtual"):
    """Runs in the pool process that all virtual clusters share."""


class ManagedCluster(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="managed"):
    """Replicas r1..rN follow from size and replication factor."""

    size: str
    replication_factor: int


class UnmanagedCluster(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="unmanaged"):
    """Replicas are created and dropped by name."""


ClusterVariant: TypeAlias = VirtualCluster | ManagedCluster | UnmanagedCluster


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of replicas that run the same dataflows."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CLUSTER
    KEY: ClassVar[tuple[str, ...]] = ("cluster_id",)

    cluster_id: ClusterId
    name: str
    owner: RoleId
    variant: ClusterVariant

    @property
    def is_virtual(self) -> bool:
        return isinstance(self.variant, VirtualCluster)


class ClusterReplica(msgspec.Struct, frozen=True, kw_only=True):
    """One running copy of a cluster."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CLUSTER_REPLICA
    KEY: ClassVar[tuple[str, ...]] = ("replica_id",)

    replica_id: ReplicaId
    cluster_id: ClusterId
    profile_id: ProfileId | None = None  # None: the cluster's implicit profile
    name: str
    size: str | None  # None: runs in the pool of virtual clusters
    owner: RoleId


class StoredType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A SqlType as it is stored: apart from vocab's, so that stored bytes do not move with it."""

    kind: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    element: "StoredType | None" = None

    def to_sql_type(self) -> SqlType:
        return SqlType(
            Kind(self.kind),
            precision=self.precision,
            scale=self.scale,
            length=self.length,
            element=None if self.element is None else self.element.to_sql_type(),
        )


def stored_type(sql_type: SqlType) -> StoredType:
    """The stored form of a type.

    >>> stored_type(SqlType(Kind.INT4)).to_sql_type() == SqlType(Kind.INT4)
    True
    """
    return StoredType(
        kind=sql_type.kind.value,
        precision=sql_type.precision,
        scale=sql_type.scale,
        length=sql_type.length,
        element=None if sql_type.element is None else stored_type(sql_type.element),
    )


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column of one version of an item."""

    name: str
    type: StoredType
    nullable: bool = True
    default: str | None = None  # SQL text of a table column's DEFAULT; None: NULL


class ItemVersion(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One schema of an item under the GlobalId that names its collection.

    The columns of an index are those of its key.
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


class Table(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="table"):
    """Rows that users write; its upper is that of the txns shard."""

    shard_id: ShardId


class View(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="view"):
    """A name for a query; nothing is stored or run for it."""


class MaterializedView(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="materialized_view"
):
    """A query whose result one cluster keeps in a shard."""

    shard_id: ShardId
    cluster_id: ClusterId
    as_of: Timestamp  # the result is exact from here on


class IndexKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key column of an index: a column of the relation, or an expression over them."""

    position: int | None = None  # from 0; None: an expression
    expression: str | None = None  # SQL text; None: a plain column


class Index(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag="index"):
    """A relation that the replicas of one cluster keep arranged by a key, in memory."""

    on_id: ItemId
    cluster_id: ClusterId
    keys: tuple[IndexKey, ...]


Definition: TypeAlias = Table | View | MaterializedView | Index


class ItemKind(StrEnum):
    """What an item is, in the words of errors, audit events and mz_objects."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized-view"
    INDEX = "index"

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
}


class Item(msgspec.Struct, frozen=True, kw_only=True):
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
        """Where its rows are durable; None: nowhere."""
        match self.definition:
            case Table(shard_id=shard_id) | MaterializedView(shard_id=shard_id):
                return shard_id
            case View() | Index():
                return None

    @property
    def cluster_id(self) -> ClusterId | None:
        """The cluster that runs its dataflow; None: it has none."""
        match self.definition:
            case MaterializedView(cluster_id=cluster_id) | Index(cluster_id=cluster_id):
                return cluster_id
            case Table() | View():
                return None


class IdAllocator(msgspec.Struct, frozen=True, kw_only=True):
    """The next number of one family of ids."""

    KIND: ClassVar[ObjectKind] = ObjectKind.ID_ALLOCATOR
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    next_number: int


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """A number about the catalog itself, such as its stored version."""

    KIND: ClassVar[ObjectKind] = ObjectKind.CONFIG
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    value: int


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A text about the environment, such as its id; not for users to change."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SETTING
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    value: str


class SystemConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """A variable that ALTER SYSTEM SET gave a value; absent ones have their default."""

    KIND: ClassVar[ObjectKind] = ObjectKind.SYSTEM_CONFIGURATION
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    value: str


AuditDetail: TypeAlias = str | int | bool | dict[str, str] | None


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One change, who made it and when. Only ever added; a snapshot does not keep them."""

    KIND: ClassVar[ObjectKind] = ObjectKind.AUDIT_EVENT
    KEY: ClassVar[tuple[str, ...]] = ("event_id",)

    event_id: int
    event_type: str  # create, alter, drop
    object_type: str  # table, view, cluster, ...
    details: dict[str, AuditDetail]
    user: str | None  # None: the system itself
    occurred_at_ms: int


CatalogObject: TypeAlias = (
    AuditEvent
    | Cluster
    | ClusterReplica
    | Config
    | Database
    | IdAllocator
    | Item
    | Role
    | Schema
    | Setting
    | SystemConfiguration
)

OBJECT_TYPES: dict[ObjectKind, type[CatalogObject]] = {
    ObjectKind.AUDIT_EVENT: AuditEvent,
    ObjectKind.CLUSTER: Cluster,
    ObjectKind.CLUSTER_REPLICA: ClusterReplica,
    ObjectKind.CONFIG: Config,
    ObjectKind.DATABASE: Database,
    ObjectKind.ID_ALLOCATOR: IdAllocator,
    ObjectKind.ITEM: Item,
    ObjectKind.ROLE: Role,
    ObjectKind.SCHEMA: Schema,
    ObjectKind.SETTING: Setting,
    ObjectKind.SYSTEM_CONFIGURATION: SystemConfiguration,
}


class CatalogUpdate(msgspec.Struct, frozen=True):
    """One object came (diff 1) or went (diff -1); a change is both."""

    object: CatalogObject
    diff: int


ObjectKey: TypeAlias = tuple[str | int, ...]


def object_key(catalog_object: CatalogObject) -> ObjectKey:
    """What identifies the object among all: its kind and its key fields.

    >>> object_key(Setting(name="environment_id", value="e"))
    ('setting', 'environment_id')
    """
    fields = (getattr(catalog_object, field) for field in catalog_object.KEY)
    return (catalog_object.KIND.value, *fields)
