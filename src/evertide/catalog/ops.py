"""Changes that may be asked of the catalog. Those in one transaction happen together or not at all.

An op names what exists by id and carries SQL text only as data; ids of what it creates are chosen
by transact.py.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.catalog.objects import ClusterVariant, Column, Index, View
from evertide.vocab.ids import ClusterId, DatabaseId, ItemId, ReplicaId, RoleId, SchemaId
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabaseOp:
    """A database comes with its schema `public`."""

    name: str
    owner: RoleId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchemaOp:
    database_id: DatabaseId
    name: str
    owner: RoleId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRoleOp:
    name: str
    superuser: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReplica:
    """A replica named by hand, in an unmanaged cluster."""

    name: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClusterOp:
    """Replicas of virtual and managed clusters follow from the variant; `replicas` is empty."""

    name: str
    owner: RoleId
    variant: ClusterVariant
    replicas: tuple[NewReplica, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClusterReplicaOp:
    cluster_id: ClusterId
    owner: RoleId
    replica: NewReplica


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table whose shard gets its name from the new GlobalId."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMaterializedView:
    """A materialized view whose shard gets its name from the new GlobalId."""

    cluster_id: ClusterId
    as_of: Timestamp


NewDefinition: TypeAlias = NewTable | View | NewMaterializedView | Index


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateItemOp:
    """`columns` of an index are those of its key; its `depends_on` includes its relation."""

    schema_id: SchemaId
    name: str
    owner: RoleId
    create_sql: str
    columns: tuple[Column, ...]
    depends_on: tuple[ItemId, ...] = ()
    definition: NewDefinition


@dataclass(frozen=True, slots=True)
class DropItemsOp:
    """All of them at once; refused if anything else still depends on one (see drop.py)."""

    item_ids: tuple[ItemId, ...]


@dataclass(frozen=True, slots=True)
class DropSchemaOp:
    """Refused while the schema holds items: those go by a DropItemsOp before this one."""

    schema_id: SchemaId


@dataclass(frozen=True, slots=True)
class DropDatabaseOp:
    """Refused while the database holds schemas: those go by ops before this one."""

    database_id: DatabaseId


@dataclass(frozen=True, slots=True)
class DropClusterOp:
    """Its replicas go with it; refused while it runs items."""

    cluster_id: ClusterId


@dataclass(frozen=True, slots=True)
class DropClusterReplicaOp:
    replica_id: ReplicaId


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameItemOp:
    """`create_sql` is the definition under the new name.

    `dependants_sql` holds the new definition of every item whose text names this one.
    """

    item_id: ItemId
    new_name: str
    create_sql: str
    dependants_sql: tuple[tuple[ItemId, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SetSystemConfigurationOp:
    """ALTER SYSTEM SET; a value of None is RESET."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class AllocateIdsOp:
    """User ids that are in nothing's name yet."""

    count: int


Op: TypeAlias = (
    CreateDatabaseOp
    | CreateSchemaOp
    | CreateRoleOp
    | CreateClusterOp
    | CreateClusterReplicaOp
    | CreateItemOp
    | DropItemsOp
    | DropSchemaOp
    | DropDatabaseOp
    | DropClusterOp
    | DropClusterReplicaOp
    | RenameItemOp
    | SetSystemConfigurationOp
    | AllocateIdsOp
)
