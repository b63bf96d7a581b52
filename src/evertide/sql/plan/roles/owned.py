"""Whose things are: ALTER ... OWNER TO, REASSIGN OWNED and DROP OWNED."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from evertide.catalog.acl import Guarded, roles_above
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.drop import CASCADE_HINT, with_dependants, with_parts
from evertide.catalog.kinds.temporary import TEMPORARY_ALIAS, TEMPORARY_SCHEMA
from evertide.catalog.naming import full_name
from evertide.catalog.objects import (
    Cluster,
    Database,
    DefaultPrivilege,
    Item,
    ItemKind,
    Role,
    Schema,
    Secret,
    SystemPrivilege,
    object_key,
)
from evertide.catalog.ops import (
    ChangeOwnerOp,
    DropClusterOp,
    DropDatabaseOp,
    DropItemsOp,
    DropSchemaOp,
    DropSecretOp,
    Op,
    SetDefaultPrivilegeOp,
    SetSystemPrivilegeOp,
)
from evertide.catalog.privilege_ops import RevokePrivilegesOp
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind, refuse_halfway
from evertide.sql.plan.named.secret import resolve_secret
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.roles.names import resolve_role
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs, Privilege
from evertide.sql.plan.skipped import skipped
from evertide.sql.resolve import (
    find_object,
    no_connection,
    position_of,
    resolve_cluster,
    resolve_database,
    resolve_schema,
)
from evertide.sql.syntax.definition import AlterOwnerStatement, ObjectKind
from evertide.sql.syntax.role import DropOwnedStatement, ReassignOwnedStatement
from evertide.sql.type_words import is_system_type
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    InsufficientPrivilege,
    InternalError,
    Notice,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
)
from evertide.vocab.ids import RoleId

_MISSING: Final = (UndefinedTable, UndefinedSchema, UndefinedDatabase, UndefinedObject)
# All letters: whatever a role has been granted.
_EVERYTHING: Final = "arwdUCRBNP"


def plan_alter_owner(statement: AlterOwnerStatement, query: QueryContext) -> RolePlan | NoticePlan:
    """Both the old owner and the new one must be oneself, or one's group."""
    tag = f"ALTER {statement.kind}"
    if statement.kind is ObjectKind.CLUSTER_REPLICA:
        # Programs know this refusal by a code that says little.
        raise InternalError(
            "altering the owner of a cluster replica is not supported",
            position=position_of(statement.at),
        )
    new_owner = resolve_role(statement.role, query.plan.snapshot, at=statement.at).role_id
    try:
        found = _owned_object(statement, query)
    except _MISSING:
        if not statement.if_exists:
            raise
        return NoticePlan(tag, (skipped(statement.kind, statement.name),))
    needs = Needs(
        member_of=(new_owner,),
        owner_of=(object_key(found),),
        privileges=tuple(_place_of(found)),
    )
    if isinstance(found, Item) and found.kind is ItemKind.INDEX:
        message = f'cannot change owner of index "{found.name}"'
        hint = "Change the ownership of the index's relation instead."
        return RolePlan(tag, (), needs, (Notice("WARNING", "42809", message, hint=hint),))
    return RolePlan(tag, (ChangeOwnerOp(target=object_key(found), new_owner=new_owner),), needs)


def _owned_object(statement: AlterOwnerStatement, query: QueryContext) -> Guarded:
    name, names, snapshot = statement.name, query.plan.names, query.plan.snapshot
    match statement.kind:
        case ObjectKind.CLUSTER:
            return resolve_cluster(name.parts[0], snapshot, at=name.at)
        case ObjectKind.DATABASE:
            return resolve_database(name.parts[0], snapshot, at=name.at)
        case ObjectKind.SCHEMA:
            if name.parts[-1] in (TEMPORARY_SCHEMA, TEMPORARY_ALIAS):
                raise InsufficientPrivilege(
                    f"cannot alter schema {name.parts[-1]} because it is a temporary schema"
                )
            schema = resolve_schema(name.parts, names, at=name.at)
            if schema.database_id is None:
                raise InsufficientPrivilege(
                    f"cannot alter schema {schema.name} because it is required by the database"
                    " system"
                )
            return schema
        case ObjectKind.SECRET:
            return resolve_secret(name, names)
        case ObjectKind.CONNECTION:
            no_connection(name, names)
        case ObjectKind.TYPE if is_system_type(name.parts):
            raise InsufficientPrivilege(
                f"cannot alter item pg_catalog.{name.parts[-1]} because it is required by the"
                " database system"
            )
        case kind if kind in ITEM_KINDS:
            builtin = find_object(name, names)
            if isinstance(builtin, Builtin):
                raise InsufficientPrivilege(
                    f"cannot alter item {builtin.schema}.{builtin.name} because it is required by"
                    " the database system"
                )
            return item_of_kind(name, ITEM_KINDS[kind], names, use="ALTER {} for {}")
        case kind:
            raise FeatureNotSupported(
                f"ALTER {kind} ... OWNER TO is not supported", position=position_of(statement.at)
            )


