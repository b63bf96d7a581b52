"""Changes that may be asked of the catalog. Those in one transaction happen together or not at all.

An op names what exists by id and carries SQL text only as data; ids of what it creates are chosen
by transact.py.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.catalog.dropped_ops import DroppedOp
from evertide.catalog.kinds.temporary import GivenIds
from evertide.catalog.moving_ops import MoveToSchemaOp
from evertide.catalog.new_external import NewIndex, NewSink, NewSource, NewSubsource
from evertide.catalog.objects import (
    USUAL_INTROSPECTION,
    ClusterVariant,
    Column,
    DefaultPrivilege,
    Ending,
    Index,
    Introspection,
    NamedType,
    ObjectKey,
    Reconfiguration,
    Replacement,
    SystemPrivilege,
    View,
)
from evertide.catalog.privilege_ops import NewPassword, PrivilegeOp
from evertide.catalog.replacement_ops import ReplacementOp
from evertide.vocab.ids import (
    ClusterId,
    DatabaseId,
    GlobalId,
    ItemId,
    ProfileId,
    ReplicaId,
    RoleId,
    SchemaId,
)
from evertide.vocab.refresh import RefreshSchedule
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
    login: bool | None = None
    password: NewPassword | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReplica:
    """A replica that somebody named, or that follows from its cluster or profile."""

    name: str
    size: str | None  # None: runs in the pool of virtual clusters
    internal: bool = False
    billed_as: str | None = None  # None: as its profile is
    pending: bool = False
    introspection: Introspection = USUAL_INTROSPECTION


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClusterOp:
    """Replicas of virtual and managed clusters follow from the variant; `replicas` is empty."""

    name: str
    owner: RoleId
    variant: ClusterVariant
    replicas: tuple[NewReplica, ...] = ()
    workload_class: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClusterOp:
    """All properties as they shall be. Replicas are made to fit; those that fit are left alone.

    Refused while a reconfiguration is pending: that one is finished first.
    """

    cluster_id: ClusterId
    variant: ClusterVariant
    workload_class: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapClustersOp:
    """Two clusters exchange their names.

    `items_sql` holds the new definition of every item whose text names one of them.
    """

    cluster_id: ClusterId
    other_id: ClusterId
    items_sql: tuple[tuple[ItemId, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReconfigurationOp:
    """Replicas of the target come, marked pending, and the old ones stay for now."""

    cluster_id: ClusterId
    pending: Reconfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishReconfigurationOp:
    """Committed: the old replicas go and the pending ones take their names. Else: those go.

    Nothing happens if none is pending, or another one than was meant: somebody else was first.
    """

    cluster_id: ClusterId
    pending: Reconfiguration
    ending: Ending
    fault: str | None = None  # why it could not be committed


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReplicaRestartOp:
    """A replica ended by itself and was started again; nothing changes but the audit log."""

    replica_id: ReplicaId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClusterReplicaOp:
    """In an unmanaged profile if one is given, else in an unmanaged cluster."""

    cluster_id: ClusterId
    owner: RoleId
    replica: NewReplica
    profile_id: ProfileId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClusterProfileOp:
    """Managed if it has a size: then replicas follow from it, and `replicas` is empty."""

    cluster_id: ClusterId
    name: str
    owner: RoleId
    size: str | None = None
    replication_factor: int | None = None
    billed_as: str | None = None
    introspection: Introspection = USUAL_INTROSPECTION
    expires_at_ms: int | None = None
    replicas: tuple[NewReplica, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClusterProfileOp:
    """All properties as they shall be. Replicas of a managed profile are made to fit them."""

    profile_id: ProfileId
    size: str | None
    replication_factor: int | None
    billed_as: str | None
    introspection: Introspection = USUAL_INTROSPECTION
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DropClusterProfileOp:
    """Replicas of a managed profile go with it; an unmanaged one is refused while it has any."""

    profile_id: ProfileId
    cascade: bool = False  # those of an unmanaged profile go too
    reason: str | None = None  # None: a user's wish, or the system's


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReplicaOp:
    """The replica goes on running under another profile; None: its cluster's implicit one."""

    replica_id: ReplicaId
    profile_id: ProfileId | None


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table whose shard gets its name from the new GlobalId."""

    history_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMaterializedView:
    """A materialized view whose shard gets its name from the new GlobalId.

    A replacement is staged for a view and has no shard of its own. `depends_on` of the op is what
    its query reads; that it also depends on its target follows.
    """

    cluster_id: ClusterId
    as_of: Timestamp
    history_ms: int | None = None
    replacement: Replacement | None = None
    refresh: RefreshSchedule | None = None  # None: it is kept up to date all the time


NewDefinition: TypeAlias = (
    NewTable
    | View
    | NewMaterializedView
    | Index
    | NewSource
    | NewSubsource
    | NewSink
    | NewIndex
    | NamedType
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateItemOp:
    """`columns` of an index are those of its key; its `depends_on` includes its relation.

    What comes beside another item of the transaction also depends on that one.
    """

    schema_id: SchemaId
    name: str
    owner: RoleId
    create_sql: str
    columns: tuple[Column, ...]
    depends_on: tuple[ItemId, ...] = ()
    definition: NewDefinition
    # Versions that its text means where that is not the first; None: the last ones.
    planned_against: tuple[GlobalId, ...] | None = None
    # Those of a temporary item; None: they are allocated.
    ids: GivenIds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSecretOp:
    """That the secret exists; whoever creates it puts the value where secrets are kept."""

    schema_id: SchemaId
    name: str
    owner: RoleId
    stored_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSecretOp:
    """Another value, which is kept elsewhere than the one before."""

    secret_id: ItemId
    stored_at: str


@dataclass(frozen=True, slots=True)
class DropSecretOp:
    secret_id: ItemId


@dataclass(frozen=True, slots=True)
class DropItemsOp:
    """All of them at once; refused if anything else still depends on one (see drop.py)."""

    item_ids: tuple[ItemId, ...]
    # Those that can be brought back are kept for the grace period, if there is one.
    keep: bool = False


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHistoryOp:
    """How long an item's past stays readable; `create_sql` is the definition that says so."""

    item_id: ItemId
    history_ms: int | None
    create_sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetClusterOp:
    """Another cluster works for the item; `create_sql` is the definition that says so."""

    item_id: ItemId
    cluster_id: ClusterId
    create_sql: str


