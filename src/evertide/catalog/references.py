"""What each object is called and what it refers to: the facts behind every index and check."""

import re
from collections.abc import Iterator
from typing import TypeAlias, assert_never

from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    AuditEvent,
    CatalogObject,
    Cluster,
    ClusterProfile,
    ClusterReplica,
    Comment,
    Config,
    Database,
    DefaultPrivilege,
    DroppedItem,
    IdAllocator,
    Index,
    IntrospectionSourceIndex,
    Item,
    MaterializedView,
    NamedType,
    ObjectKey,
    ObjectKind,
    Role,
    RoleMembership,
    RolePassword,
    Schema,
    Secret,
    Setting,
    Sink,
    StorageUsage,
    Subsource,
    SystemConfiguration,
    SystemObjectMapping,
    SystemPrivilege,
    TimelineTimestamp,
)
from evertide.vocab.ids import DatabaseId, RoleId

_CLUSTER = ObjectKind.CLUSTER.value
_CLUSTER_ITEM = ObjectKind.CLUSTER_ITEM.value
_DATABASE = ObjectKind.DATABASE.value
_ITEM = ObjectKind.ITEM.value
_ROLE = ObjectKind.ROLE.value
_SCHEMA = ObjectKind.SCHEMA.value

# A namespace and what is unique in it: a name, an oid, a global id.
NameKey: TypeAlias = tuple[str | int | None, ...]

DATABASE_NAME = "database name"
SCHEMA_NAME = "schema name"
ROLE_NAME = "role name"
CLUSTER_NAME = "cluster name"
MEMBER_NAME = "name in cluster"  # replicas and profiles
ITEM_NAME = "name in schema"  # items and secrets
TYPE_NAME = "type name in schema"
GLOBAL_ID = "global id"
REPLACEMENT = "replacement of"
OID = "oid"

# Names of the allocators that numbers of more than one kind come from.
OID_ALLOCATOR = "oid"
ID_ALLOCATOR = "user"  # items, secrets and global ids

# What allocators give: to users' objects, and to what clusters report.
_ALLOCATED = re.compile(r"(?:u|si)([1-9][0-9]*)")


def names_of(found: CatalogObject) -> Iterator[NameKey]:
    """All that no other object may have too."""
    match found:
        case Database(name=name, oid=oid):
            yield DATABASE_NAME, name
            yield OID, oid
        case Schema(database_id=database_id, name=name, oid=oid):
            yield SCHEMA_NAME, database_id, name
            yield OID, oid
        case Role(name=name, oid=oid):
            yield ROLE_NAME, name
            yield OID, oid
        case Cluster(name=name):
            yield CLUSTER_NAME, name
        case ClusterReplica() | ClusterProfile():
            yield MEMBER_NAME, found.cluster_id, found.name
        case Item():
            named = TYPE_NAME if isinstance(found.definition, NamedType) else ITEM_NAME
            yield named, found.schema_id, found.name
            yield from ((GLOBAL_ID, version.global_id) for version in found.versions)
            yield OID, found.oid
            if found.replacement is not None:
                yield REPLACEMENT, found.replacement.target
        case DroppedItem(item=item):
            yield from ((GLOBAL_ID, version.global_id) for version in item.versions)
            yield OID, item.oid
        case Secret():
            yield ITEM_NAME, found.schema_id, found.name
            yield GLOBAL_ID, found.secret_id
            yield OID, found.oid
        case IntrospectionSourceIndex(index_id=index_id, oid=oid):
            yield GLOBAL_ID, index_id
            yield OID, oid
        case SystemObjectMapping(object_id=object_id):
            yield "system object id", object_id
        case (
            AuditEvent()
            | Comment()
            | Config()
            | DefaultPrivilege()
            | IdAllocator()
            | RoleMembership()
            | RolePassword()
            | Setting()
            | StorageUsage()
            | SystemConfiguration()
            | SystemPrivilege()
            | TimelineTimestamp()
        ):
            return
        case _:
            assert_never(found)


def ids_of(found: CatalogObject) -> Iterator[tuple[str, str]]:
    """The object's own ids, each with the allocator that users' ids of this sort come from."""
    match found:
        case Database() | Schema() | Role() | Cluster() | ClusterReplica() | ClusterProfile():
            yield found.KIND.value, getattr(found, found.KEY[0])
        case Item():
            yield ID_ALLOCATOR, found.item_id
            yield from ((ID_ALLOCATOR, version.global_id) for version in found.versions)
        case DroppedItem(item=item):
            yield from ids_of(item)
        case Secret():
            yield ID_ALLOCATOR, found.secret_id
        case IntrospectionSourceIndex():
            yield found.KIND.value, found.index_id
        case _:
            return


