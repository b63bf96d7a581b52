"""The ops that create: names must be free, what is referred to must exist."""

from collections.abc import Iterator

from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.draft import Allocator, Draft
from evertide.catalog.objects import (
    AuditDetail,
    Cluster,
    ClusterReplica,
    Database,
    Definition,
    Index,
    Item,
    ItemVersion,
    ManagedCluster,
    MaterializedView,
    Role,
    Schema,
    Table,
    UnmanagedCluster,
    View,
    VirtualCluster,
)
from evertide.catalog.ops import (
    CreateClusterOp,
    CreateClusterReplicaOp,
    CreateDatabaseOp,
    CreateItemOp,
    CreateRoleOp,
    CreateSchemaOp,
    NewDefinition,
    NewMaterializedView,
    NewReplica,
    NewTable,
)
from evertide.vocab.errors import (
    DuplicateObject,
    DuplicateTable,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidName,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
)
from evertide.vocab.ids import (
    ClusterId,
    DatabaseId,
    GlobalId,
    ItemId,
    ReplicaId,
    RoleId,
    SchemaId,
    ShardId,
)

RESERVED_PREFIXES = ("mz_", "pg_")


def shard_of(global_id: GlobalId) -> ShardId:
    """The shard of a collection that starts one. A GlobalId is never used twice, so nor is this."""
    return ShardId(f"item-{global_id}")


def create_database(draft: Draft, op: CreateDatabaseOp) -> None:
    if draft.snapshot.database_named(op.name) is not None:
        raise DuplicateObject(f"database '{op.name}' already exists")
    _refuse_unknown_role(draft, op.owner)
    database = Database(
        database_id=DatabaseId(draft.allocate_id(Allocator.DATABASE)),
        oid=draft.allocate(Allocator.OID),
        name=op.name,
        owner=op.owner,
    )
    draft.create(database)
    draft.audit("create", "database", {"id": database.database_id, "name": database.name})
    create_schema(
        draft, CreateSchemaOp(database_id=database.database_id, name="public", owner=op.owner)
    )


def create_schema(draft: Draft, op: CreateSchemaOp) -> None:
    database = draft.snapshot.databases.get(op.database_id)
    if database is None:
        raise UndefinedDatabase(f"unknown database '{op.database_id}'")
    if _is_reserved(op.name) or draft.snapshot.schema_named(None, op.name) is not None:
        raise InvalidName(
            f"unacceptable schema name '{op.name}'",
            detail='The prefixes "mz_" and "pg_" are reserved for system schemas.',
        )
    if draft.snapshot.schema_named(op.database_id, op.name) is not None:
        raise DuplicateObject(f"schema '{op.name}' already exists")
    _refuse_unknown_role(draft, op.owner)
    schema = Schema(
        schema_id=SchemaId(draft.allocate_id(Allocator.SCHEMA)),
        oid=draft.allocate(Allocator.OID),
        database_id=op.database_id,
        name=op.name,
        owner=op.owner,
    )
    draft.create(schema)
    details = {"id": schema.schema_id, "name": schema.name, "database_name": database.name}
    draft.audit("create", "schema", {**details})


def create_role(draft: Draft, op: CreateRoleOp) -> None:
    if _is_reserved(op.name) or op.name == "public":
        raise InvalidName(
            f'role name "{op.name}" is reserved',
            detail='The role "public" and the prefixes "mz_" and "pg_" are reserved for system '
            "roles.",
        )
    if draft.snapshot.role_named(op.name) is not None:
        raise DuplicateObject(f"role '{op.name}' already exists")
    role = Role(
        role_id=RoleId(draft.allocate_id(Allocator.ROLE)),
        oid=draft.allocate(Allocator.OID),
        name=op.name,
        superuser=op.superuser,
    )
    draft.create(role)
    draft.audit("create", "role", {"id": role.role_id, "name": role.name})


def create_cluster(draft: Draft, op: CreateClusterOp) -> None:
    if _is_reserved(op.name):
        raise InvalidName(
            f'cluster name "{op.name}" is reserved',
            detail='The prefixes "mz_" and "pg_" are reserved for system clusters.',
        )
    if draft.snapshot.cluster_named(op.name) is not None:
        raise DuplicateObject(f"cluster '{op.name}' already exists")
    _refuse_unknown_role(draft, op.owner)
    cluster = Cluster(
        cluster_id=ClusterId(draft.allocate_id(Allocator.CLUSTER)),
        name=op.name,
        owner=op.owner,
        variant=op.variant,
    )
    draft.create(cluster)
    draft.audit("create", "cluster", {"id": cluster.cluster_id, "name": cluster.name})
    for name, size in _first_replicas(op):
        _create_replica(draft, cluster, name, size, op.owner, reason="system")