def _place_of(found: Guarded) -> Iterator[Privilege]:
    """To give an object away is to create it anew where it is."""
    match found:
        case Item(schema_id=schema_id) | Secret(schema_id=schema_id):
            yield Privilege(("schema", schema_id), "C")
        case Schema(database_id=database_id) if database_id is not None:
            yield Privilege(("database", database_id), "C")
        case _:
            return


def plan_reassign_owned(statement: ReassignOwnedStatement, query: QueryContext) -> RolePlan:
    """All that some roles own becomes another's."""
    snapshot = query.plan.snapshot
    old = _roles(statement.old_roles, query, "reassign")
    new = resolve_role(statement.new_role, snapshot, at=statement.at)
    ids = {role.role_id for role in old}
    ops = tuple(
        ChangeOwnerOp(target=object_key(found), new_owner=new.role_id)
        for found in _owned(snapshot, ids)
        if not (isinstance(found, Item) and found.kind is ItemKind.INDEX)
    )
    return RolePlan("REASSIGN OWNED", ops, Needs(member_of=(*sorted(ids), new.role_id)))


def _roles(names: Sequence[str], query: QueryContext, verb: str) -> list[Role]:
    found = [resolve_role(name, query.plan.snapshot) for name in names]
    system = [role.name for role in found if role.role_id.startswith("s")]
    if system:
        shown = ", ".join(f'"{name}"' for name in system)
        raise InsufficientPrivilege(
            f"cannot {verb} objects owned by role {shown} because they are required by the"
            " database system"
        )
    return found


def _owned(snapshot: Snapshot, roles: Collection[RoleId]) -> Iterator[Guarded]:
    for found in _guarded(snapshot):
        if found.owner in roles:
            yield found


def _guarded(snapshot: Snapshot) -> Iterator[Guarded]:
    yield from snapshot.items.values()
    yield from snapshot.secrets.values()
    yield from (s for s in snapshot.schemas.values() if s.database_id is not None)
    yield from snapshot.databases.values()
    yield from snapshot.clusters.values()


def plan_drop_owned(statement: DropOwnedStatement, query: QueryContext) -> RolePlan:
    """All that some roles own goes, and what others let them do."""
    snapshot = query.plan.snapshot
    roles = {role.role_id for role in _roles(statement.roles, query, "drop")}
    going = _Going(snapshot, roles, cascade=statement.cascade)
    ops = [*going.ops(), *_revocations(snapshot, roles, going, query.plan.role_id)]
    return RolePlan("DROP OWNED", tuple(ops), Needs(member_of=tuple(sorted(roles))))


