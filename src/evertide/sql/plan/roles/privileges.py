"""GRANT and REVOKE of privileges, now and for objects to come."""

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

import msgspec

from evertide.catalog.acl import Guarded
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.kinds.privileges import (
    ALL_ON,
    LETTER_OF,
    in_order,
    names_of_letters,
    readable,
)
from evertide.catalog.naming import quoted
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    DefaultPrivilege,
    ItemKind,
    ObjectKey,
    SystemPrivilege,
    object_key,
)
from evertide.catalog.ops import Op, SetDefaultPrivilegeOp, SetSystemPrivilegeOp
from evertide.catalog.privilege_ops import GrantPrivilegesOp, RevokePrivilegesOp
from evertide.catalog.snapshot import Snapshot
from evertide.expr.type_names import type_oid
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import item_of_kind
from evertide.sql.plan.named.secret import resolve_secret
from evertide.sql.plan.roles.names import grantee, users_role
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs
from evertide.sql.resolve import (
    find_object,
    no_connection,
    position_of,
    resolve_cluster,
    resolve_database,
    resolve_item,
    resolve_schema,
)
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.role import (
    DefaultPrivilegesStatement,
    GrantKind,
    OnAll,
    OnObjects,
    OnSystem,
    PrivilegesStatement,
)
from evertide.vocab.errors import (
    InsufficientPrivilege,
    InvalidGrantOperation,
    SqlSyntaxError,
)
from evertide.vocab.ids import DatabaseId, RoleId, SchemaId

# Who grants what concerns the environment as a whole.
SYSTEM_ROLE: Final = RoleId("s1")

_Place: TypeAlias = tuple[DatabaseId | None, SchemaId | None]


def plan_privileges(statement: PrivilegesStatement, query: QueryContext) -> RolePlan:
    """Each role gets or loses the privileges on each object. Owners decide about what is theirs."""
    snapshot = query.plan.snapshot
    tag = "REVOKE" if statement.revoke else "GRANT"
    if isinstance(statement.target, OnSystem):
        roles = _grantees(statement, snapshot)
        letters = _letters(statement.privileges, "system", "SYSTEM", statement.at)
        ops = tuple(_system_op(snapshot, role, letters, statement.revoke) for role in roles)
        return RolePlan(tag, ops, Needs(superuser=f"{tag.lower()} system privileges"))
    change = RevokePrivilegesOp if statement.revoke else GrantPrivilegesOp
    targets = list(_targets(statement.target, query))
    roles = _grantees(statement, snapshot)
    found: dict[ObjectKey, str] = {}
    for target in targets:
        kind = statement.target.kind.lower()
        what = quoted(target, snapshot)
        found[object_key(target)] = _letters(statement.privileges, kind, what, statement.at)
    grants = tuple(
        change(target=key, grantee=role, letters=letters)
        for key, letters in found.items()
        for role in roles
    )
    return RolePlan(tag, grants, Needs(owner_of=tuple(found)))


def _grantees(
    statement: PrivilegesStatement | DefaultPrivilegesStatement, snapshot: Snapshot
) -> list[RoleId]:
    return [grantee(name, snapshot, at=statement.at) for name in statement.roles]


def _letters(names: tuple[str, ...] | None, kind: str, what: str, at: int) -> str:
    """The letters of some privileges, all of which must make sense for what they are on."""
    possible = ALL_ON[kind]
    if names is None:
        return possible
    letters = in_order(LETTER_OF[name] for name in names)
    wrong = [letter for letter in letters if letter not in possible]
    if wrong:
        raise InvalidGrantOperation(
            f"invalid privilege types {names_of_letters(wrong)} for {what}",
            position=position_of(at),
        )
    return letters


def _system_op(
    snapshot: Snapshot, role: RoleId, letters: str, revoke: bool
) -> SetSystemPrivilegeOp:
    blank = SystemPrivilege(grantee=role, grantor=SYSTEM_ROLE, privileges="")
    before = snapshot.find(object_key(blank))
    had = before.privileges if isinstance(before, SystemPrivilege) else ""
    wanted = _combined(had, letters, revoke)
    return SetSystemPrivilegeOp(
        SystemPrivilege(grantee=role, grantor=SYSTEM_ROLE, privileges=wanted)
    )


def _combined(had: str, letters: str, revoke: bool) -> str:
    if revoke:
        return "".join(letter for letter in had if letter not in letters)
    return in_order(had + letters)


def _targets(target: OnObjects | OnAll, query: QueryContext) -> Iterator[Guarded]:
    if isinstance(target, OnObjects):
        for name in target.names:
            yield _target(target.kind, name, query)
    else:
        yield from _all(target, query)


def _target(kind: GrantKind, name: Name, query: QueryContext) -> Guarded:
    names, snapshot = query.plan.names, query.plan.snapshot
    match kind:
        case GrantKind.CLUSTER:
            return resolve_cluster(name.parts[0], snapshot, at=name.at)
        case GrantKind.DATABASE:
            return resolve_database(name.parts[0], snapshot, at=name.at)
        case GrantKind.SCHEMA:
            schema = resolve_schema(name.parts, names, at=name.at)
            if schema.database_id is None:
                raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
            return schema
        case GrantKind.TABLE:
            return _relation(name, query)
        case GrantKind.TYPE if type_oid(".".join(name.parts)) is not None:
            raise InsufficientPrivilege(
                f"system item 'pg_catalog.{name.parts[-1]}' cannot be modified"
            )
        case GrantKind.TYPE:
            return item_of_kind(name, ItemKind.TYPE, names, use="GRANT ON {} for {}")
        case GrantKind.SECRET:
            return resolve_secret(name, names)
        case GrantKind.CONNECTION:
            no_connection(name, names)
        case _:
            assert_never(kind)