@dataclass(frozen=True, slots=True)
class DropRoleOp:
    """Refused while the role owns something or is named in a grant."""

    role_id: RoleId


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameObjectOp:
    """A new name for a database, schema, role, cluster, replica or profile.

    `items_sql` holds the new definition of every item whose text names the object.
    """

    target: ObjectKey
    new_name: str
    items_sql: tuple[tuple[ItemId, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOwnerOp:
    """A new owner for anything that has one."""

    target: ObjectKey
    new_owner: RoleId


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCommentOp:
    """COMMENT ON an object, or on a column of an item; a comment of None takes it away."""

    target: ObjectKey
    column: int | None = None  # its number, from 1
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRoleOp:
    """`member_id` becomes a member of `role_id`; nothing happens if it is one already."""

    role_id: RoleId
    member_id: RoleId
    grantor: RoleId


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRoleOp:
    """Nothing happens if there is no such membership."""

    role_id: RoleId
    member_id: RoleId


@dataclass(frozen=True, slots=True)
class SetDefaultPrivilegeOp:
    """The grant as it shall be; without privileges it goes."""

    wanted: DefaultPrivilege


@dataclass(frozen=True, slots=True)
class SetSystemPrivilegeOp:
    """The grant as it shall be; without privileges it goes."""

    wanted: SystemPrivilege


@dataclass(frozen=True, slots=True)
class RecordStorageUsageOp:
    """How much each object takes now."""

    size_bytes: tuple[tuple[ItemId, int], ...]


@dataclass(frozen=True, slots=True)
class SetConfigOp:
    """A number about the catalog itself; None takes it away."""

    name: str
    value: int | None


@dataclass(frozen=True, slots=True)
class SetSettingOp:
    """A text about the environment; None takes it away."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class SetSystemConfigurationOp:
    """ALTER SYSTEM SET; a value of None is RESET."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class AllocateIdsOp:
    """User ids that are in nothing's name yet."""

    count: int


CreateOp: TypeAlias = (
    CreateDatabaseOp
    | CreateSchemaOp
    | CreateRoleOp
    | CreateClusterOp
    | CreateClusterProfileOp
    | CreateClusterReplicaOp
    | CreateItemOp
    | CreateSecretOp
)
DropOp: TypeAlias = (
    DropItemsOp
    | DropSecretOp
    | DropSchemaOp
    | DropDatabaseOp
    | DropClusterOp
    | DropClusterProfileOp
    | DropClusterReplicaOp
    | DropRoleOp
)
ClusterOp: TypeAlias = (
    AlterClusterOp
    | AlterClusterProfileOp
    | FinishReconfigurationOp
    | MoveReplicaOp
    | RecordReplicaRestartOp
    | StartReconfigurationOp
    | SwapClustersOp
)
AlterOp: TypeAlias = (
    ClusterOp
    | DroppedOp
    | MoveToSchemaOp
    | ReplacementOp
    | RenameItemOp
    | RenameObjectOp
    | ChangeOwnerOp
    | SetClusterOp
    | SetCommentOp
    | SetHistoryOp
    | SetSecretOp
)
GrantOp: TypeAlias = (
    GrantRoleOp | RevokeRoleOp | SetDefaultPrivilegeOp | SetSystemPrivilegeOp | PrivilegeOp
)
NoteOp: TypeAlias = SetConfigOp | SetSettingOp | SetSystemConfigurationOp | RecordStorageUsageOp

Op: TypeAlias = CreateOp | DropOp | AlterOp | GrantOp | NoteOp | AllocateIdsOp
