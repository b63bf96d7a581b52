"""DROP ROLE: a role goes with its memberships, unless anything else names it."""

from collections.abc import Iterator

from evertide.catalog.acl import Guarded
from evertide.catalog.checks import described
from evertide.catalog.draft import Draft
from evertide.catalog.naming import kind_words, quoted
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    ClusterProfile,
    ClusterReplica,
    DefaultPrivilege,
    ObjectKind,
    Role,
    RoleMembership,
    SystemPrivilege,
    object_key,
)
from evertide.catalog.ops import DropRoleOp
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    InsufficientPrivilege,
    UndefinedObject,
)
from evertide.vocab.ids import RoleId


def drop_role(draft: Draft, op: DropRoleOp) -> None:
    """Its memberships go with it; whatever else names the role keeps it."""
    role = draft.snapshot.roles.get(op.role_id)
    if role is None:
        raise UndefinedObject(f"unknown role '{op.role_id}'")
    if role.role_id.startswith("s"):
        raise InsufficientPrivilege(f"system role '{role.name}' cannot be modified")
    before = draft.snapshot
    named = object_key(role)
    draft.remove(role)
    holders = [key for kind in ObjectKind for key in draft.snapshot.referring_keys(kind, named)]
    if holders:
        lines = list(_reasons(before, role)) or [f"{described(key)} names it" for key in holders]
        raise DependentObjectsStillExist(
            f'role "{role.name}" cannot be dropped because some objects depend on it',
            detail="\n".join(f"{role.name}: {line}" for line in lines),
        )
    draft.audit("drop", "role", {"id": role.role_id, "name": role.name})


def _reasons(snapshot: Snapshot, role: Role) -> Iterator[str]:
    """Items, databases with their schemas, clusters with what is in them, then the rest."""
    for item in snapshot.items.values():
        yield from _of_object(snapshot, item, role)
    for secret in snapshot.secrets.values():
        yield from _of_object(snapshot, secret, role)
    for database in snapshot.databases.values():
        yield from _of_object(snapshot, database, role)
        for schema in snapshot.schemas_in(database.database_id):
            yield from _of_object(snapshot, schema, role)
    for cluster in snapshot.clusters.values():
        yield from _of_object(snapshot, cluster, role)
        members: list[ClusterProfile | ClusterReplica] = [
            *snapshot.profiles_of(cluster.cluster_id),
            *snapshot.replicas_of(cluster.cluster_id),
        ]
        for member in members:
            if member.owner == role.role_id:
                yield f'owner of {kind_words(member)} "{member.name}"'
    yield from _of_grants(snapshot, role)


def _of_object(snapshot: Snapshot, found: Guarded, role: Role) -> Iterator[str]:
    what = quoted(found, snapshot)
    if found.owner == role.role_id:
        yield f"owner of {what}"
    for entry in found.privileges:
        if entry.grantee == role.role_id:
            yield f"privileges on {what} granted by {role_name(snapshot, entry.grantor)}"
        if entry.grantor == role.role_id:
            yield f"privileges granted on {what} to {role_name(snapshot, entry.grantee)}"


def _of_grants(snapshot: Snapshot, role: Role) -> Iterator[str]:
    for system in snapshot.of_type(SystemPrivilege):
        if system.grantee == role.role_id:
            yield f"privileges on SYSTEM granted by {role_name(snapshot, system.grantor)}"
        if system.grantor == role.role_id:
            yield f"privileges granted on SYSTEM to {role_name(snapshot, system.grantee)}"
    for default in snapshot.of_type(DefaultPrivilege):
        if role.role_id in (default.role_id, default.grantee):
            creator = role_name(snapshot, default.role_id)
            what = f"{default.object_type.upper()}S created by {creator}"
            yield f"default privileges on {what} to {role_name(snapshot, default.grantee)}"
    for membership in snapshot.of_type(RoleMembership):
        if membership.grantor == role.role_id:
            group = role_name(snapshot, membership.role_id)
            yield f"membership in {group} granted to {role_name(snapshot, membership.member_id)}"


def role_name(snapshot: Snapshot, role_id: RoleId) -> str:
    """A role's name; everyone is `public`."""
    return "public" if role_id == PUBLIC_ROLE_ID else snapshot.roles[role_id].name
