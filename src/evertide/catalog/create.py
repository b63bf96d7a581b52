"""The ops that create: names must be free, what is referred to must exist."""

from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.draft import Allocator, Draft, full_name
from evertide.catalog.objects import (
    Database,
    Definition,
    Index,
    Item,
    ItemVersion,
    MaterializedView,
    Role,
    Schema,
    Secret,
    Table,
    View,
)
from evertide.catalog.ops import (
    CreateDatabaseOp,
    CreateItemOp,
    CreateRoleOp,
    CreateSchemaOp,
    CreateSecretOp,
    NewDefinition,
    NewMaterializedView,
    NewTable,
)
from evertide.catalog.references import ITEM_NAME
from evertide.vocab.errors import (
    DuplicateObject,
    DuplicateTable,
    InsufficientPrivilege,
    InvalidName,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
)
from evertide.vocab.ids import (
    DatabaseId,
    GlobalId,
    ItemId,
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
    refuse_unknown_role(draft, op.owner)
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
    if is_reserved(op.name) or draft.snapshot.schema_named(None, op.name) is not None:
        raise InvalidName(
            f"unacceptable schema name '{op.name}'",
            detail='The prefixes "mz_" and "pg_" are reserved for system schemas.',
        )
    if draft.snapshot.schema_named(op.database_id, op.name) is not None:
        raise DuplicateObject(f"schema '{op.name}' already exists")
    refuse_unknown_role(draft, op.owner)
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
    if is_reserved(op.name) or op.name == "public":
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


def create_item(draft: Draft, op: CreateItemOp) -> None:
    _refuse_other_than_users_schema(draft, op.schema_id)
    refuse_taken_name(draft, op.schema_id, op.name)
    refuse_unknown_role(draft, op.owner)
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


def create_secret(draft: Draft, op: CreateSecretOp) -> None:
    _refuse_other_than_users_schema(draft, op.schema_id)
    refuse_taken_name(draft, op.schema_id, op.name)
    refuse_unknown_role(draft, op.owner)
    secret = Secret(
        secret_id=ItemId(draft.allocate_id(Allocator.USER)),
        oid=draft.allocate(Allocator.OID),
        schema_id=op.schema_id,
        name=op.name,
        owner=op.owner,
    )
    draft.create(secret)
    named = full_name(draft.snapshot, secret)
    draft.audit("create", "secret", {"id": secret.secret_id, **named})


def _refuse_other_than_users_schema(draft: Draft, schema_id: SchemaId) -> None:
    schema = draft.snapshot.schemas.get(schema_id)
    if schema is None:
        raise UndefinedSchema(f"unknown schema '{schema_id}'")
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")


def _definition(definition: NewDefinition, global_id: GlobalId) -> Definition:
    match definition:
        case NewTable(history_ms=history_ms):
            return Table(shard_id=shard_of(global_id), history_ms=history_ms)
        case NewMaterializedView(cluster_id=cluster_id, as_of=as_of, history_ms=history_ms):
            shard_id = shard_of(global_id)
            return MaterializedView(
                shard_id=shard_id, cluster_id=cluster_id, as_of=as_of, history_ms=history_ms
            )
        case View() | Index():
            return definition


def refuse_taken_name(draft: Draft, schema_id: SchemaId, name: str) -> None:
    """Tables, views, materialized views, indexes and secrets share one namespace."""
    if draft.snapshot.named((ITEM_NAME, schema_id, name)):
        raise DuplicateTable(f"catalog item '{name}' already exists")


def _refuse_unknown_cluster(draft: Draft, item: Item) -> None:
    if item.cluster_id is not None and item.cluster_id not in draft.snapshot.clusters:
        raise UndefinedObject(f"unknown cluster '{item.cluster_id}'")


def refuse_unknown_role(draft: Draft, role_id: RoleId) -> None:
    """A role that is named as an owner or in a grant must exist."""
    if role_id not in draft.snapshot.roles:
        raise UndefinedObject(f"unknown role '{role_id}'")


def is_reserved(name: str) -> bool:
    """Names that only the system gives."""
    return name.startswith(RESERVED_PREFIXES)
