"""Every kind of object the catalog keeps, one frozen record each.

A record's fields are its stored form (durable/codec.py writes them as JSON), so types here are
plain: ids, text, numbers, and records of those. `KIND` names the kind in the stored row, `KEY` the
fields that identify an object of it; the other fields are its value. Unknown fields are refused, so
that a misspelt one in an edit by hand is noticed. The garbage collector need not look at them:
frozen records of plain values have no cycles. The records themselves are in kinds/, by family.
"""

from typing import TypeAlias

import msgspec

from evertide.catalog.kinds.bookkeeping import (
    AuditDetail,
    AuditEvent,
    Comment,
    Config,
    IdAllocator,
    Setting,
    StorageUsage,
    SystemConfiguration,
    SystemObjectMapping,
    TimelineTimestamp,
)
from evertide.catalog.kinds.clusters import (
    UNBILLED,
    USUAL_INTROSPECTION,
    Cluster,
    ClusterItem,
    ClusterProfile,
    ClusterReplica,
    ClusterVariant,
    EndedReconfiguration,
    Ending,
    Introspection,
    IntrospectionSourceIndex,
    ManagedCluster,
    ManagedTarget,
    OnTimeout,
    Reconfiguration,
    UnmanagedCluster,
    VirtualCluster,
    billed_as,
)
from evertide.catalog.kinds.dropped import DroppedItem, KeptComment
from evertide.catalog.kinds.external import (
    AuctionLoad,
    CounterLoad,
    Load,
    Sink,
    Source,
    Subsource,
)
from evertide.catalog.kinds.items import (
    Column,
    Database,
    Definition,
    Index,
    IndexKey,
    Item,
    ItemKind,
    ItemVersion,
    MaterializedView,
    Schema,
    Secret,
    Table,
    View,
    stored_columns,
)
from evertide.catalog.kinds.kind import ObjectKind
from evertide.catalog.kinds.passwords import RolePassword
from evertide.catalog.kinds.privileges import Acl, AclItem
from evertide.catalog.kinds.replacements import NamedInput, PastVersion, Replacement
from evertide.catalog.kinds.roles import (
    PUBLIC_ROLE_ID,
    DefaultPrivilege,
    Role,
    RoleMembership,
    SystemPrivilege,
)
from evertide.catalog.kinds.types import NamedType, StoredType, stored_type

__all__ = [
    "OBJECT_TYPES",
    "PUBLIC_ROLE_ID",
    "UNBILLED",
    "USUAL_INTROSPECTION",
    "Acl",
    "AclItem",
    "AuctionLoad",
    "AuditDetail",
    "AuditEvent",
    "CatalogObject",
    "CatalogUpdate",
    "Cluster",
    "ClusterItem",
    "ClusterProfile",
    "ClusterReplica",
    "ClusterVariant",
    "Column",
    "Comment",
    "Config",
    "CounterLoad",
    "Database",
    "DefaultPrivilege",
    "Definition",
    "DroppedItem",
    "EndedReconfiguration",
    "Ending",
    "IdAllocator",
    "Index",
    "IndexKey",
    "Introspection",
    "IntrospectionSourceIndex",
    "Item",
    "ItemKind",
    "ItemVersion",
    "KeptComment",
    "Load",
    "ManagedCluster",
    "ManagedTarget",
    "MaterializedView",
    "NamedInput",
    "NamedType",
    "ObjectKey",
    "ObjectKind",
    "OnTimeout",
    "PastVersion",
    "Reconfiguration",
    "Replacement",
    "Role",
    "RoleMembership",
    "RolePassword",
    "Schema",
    "Secret",
    "Setting",
    "Sink",
    "Source",
    "StorageUsage",
    "StoredType",
    "Subsource",
    "SystemConfiguration",
    "SystemObjectMapping",
    "SystemPrivilege",
    "Table",
    "TimelineTimestamp",
    "UnmanagedCluster",
    "View",
    "VirtualCluster",
    "billed_as",
    "kind_name",
    "object_key",
    "record_types",
    "stored_columns",
    "stored_type",
]