class _Going:
    """What goes with the roles; refused where that takes others' things along, unless CASCADE."""

    def __init__(self, snapshot: Snapshot, roles: Collection[RoleId], *, cascade: bool) -> None:
        self._snapshot = snapshot
        self._roles = roles
        self._cascade = cascade
        self.databases = [d for d in snapshot.databases.values() if d.owner in roles]
        self.clusters = [c for c in snapshot.clusters.values() if c.owner in roles]
        self.schemas = list(self._going_schemas())
        self.secrets = list(self._inside(snapshot.secrets.values()))
        self.items = self._going_items()

    def _going_schemas(self) -> Iterator[Schema]:
        ids = {database.database_id: database for database in self.databases}
        for schema in self._snapshot.schemas.values():
            owned = schema.owner in self._roles and schema.database_id is not None
            if schema.database_id in ids and not owned and not self._cascade:
                raise DependentObjectsStillExist(
                    f'database "{ids[schema.database_id].name}" cannot be dropped without CASCADE'
                    " while it contains non-owned schemas"
                )
            if owned or schema.database_id in ids:
                yield schema

    def _inside(self, found: Iterable[Secret]) -> Iterator[Secret]:
        ids = {schema.schema_id for schema in self.schemas}
        return (one for one in found if one.owner in self._roles or one.schema_id in ids)

    def _going_items(self) -> Sequence[Item]:
        snapshot = self._snapshot
        schemas = {schema.schema_id: schema for schema in self.schemas}
        wanted: list[Item] = []
        for item in snapshot.items.values():
            if item.owner in self._roles:
                wanted.append(item)
            elif item.schema_id in schemas:
                self._refuse_non_owned(schemas[item.schema_id])
                wanted.append(item)
        for cluster in self.clusters:
            running = snapshot.items_in_cluster(cluster.cluster_id)
            self._refuse_others(f'cluster "{cluster.name}"', running, wanted)
            refuse_halfway(self.clusters, [one for one in running if one not in wanted], snapshot)
            wanted += running
        ids = with_parts(snapshot, [item.item_id for item in wanted])
        whole = [snapshot.items[item_id] for item_id in ids]
        for item in wanted:
            what = f'{item.kind.sql_words} "{full_name(item, snapshot)}"'
            self._refuse_others(what, snapshot.dependants(item.item_id), whole)
        return [snapshot.items[one] for one in with_dependants(snapshot, sorted(ids))]

    def _refuse_non_owned(self, schema: Schema) -> None:
        if not self._cascade:
            raise DependentObjectsStillExist(
                f'schema "{full_name(schema, self._snapshot)}" cannot be dropped without CASCADE'
                " while it contains non-owned objects"
            )

    def _refuse_others(self, what: str, users: Iterable[Item], going: Collection[Item]) -> None:
        others = [one for one in users if one.item_id not in {item.item_id for item in going}]
        if others and not self._cascade:
            shown = (f'{o.kind.sql_words} "{full_name(o, self._snapshot)}"' for o in others)
            raise DependentObjectsStillExist(
                f"cannot drop {what}: still depended upon by {', '.join(shown)}",
                hint=CASCADE_HINT,
            )

    def ops(self) -> Iterator[Op]:
        """Items first, then what held them."""
        if self.items:
            yield DropItemsOp(tuple(item.item_id for item in self.items), keep=True)
        yield from (DropSecretOp(secret.secret_id) for secret in self.secrets)
        yield from (DropSchemaOp(schema.schema_id) for schema in self.schemas)
        yield from (DropDatabaseOp(database.database_id) for database in self.databases)
        yield from (DropClusterOp(cluster.cluster_id) for cluster in self.clusters)

    def holds(self, found: Guarded) -> bool:
        match found:
            case Item():
                return found in self.items
            case Secret():
                return found in self.secrets
            case Schema():
                return found in self.schemas
            case Database():
                return found in self.databases
            case Cluster():
                return found in self.clusters

    def holds_place(self, default: DefaultPrivilege) -> bool:
        """Whether defaults are for a schema or database that goes, as they do with it."""
        return default.schema_id in {schema.schema_id for schema in self.schemas} or (
            default.database_id in {database.database_id for database in self.databases}
        )


def _revocations(
    snapshot: Snapshot, roles: Collection[RoleId], going: _Going, asking: RoleId | None
) -> Iterator[Op]:
    """What the roles may do with things that stay, as far as whoever asks decides about those."""
    if asking is None:
        return
    deciding = roles_above(snapshot, asking)
    everything = snapshot.roles[asking].superuser
    for found in _guarded(snapshot):
        if going.holds(found) or not (everything or found.owner in deciding):
            continue
        for role_id in sorted({e.grantee for e in found.privileges if e.grantee in roles}):
            yield RevokePrivilegesOp(target=object_key(found), grantee=role_id, letters=_EVERYTHING)
    for default in snapshot.of_type(DefaultPrivilege):
        concerned = default.role_id in roles or default.grantee in roles
        if concerned and not going.holds_place(default):
            yield SetDefaultPrivilegeOp(msgspec.structs.replace(default, privileges=""))
    if everything:
        for grant in snapshot.of_type(SystemPrivilege):
            if grant.grantee in roles:
                yield SetSystemPrivilegeOp(msgspec.structs.replace(grant, privileges=""))
