"""What an environment holds when it is new."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.durable.codec import CATALOG_VERSION, GENERATION_CONFIG, VERSION_CONFIG
from evertide.catalog.kinds.privileges import granted
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    AclItem,
    CatalogObject,
    CatalogUpdate,
    Cluster,
    Config,
    Database,
    DefaultPrivilege,
    IdAllocator,
    Role,
    Schema,
    Setting,
    SystemPrivilege,
    VirtualCluster,
)
from evertide.catalog.ops import CreateClusterOp, CreateDatabaseOp, CreateRoleOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import apply_op
from evertide.vocab.ids import EnvironmentId, RoleId, SchemaId

DEFAULT_CLUSTER: Final = "default"
DEFAULT_DATABASE: Final = "materialize"
DEFAULT_ROLE: Final = "materialize"
ENVIRONMENT_ID_SETTING: Final = "environment_id"

SYSTEM_ROLE_ID: Final = RoleId("s1")
SUPPORT_ROLE_ID: Final = RoleId("s2")
DEFAULT_ROLE_ID: Final = RoleId("u1")

# Oids below belong to PostgreSQL, to the peer's types and to system relations.
FIRST_USER_OID: Final = 20_000

_SYSTEM_ROLES: Final = (
    Role(role_id=SYSTEM_ROLE_ID, oid=10, name="mz_system", superuser=True),
    Role(role_id=SUPPORT_ROLE_ID, oid=16_663, name="mz_support"),
)
_SYSTEM_SCHEMAS: Final = (
    ("s1", 16_664, "mz_catalog"),
    ("s2", 11, "pg_catalog"),
    ("s3", 16_665, "mz_internal"),
    ("s4", 16_666, "information_schema"),
    ("s5", 16_667, "mz_introspection"),
)
# Support may look at what users make, and types are for everyone.
_DEFAULT_PRIVILEGES: Final = (
    ("cluster", SUPPORT_ROLE_ID),
    ("database", SUPPORT_ROLE_ID),
    ("schema", SUPPORT_ROLE_ID),
    ("type", PUBLIC_ROLE_ID),
)
_USAGE: Final = "U"
_ALL_OF_SYSTEM: Final = "RBNP"
_SYSTEM_SCHEMA_ACL: Final = (
    AclItem(SYSTEM_ROLE_ID, SYSTEM_ROLE_ID, "UC"),
    AclItem(SUPPORT_ROLE_ID, SYSTEM_ROLE_ID, _USAGE),
    AclItem(PUBLIC_ROLE_ID, SYSTEM_ROLE_ID, _USAGE),
)


def bootstrap_updates(environment_id: EnvironmentId, now_ms: int) -> tuple[CatalogUpdate, ...]:
    """The first transaction of an environment.

    Users' own first objects are made by ops like any later ones, so they have ids, and audit
    events, as if somebody had created them.
    """
    draft = Draft(Snapshot(), now_ms=now_ms, user=None)
    for found in _system_objects(environment_id):
        draft.create(found)
    for op in (
        CreateRoleOp(name=DEFAULT_ROLE, superuser=True),
        CreateDatabaseOp(name=DEFAULT_DATABASE, owner=DEFAULT_ROLE_ID),
        CreateClusterOp(name=DEFAULT_CLUSTER, owner=DEFAULT_ROLE_ID, variant=VirtualCluster()),
    ):
        apply_op(draft, op)
    # Whoever connects finds a place to look around in.
    first: list[Database | Cluster] = [
        *draft.snapshot.databases.values(),
        *draft.snapshot.clusters.values(),
    ]
    for shared in first:
        acl = granted(shared.privileges, PUBLIC_ROLE_ID, shared.owner, _USAGE)
        draft.replace(shared, msgspec.structs.replace(shared, privileges=acl))
    return draft.updates()


def _system_objects(environment_id: EnvironmentId) -> Sequence[CatalogObject]:
    schemas = (
        Schema(
            schema_id=SchemaId(schema_id),
            oid=oid,
            database_id=None,
            name=name,
            owner=SYSTEM_ROLE_ID,
            privileges=_SYSTEM_SCHEMA_ACL,
        )
        for schema_id, oid, name in _SYSTEM_SCHEMAS
    )
    counters = (
        IdAllocator(name=name, next_number=FIRST_USER_OID if name is Allocator.OID else 1)
        for name in Allocator
    )
    return (
        Config(name=VERSION_CONFIG, value=CATALOG_VERSION),
        Config(name=GENERATION_CONFIG, value=0),
        Setting(name=ENVIRONMENT_ID_SETTING, value=environment_id),
        *_SYSTEM_ROLES,
        *schemas,
        *counters,
        *_first_grants(),
    )


def _first_grants() -> Iterator[CatalogObject]:
    for object_type, grantee in _DEFAULT_PRIVILEGES:
        yield DefaultPrivilege(
            role_id=PUBLIC_ROLE_ID,
            database_id=None,
            schema_id=None,
            object_type=object_type,
            grantee=grantee,
            privileges=_USAGE,
        )
    for grantee in (SYSTEM_ROLE_ID, DEFAULT_ROLE_ID):
        yield SystemPrivilege(grantee=grantee, grantor=SYSTEM_ROLE_ID, privileges=_ALL_OF_SYSTEM)