def numbers_of(found: CatalogObject) -> Iterator[tuple[str, int]]:
    """Numbers that the object has used up, each with its allocator; some may come twice.

    Ids of the system come from no allocator, and its oids are below all that one gives.
    """
    for allocator, text in ids_of(found):
        allocated = _ALLOCATED.fullmatch(text)
        if allocated is not None:
            yield allocator, int(allocated[1])
    match found:
        case AuditEvent(event_id=number) | StorageUsage(usage_id=number):
            yield found.KIND.value, number
        case _:
            yield from ((OID_ALLOCATOR, oid) for oid in oids_of(found))


def oids_of(found: CatalogObject) -> Iterator[int]:
    """The object's oid, if its kind has one."""
    match found:
        case Database() | Schema() | Role() | Item() | Secret() | IntrospectionSourceIndex():
            yield found.oid
        case DroppedItem(item=item):
            yield item.oid
        case _:
            return


def references_of(found: CatalogObject) -> Iterator[ObjectKey]:
    """Keys of the objects that must exist as long as this one does; some may come twice."""
    match found:
        case Database() | Cluster():
            yield from _of_acl(found)
        case Schema(database_id=database_id):
            yield from _in_database(database_id)
            yield from _of_acl(found)
        case ClusterReplica() | ClusterProfile() | IntrospectionSourceIndex():
            yield from _of_cluster(found)
        case Item():
            yield from _of_item(found)
        case Secret():
            yield _SCHEMA, found.schema_id
            yield from _of_acl(found)
        case RoleMembership() | DefaultPrivilege() | SystemPrivilege():
            yield from _of_grant(found)
        case RolePassword(role_id=role_id):
            if role_id != PUBLIC_ROLE_ID:
                yield _role(role_id)
        case Comment(object_kind=kind, object_id=object_id):
            yield kind.value, object_id
        case (
            AuditEvent()
            | Config()
            | DroppedItem()
            | IdAllocator()
            | Role()
            | Setting()
            | StorageUsage()
            | SystemConfiguration()
            | SystemObjectMapping()
            | TimelineTimestamp()
        ):
            return
        case _:
            assert_never(found)


def _of_acl(found: Database | Schema | Cluster | Item | Secret) -> Iterator[ObjectKey]:
    """The owner, and whoever else is named as one who may do something with the object."""
    owner = found.owner
    yield _role(owner)
    for grantee, grantor in ((entry.grantee, entry.grantor) for entry in found.privileges):
        if grantee not in (owner, PUBLIC_ROLE_ID):
            yield _role(grantee)
        if grantor != owner:
            yield _role(grantor)


def _of_cluster(
    found: ClusterReplica | ClusterProfile | IntrospectionSourceIndex,
) -> Iterator[ObjectKey]:
    yield _CLUSTER, found.cluster_id
    if not isinstance(found, IntrospectionSourceIndex):
        yield _role(found.owner)
    if isinstance(found, ClusterReplica) and found.profile_id is not None:
        yield _CLUSTER_ITEM, found.profile_id


def _of_item(item: Item) -> Iterator[ObjectKey]:
    yield _SCHEMA, item.schema_id
    yield from _of_acl(item)
    if item.cluster_id is not None:
        yield _CLUSTER, item.cluster_id
    match item.definition:
        case Index(on_id=item_id) | Sink(from_id=item_id) | Subsource(source_id=item_id):
            yield _ITEM, item_id
        case MaterializedView(handing_over=True, past=(*_, outgoing)):
            yield _CLUSTER, outgoing.cluster_id
        case _:
            pass
    for dependency in item.depends_on:
        yield _ITEM, dependency


def _of_grant(found: RoleMembership | DefaultPrivilege | SystemPrivilege) -> Iterator[ObjectKey]:
    match found:
        case RoleMembership():
            roles = (found.role_id, found.member_id, found.grantor)
        case SystemPrivilege():
            roles = (found.grantee, found.grantor, found.grantor)
        case DefaultPrivilege():
            roles = (found.role_id, found.grantee, found.grantee)
            yield from _in_database(found.database_id)
            if found.schema_id is not None:
                yield _SCHEMA, found.schema_id
    yield from (_role(role_id) for role_id in roles if role_id != PUBLIC_ROLE_ID)


def _in_database(database_id: DatabaseId | None) -> Iterator[ObjectKey]:
    if database_id is not None:
        yield _DATABASE, database_id


def _role(role_id: RoleId) -> ObjectKey:
    return _ROLE, role_id