def _first_replicas(op: CreateClusterOp) -> Iterator[tuple[str, str | None]]:
    match op.variant:
        case VirtualCluster():
            yield "r1", None
        case ManagedCluster(size=size, replication_factor=factor):
            yield from ((f"r{number}", size) for number in range(1, factor + 1))
        case UnmanagedCluster():
            yield from ((replica.name, replica.size) for replica in op.replicas)


def create_cluster_replica(draft: Draft, op: CreateClusterReplicaOp) -> None:
    cluster = draft.snapshot.clusters.get(op.cluster_id)
    if cluster is None:
        raise UndefinedObject(f"unknown cluster '{op.cluster_id}'")
    match cluster.variant:
        case VirtualCluster():
            raise FeatureNotSupported(
                f"cannot modify virtual cluster {cluster.name}",
                hint="Use ALTER CLUSTER ... SET (SIZE ...) to give it replicas of its own.",
            )
        case ManagedCluster():
            raise FeatureNotSupported(f"cannot modify managed cluster {cluster.name}")
        case UnmanagedCluster():
            _refuse_unknown_role(draft, op.owner)
            replica: NewReplica = op.replica
            _create_replica(draft, cluster, replica.name, replica.size, op.owner, reason="manual")


def _create_replica(
    draft: Draft, cluster: Cluster, name: str, size: str | None, owner: RoleId, *, reason: str
) -> None:
    if draft.snapshot.replica_named(cluster.cluster_id, name) is not None:
        raise DuplicateObject(
            f"cannot create multiple replicas named '{name}' on cluster '{cluster.name}'"
        )
    replica = ClusterReplica(
        replica_id=ReplicaId(draft.allocate_id(Allocator.CLUSTER_REPLICA)),
        cluster_id=cluster.cluster_id,
        name=name,
        size=size,
        owner=owner,
    )
    draft.create(replica)
    details: dict[str, AuditDetail] = {
        "cluster_id": cluster.cluster_id,
        "cluster_name": cluster.name,
        "replica_id": replica.replica_id,
        "replica_name": name,
        "logical_size": size,
        "billed_as": None,
        "internal": False,
        "reason": reason,
    }
    draft.audit("create", "cluster-replica", details)


def create_item(draft: Draft, op: CreateItemOp) -> None:
    schema = draft.snapshot.schemas.get(op.schema_id)
    if schema is None:
        raise UndefinedSchema(f"unknown schema '{op.schema_id}'")
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
    refuse_taken_name(draft, op.schema_id, op.name)
    _refuse_unknown_role(draft, op.owner)
    for item_id in op.depends_on:
        if item_id not in draft.snapshot.items and builtin_of(item_id) is None:
            raise UndefinedTable(f"unknown catalog item '{item_id}'")
    # One number names the item and its first version; later versions take numbers of their own.
    number = draft.allocate_id(Allocator.USER)
    global_id = GlobalId(number)
    item = Item(
        item_id=ItemId(number),
        oid=draft.allocate(Allocator.OID),
        schema_id=op.schema_id,
        name=op.name,
        owner=op.owner,
        create_sql=op.create_sql,
        versions=(ItemVersion(global_id=global_id, columns=op.columns),),
        depends_on=op.depends_on,
        definition=_definition(op.definition, global_id),
    )
    _refuse_unknown_cluster(draft, item)
    draft.create(item)
    runs_in = {} if item.cluster_id is None else {"cluster_id": item.cluster_id}
    draft.audit_item("create", item, **runs_in)


def _definition(definition: NewDefinition, global_id: GlobalId) -> Definition:
    match definition:
        case NewTable():
            return Table(shard_id=shard_of(global_id))
        case NewMaterializedView(cluster_id=cluster_id, as_of=as_of):
            return MaterializedView(
                shard_id=shard_of(global_id), cluster_id=cluster_id, as_of=as_of
            )
        case View() | Index():
            return definition


def refuse_taken_name(draft: Draft, schema_id: SchemaId, name: str) -> None:
    """Tables, views, materialized views and indexes share one namespace."""
    if draft.snapshot.item_named(schema_id, name) is not None:
        raise DuplicateTable(f"catalog item '{name}' already exists")


def _refuse_unknown_cluster(draft: Draft, item: Item) -> None:
    if item.cluster_id is not None and item.cluster_id not in draft.snapshot.clusters:
        raise UndefinedObject(f"unknown cluster '{item.cluster_id}'")


def _refuse_unknown_role(draft: Draft, role_id: RoleId) -> None:
    if role_id not in draft.snapshot.roles:
        raise UndefinedObject(f"unknown role '{role_id}'")


def _is_reserved(name: str) -> bool:
    return name.startswith(RESERVED_PREFIXES)
