"""The ops that create: names must be free, what is referred to must exist."""

from collections.abc import Iterator

import msgspec

from evertide.catalog.acl import new_acl
from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.draft import Allocator, Draft, full_name
from evertide.catalog.kinds.external import external_type
from evertide.catalog.kinds.privileges import granted
from evertide.catalog.kinds.refresh import stored_refresh
from evertide.catalog.kinds.temporary import TEMPORARY_SCHEMA_ID
from evertide.catalog.new_external import Beside, NewIndex, NewSink, NewSource, NewSubsource
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    Acl,
    Database,
    Definition,
    Index,
    Item,
    ItemVersion,
    MaterializedView,
    NamedType,
    Role,
    Schema,
    Secret,
    Sink,
    Source,
    Subsource,
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
from evertide.catalog.replacements import last_versions, refuse_staged, staged
from evertide.catalog.set_password import keep_password
from evertide.catalog.temporary import SESSION_SCHEMA, SHARD_PREFIX, refuse_lasting
from evertide.vocab.errors import (
    DuplicateObject,
    DuplicateTable,
    InsufficientPrivilege,
    InvalidName,
    InvalidTableDefinition,
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
_RESERVED_ROLE_NAMES = ("public", "current_user", "current_role", "session_user", "user", "none")
RESERVED_ROLES = (
    'The role "public" and the prefixes "mz_" and "pg_" are reserved for system roles. The role '
    'specification names "current_user", "current_role", "session_user", "user", and "none" are '
    "also reserved."
)


def shard_of(global_id: GlobalId) -> ShardId:
    """The shard of a collection that starts one. A GlobalId is never used twice, so nor is this."""
    return ShardId(f"{SHARD_PREFIX}{global_id}")


def create_database(draft: Draft, op: CreateDatabaseOp) -> None:
    if draft.snapshot.database_named(op.name) is not None:
        raise DuplicateObject(f"database '{op.name}' already exists")
    refuse_unknown_role(draft, op.owner)
    database = Database(
        database_id=DatabaseId(draft.allocate_id(Allocator.DATABASE)),
        oid=draft.allocate(Allocator.OID),
        name=op.name,
        owner=op.owner,
        privileges=new_acl(draft.snapshot, "database", op.owner),
    )
    draft.create(database)
    draft.audit("create", "database", {"id": database.database_id, "name": database.name})
    public = CreateSchemaOp(database_id=database.database_id, name="public", owner=op.owner)
    create_schema(draft, public, for_everyone=True)


def create_schema(draft: Draft, op: CreateSchemaOp, *, for_everyone: bool = False) -> None:
    """A schema of its owner's, which everyone may use if that is said."""
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
    acl = new_acl(draft.snapshot, "schema", op.owner, op.database_id)
    schema = Schema(
        schema_id=SchemaId(draft.allocate_id(Allocator.SCHEMA)),
        oid=draft.allocate(Allocator.OID),
        database_id=op.database_id,
        name=op.name,
        owner=op.owner,
        privileges=granted(acl, PUBLIC_ROLE_ID, op.owner, "U") if for_everyone else acl,
    )
    draft.create(schema)
    details = {"id": schema.schema_id, "name": schema.name, "database_name": database.name}
    draft.audit("create", "schema", {**details})


def create_role(draft: Draft, op: CreateRoleOp) -> None:
    if is_reserved(op.name) or op.name in _RESERVED_ROLE_NAMES:
        raise InvalidName(f'role name "{op.name}" is reserved', detail=RESERVED_ROLES)
    if draft.snapshot.role_named(op.name) is not None:
        raise DuplicateObject(f"role '{op.name}' already exists")
    role = Role(
        role_id=RoleId(draft.allocate_id(Allocator.ROLE)),
        oid=draft.allocate(Allocator.OID),
        name=op.name,
        superuser=op.superuser,
        login=op.login,
    )
    draft.create(role)
    if op.password is not None:
        keep_password(draft, role, op.password)
    draft.audit("create", "role", {"id": role.role_id, "name": role.name})


def create_item(draft: Draft, op: CreateItemOp) -> None:
    _place(draft, op)
    kind = "type" if isinstance(op.definition, NamedType) else "item"
    refuse_taken_name(draft, op.schema_id, op.name, kind)
    refuse_unknown_role(draft, op.owner)
    read = (*op.depends_on, *_beside(draft, op.definition))
    for item_id in read:
        if item_id not in draft.snapshot.items and builtin_of(item_id) is None:
            raise UndefinedTable(f"unknown catalog item '{item_id}'")
    refuse_staged(draft.snapshot, read)
    refuse_lasting(op.schema_id, read, draft.snapshot)
    # One number names the item and its first version; later versions take numbers of their own.
    number = draft.allocate_id(Allocator.USER) if op.ids is None else op.ids.item_id
    global_id = GlobalId(number)
    item = Item(
        item_id=ItemId(number),
        oid=draft.allocate(Allocator.OID) if op.ids is None else op.ids.oid,
        schema_id=op.schema_id,
        name=op.name,
        owner=op.owner,
        create_sql=op.create_sql,
        versions=(ItemVersion(global_id=global_id, columns=op.columns),),
        depends_on=read,
        definition=_definition(draft, op.definition, global_id),
        planned_against=(
            last_versions(draft.snapshot, read)
            if op.planned_against is None
            else op.planned_against
        ),
    )
    _refuse_unknown_cluster(draft, item)
    item = msgspec.structs.replace(item, privileges=_item_acl(draft, item.kind.value, op))
    details: dict[str, str] = {} if item.cluster_id is None else {"cluster_id": item.cluster_id}
    if isinstance(op.definition, NewMaterializedView) and op.definition.replacement is not None:
        item = staged(draft.snapshot, item, op.definition.replacement)
        details["target_id"] = op.definition.replacement.target
    if isinstance(item.definition, Source | Subsource | Sink):
        details["type"] = external_type(item.definition)
    draft.create(item)
    draft.audit_item("create", item, **details)


def create_secret(draft: Draft, op: CreateSecretOp) -> None:
    _refuse_other_than_users_schema(draft, op.schema_id)
    refuse_taken_name(draft, op.schema_id, op.name, "secret")
    refuse_unknown_role(draft, op.owner)
    secret = Secret(
        secret_id=ItemId(draft.allocate_id(Allocator.USER)),
        oid=draft.allocate(Allocator.OID),
        schema_id=op.schema_id,
        name=op.name,
        owner=op.owner,
        privileges=_item_acl(draft, "secret", op),
        stored_at=op.stored_at,
    )
    draft.create(secret)
    named = full_name(draft.snapshot, secret)
    draft.audit("create", "secret", {"id": secret.secret_id, **named})


def _item_acl(draft: Draft, object_type: str, op: CreateItemOp | CreateSecretOp) -> Acl:
    schema = draft.snapshot.schemas[op.schema_id]
    return new_acl(draft.snapshot, object_type, op.owner, schema.database_id, op.schema_id)


def _place(draft: Draft, op: CreateItemOp) -> None:
    """The schema is there and takes the item; the temporary one comes with its first."""
    if op.schema_id != TEMPORARY_SCHEMA_ID:
        _refuse_other_than_users_schema(draft, op.schema_id)
        return
    if not isinstance(op.definition, NewTable | View):
        raise InvalidTableDefinition("only tables and views can be temporary")
    assert op.ids is not None, "whose session it is gives the ids"
    if TEMPORARY_SCHEMA_ID not in draft.snapshot.schemas:
        draft.create(SESSION_SCHEMA)


def _refuse_other_than_users_schema(draft: Draft, schema_id: SchemaId) -> None:
    schema = draft.snapshot.schemas.get(schema_id)
    if schema is None:
        raise UndefinedSchema(f"unknown schema '{schema_id}'")
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")


def _beside(draft: Draft, definition: NewDefinition) -> Iterator[ItemId]:
    """What an earlier op of the transaction made, and this one belongs to."""
    match definition:
        case NewSubsource(of=made) | NewIndex(on=made):
            yield _made(draft, made)
        case _:
            return


def _made(draft: Draft, beside: Beside) -> ItemId:
    found = draft.snapshot.item_named(beside.schema_id, beside.name)
    assert found is not None, "created by an op before this one"
    return found.item_id


def _definition(draft: Draft, definition: NewDefinition, global_id: GlobalId) -> Definition:
    match definition:
        case NewTable(history_ms=history_ms):
            return Table(shard_id=shard_of(global_id), history_ms=history_ms)
        case NewMaterializedView():
            return MaterializedView(
                shard_id=shard_of(global_id),
                cluster_id=definition.cluster_id,
                as_of=definition.as_of,
                history_ms=definition.history_ms,
                refresh=stored_refresh(definition.refresh),
            )
        case View() | Index() | NamedType():
            return definition
        case NewIndex(on=on, cluster_id=cluster_id, keys=keys):
            return Index(on_id=_made(draft, on), cluster_id=cluster_id, keys=keys)
        case NewSource():
            return Source(
                cluster_id=definition.cluster_id,
                as_of=definition.as_of,
                load=definition.load,
                shard_id=shard_of(global_id) if definition.stored else None,
                history_ms=definition.history_ms,
            )
        case NewSubsource():
            return Subsource(
                source_id=_made(draft, definition.of),
                table=definition.table,
                as_of=definition.as_of,
                shard_id=shard_of(global_id),
                history_ms=definition.history_ms,
            )
        case NewSink():
            return Sink(
                from_id=definition.from_id,
                cluster_id=definition.cluster_id,
                as_of=definition.as_of,
                path=definition.path,
                snapshot=definition.snapshot,
            )


def refuse_taken_name(draft: Draft, schema_id: SchemaId, name: str, kind: str) -> None:
    """All kinds of items share one namespace, and secrets share it with all but types."""
    snapshot = draft.snapshot
    if kind == "type":
        taken = snapshot.item_named(schema_id, name) is not None
    else:
        taken = bool(snapshot.named((ITEM_NAME, schema_id, name)))
    if kind != "secret":
        taken = taken or snapshot.type_named(schema_id, name) is not None
    if taken:
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