def _relation(name: Name, query: QueryContext) -> Guarded:
    found = find_object(name, query.plan.names)
    if isinstance(found, Builtin):
        raise InsufficientPrivilege(f"system item '{found.schema}.{found.name}' cannot be modified")
    item = resolve_item(name, query.plan.names)
    if not readable(item.kind.value):
        raise InvalidGrantOperation(
            f"privileges cannot be granted on {quoted(item, query.plan.snapshot)}",
            position=position_of(name.at),
        )
    return item


def _all(target: OnAll, query: QueryContext) -> Iterator[Guarded]:
    """All of a type: in some schemas, in some databases, or anywhere."""
    snapshot = query.plan.snapshot
    databases, schemas = _scopes(target, query)
    match target.kind:
        case GrantKind.CLUSTER:
            yield from snapshot.clusters.values()
        case GrantKind.DATABASE:
            yield from snapshot.databases.values()
        case GrantKind.SCHEMA:
            for schema in snapshot.schemas.values():
                anywhere = databases is None and schema.database_id is not None
                if anywhere or (databases is not None and schema.database_id in databases):
                    yield schema
        case GrantKind.TABLE:
            for item in snapshot.items.values():
                if readable(item.kind.value) and (schemas is None or item.schema_id in schemas):
                    yield item
        case GrantKind.TYPE:
            for item in snapshot.items.values():
                if item.kind is ItemKind.TYPE and (schemas is None or item.schema_id in schemas):
                    yield item
        case GrantKind.SECRET:
            for secret in snapshot.secrets.values():
                if schemas is None or secret.schema_id in schemas:
                    yield secret
        case _:
            return


def _scopes(
    target: OnAll, query: QueryContext
) -> tuple[set[DatabaseId] | None, set[SchemaId] | None]:
    """The databases and the schemas that are meant; None: all."""
    snapshot, names = query.plan.snapshot, query.plan.names
    if target.schemas:
        found = [resolve_schema(name.parts, names, at=name.at) for name in target.schemas]
        return None, {schema.schema_id for schema in found}
    if target.databases:
        ids = {resolve_database(name, snapshot).database_id for name in target.databases}
        inside = {s.schema_id for s in snapshot.schemas.values() if s.database_id in ids}
        return ids, inside
    return None, None


def plan_default_privileges(statement: DefaultPrivilegesStatement, query: QueryContext) -> RolePlan:
    """What grantees may do with objects that some roles create from now on."""
    snapshot = query.plan.snapshot
    kind = statement.target.kind
    _refuse_senseless(statement)
    letters = _letters(statement.privileges, kind.lower(), kind.plural, statement.at)
    creators = _creators(statement, query)
    grantees = _grantees(statement, snapshot)
    ops: list[Op] = []
    for creator in creators:
        for place in _default_places(statement.target, query):
            for role in grantees:
                wanted = _default(snapshot, creator, place, kind.lower(), role)
                combined = _combined(wanted.privileges, letters, statement.revoke)
                ops.append(
                    SetDefaultPrivilegeOp(msgspec.structs.replace(wanted, privileges=combined))
                )
    everyone = PUBLIC_ROLE_ID in creators
    needs = Needs(
        superuser="alter default privileges for all roles" if everyone else None,
        member_of=tuple(role for role in creators if role != PUBLIC_ROLE_ID),
    )
    return RolePlan("ALTER DEFAULT PRIVILEGES", tuple(ops), needs)


def _refuse_senseless(statement: DefaultPrivilegesStatement) -> None:
    target = statement.target
    place = "SCHEMA" if target.schemas else "DATABASE" if target.databases else None
    outside = target.kind in (GrantKind.CLUSTER, GrantKind.DATABASE)
    if place is not None and (outside or (place == "SCHEMA" and target.kind is GrantKind.SCHEMA)):
        raise SqlSyntaxError(
            f"cannot specify {target.kind.plural} and IN {place}",
            position=position_of(statement.at),
        )


def _creators(statement: DefaultPrivilegesStatement, query: QueryContext) -> list[RoleId]:
    if statement.creators is None:
        return [PUBLIC_ROLE_ID]
    if not statement.creators:
        assert query.plan.role_id is not None, "a session has a role"
        return [query.plan.role_id]
    snapshot = query.plan.snapshot
    return [users_role(name, snapshot, at=statement.at).role_id for name in statement.creators]


def _default_places(target: OnAll, query: QueryContext) -> list[_Place]:
    snapshot, names = query.plan.snapshot, query.plan.names
    if target.schemas:
        schemas = [resolve_schema(name.parts, names, at=name.at) for name in target.schemas]
        return [(schema.database_id, schema.schema_id) for schema in schemas]
    if target.databases:
        found = [resolve_database(name, snapshot) for name in target.databases]
        return [(database.database_id, None) for database in found]
    return [(None, None)]


def _default(
    snapshot: Snapshot, creator: RoleId, place: _Place, kind: str, role: RoleId
) -> DefaultPrivilege:
    """The grant as it is; one without privileges if there is none."""
    blank = DefaultPrivilege(
        role_id=creator,
        database_id=place[0],
        schema_id=place[1],
        object_type=kind,
        grantee=role,
        privileges="",
    )
    before = snapshot.find(object_key(blank))
    return before if isinstance(before, DefaultPrivilege) else blank