CatalogObject: TypeAlias = (
    AuditEvent
    | Cluster
    | ClusterProfile
    | ClusterReplica
    | Comment
    | Config
    | Database
    | DefaultPrivilege
    | DroppedItem
    | IdAllocator
    | IntrospectionSourceIndex
    | Item
    | Role
    | RoleMembership
    | RolePassword
    | Schema
    | Secret
    | Setting
    | StorageUsage
    | SystemConfiguration
    | SystemObjectMapping
    | SystemPrivilege
    | TimelineTimestamp
)

OBJECT_TYPES: dict[ObjectKind, type[CatalogObject]] = {
    ObjectKind.AUDIT_EVENT: AuditEvent,
    ObjectKind.CLUSTER: Cluster,
    ObjectKind.CLUSTER_ITEM: ClusterReplica,
    ObjectKind.COMMENT: Comment,
    ObjectKind.CONFIG: Config,
    ObjectKind.DATABASE: Database,
    ObjectKind.DEFAULT_PRIVILEGE: DefaultPrivilege,
    ObjectKind.DROPPED_ITEM: DroppedItem,
    ObjectKind.ID_ALLOCATOR: IdAllocator,
    ObjectKind.INTROSPECTION_SOURCE_INDEX: IntrospectionSourceIndex,
    ObjectKind.ITEM: Item,
    ObjectKind.ROLE: Role,
    ObjectKind.ROLE_MEMBERSHIP: RoleMembership,
    ObjectKind.ROLE_PASSWORD: RolePassword,
    ObjectKind.SCHEMA: Schema,
    ObjectKind.SECRET: Secret,
    ObjectKind.SETTING: Setting,
    ObjectKind.STORAGE_USAGE: StorageUsage,
    ObjectKind.SYSTEM_CONFIGURATION: SystemConfiguration,
    ObjectKind.SYSTEM_OBJECT_MAPPING: SystemObjectMapping,
    ObjectKind.SYSTEM_PRIVILEGE: SystemPrivilege,
    ObjectKind.TIMESTAMP: TimelineTimestamp,
}

# The records of kinds that have more than one, told apart by a tag in the stored row.
VARIANTS: dict[ObjectKind, tuple[type[CatalogObject], ...]] = {
    ObjectKind.CLUSTER_ITEM: (ClusterReplica, ClusterProfile),
}


def record_types(kind: ObjectKind) -> tuple[type[CatalogObject], ...]:
    """Every record that an object of this kind can be."""
    return VARIANTS.get(kind, (OBJECT_TYPES[kind],))


class CatalogUpdate(msgspec.Struct, frozen=True, gc=False):
    """One object came (diff 1) or went (diff -1); a change is both."""

    object: CatalogObject
    diff: int


ObjectKey: TypeAlias = tuple[str | int | None, ...]

# Asked for every object of every change, so looked up once.
_KEYS: dict[type[CatalogObject], tuple[str, tuple[str, ...]]] = {
    object_type: (kind.value, object_type.KEY)
    for kind in OBJECT_TYPES
    for object_type in record_types(kind)
}


def object_key(catalog_object: CatalogObject) -> ObjectKey:
    """What identifies the object among all: its kind and its key fields.

    >>> object_key(Setting(name="environment_id", value="e"))
    ('setting', 'environment_id')
    """
    kind, fields = _KEYS[type(catalog_object)]
    if len(fields) == 1:
        return kind, getattr(catalog_object, fields[0])
    return (kind, *(getattr(catalog_object, field) for field in fields))


def kind_name(catalog_object: CatalogObject) -> str:
    """What the object is, with underscores: its kind, or which variant of it."""
    match catalog_object:
        case ClusterReplica():
            return "cluster_replica"
        case ClusterProfile():
            return "cluster_profile"
        case _:
            return catalog_object.KIND.value
